"""The coordinator's configuration file: where everything is, and how long to wait.

    {"run", "repo", "origin", "worktrees", "control", "manifest", "events", "plan", "worker": [argv prefix],
     "env": {for workers}, "base", "grace_s", "kill_after_s"}  and, optional: "killed_log", "logs", "margin_s"

Seconds are real ones. The longest legitimate tool call comes from the plan file, because workers read it
there too.
"""

import os
from dataclasses import dataclass
from typing import Any

from fakes.coordinators.files import read_object
from fakes.coordinators.reference.core import Settings
from fakes.coordinators.reference.plan import Task, task_from


class ConfigError(Exception):
    """The configuration or the plan cannot be used; the message names the file and the key."""


@dataclass(frozen=True)
class Config:
    """The file, with its defaults filled in."""

    run: str
    repo: str
    origin: str
    worktrees: str
    control: str
    manifest: str
    events: str
    plan: str
    worker: tuple[str, ...]
    env: dict[str, str]
    base: str
    killed_log: str
    logs: str
    tasks: dict[str, Task]
    settings: Settings


def load(path: str) -> Config:
    """Read the configuration and the plan that it names. Raises ConfigError."""
    raw = _object(path)
    try:
        plan = _object(raw["plan"])
        control = raw["control"]
        longest_s = float(plan["longest_call_s"])
        return Config(
            **{
                key: raw[key] for key in ("run", "repo", "origin", "worktrees", "control", "manifest", "events", "plan")
            },
            worker=tuple(raw["worker"]),
            env={name: str(value) for name, value in raw.get("env", {}).items()},
            base=raw.get("base", "main"),
            killed_log=raw.get("killed_log") or os.path.join(control, "killed.jsonl"),
            logs=raw.get("logs") or os.path.join(os.path.dirname(control), "logs"),
            tasks={name: task_from(name, spec) for name, spec in plan["tasks"].items()},
            settings=Settings(
                run=raw["run"],
                worktrees=raw["worktrees"],
                longest_call_s=longest_s,
                grace_s=float(raw["grace_s"]),
                kill_after_s=float(raw["kill_after_s"]),
                poll_s=float(plan.get("poll_s", 0.01)),
                margin_s=float(raw.get("margin_s", 0.25 + 0.25 * longest_s)),
            ),
        )
    except KeyError as key:
        raise ConfigError(f"{path} (or the plan that it names) lacks {key}") from None
    except (TypeError, ValueError, AttributeError) as why:
        raise ConfigError(f"{path} (or the plan that it names) has a value of the wrong kind: {why}") from why


def _object(path: str) -> dict[str, Any]:
    try:
        found = read_object(path)
    except (ValueError, OSError) as why:
        raise ConfigError(f"{path}: {why}") from why
    if found is None:
        raise ConfigError(f"{path}: there is no such file")
    return found
