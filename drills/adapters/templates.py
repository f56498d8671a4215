"""Placeholders of a subject file: `{repo}`, `{worker}` and the like, in strings, argument lists and JSON.

What is put in is never read by a shell: an argument stays one argument whatever is in it. `{worker}` alone in an
argument list becomes the several arguments that it is; within a longer string it is quoted for a shell, because that
is the only place where it could be meant to go. Braces that hold anything but a lower-case name stay as they are, so
that JSON and awk can be written down; `{{name}}` is a literal `{name}`.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drills.adapters.base import Redirect, Site

EVERYWHERE: Mapping[str, str] = {
    "run_id": "the run's id",
    "run_dir": "the run's directory, the bundle",
    "repo": "the coordinator's clone",
    "origin": "the bare origin that workers push to",
    "worktrees": "the folder for one worktree a task",
    "control": "the control directory that the simulated workers look at",
    "manifest": "where the manifest is expected",
    "events": "the folder of the event files",
    "plan": "plan.json: the tasks",
    "config": "config.json: all of this in one file",
    "provider": "address of the model provider",
    "token": "the run's token for it",
    "worker": "the command line of a simulated worker, without --run and --task",
    "folder": "the folder of the subject file",
    "grace_s": "the grace window of an abort, in real seconds",
    "kill_after_s": "how long after SIGTERM comes SIGKILL, in real seconds",
    "longest_call_s": "the longest legitimate tool call, in real seconds",
}
REDIRECT_ONLY: Mapping[str, str] = {
    "instruction": "the instruction's text",
    "instruction_json": "the whole instruction as JSON: one line in a string, an object where JSON is written",
    "instruction_file": "a file that holds it",
}

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_WORKER = "{worker}"
_INSTRUCTION = "{instruction_json}"


def unknown(value: object, allowed: Mapping[str, str]) -> list[str]:
    """Names of placeholders anywhere in a string, list or table that are not in `allowed`."""
    names = (match[2] for text in _strings(value) for match in _PLACEHOLDER.finditer(text) if match[2])
    return [name for name in dict.fromkeys(names) if name not in allowed]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _strings(inner)


def _windows(site: Site) -> dict[str, str]:
    """The drill's windows, as they stand in plan.json: in real seconds, already divided by the drill's speed."""
    plan = json.loads(site.plan.read_text(encoding="utf-8"))
    return {name: f"{plan[name]:g}" for name in ("grace_s", "kill_after_s", "longest_call_s")}


@dataclass(frozen=True)
class Values:
    """What the placeholders stand for in one run. `folder` is what relative paths are relative to."""

    names: Mapping[str, str]
    worker: tuple[str, ...]
    folder: Path
    instruction: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, folder: Path) -> "Values":
        """The values of a run, without those of a redirect."""
        paths = ("run_dir", "repo", "origin", "worktrees", "control", "manifest", "events", "plan", "config")
        names = {
            "run_id": site.run_id,
            **{name: str(getattr(site, name)) for name in paths},
            "provider": site.env["STOPDRILL_PROVIDER"],
            "token": site.env["STOPDRILL_TOKEN"],
            "worker": shlex.join(site.worker_argv),
            "folder": str(folder),
            **_windows(site),
        }
        return cls(names, tuple(site.worker_argv), folder)

    def with_instruction(self, said: Redirect, file: Path) -> "Values":
        """The values of a redirect, whose instruction stands in `file`."""
        instruction = said.to_json()
        more = {
            "instruction": said.text,
            "instruction_json": json.dumps(instruction),
            "instruction_file": str(file),
        }
        return replace(self, names={**self.names, **more}, instruction=instruction)

    def text(self, template: str) -> str:
        """A string with its placeholders replaced."""

        def put(match: re.Match[str]) -> str:
            return "{" + match[1] + "}" if match[1] else self.names[match[2]]

        return _PLACEHOLDER.sub(put, template)

    def path(self, template: str) -> Path:
        """A path, relative ones below the folder of the subject file."""
        return self.folder / self.text(template)

    def argv(self, arguments: Sequence[str]) -> list[str]:
        """An argument list. A program given as a relative path is one of the subject file's folder."""
        found: list[str] = []
        for argument in arguments:
            found += self.worker if argument == _WORKER else [self.text(argument)]
        if "/" in found[0]:
            found[0] = str(self.folder / found[0])
        return found

    def json(self, template: Any) -> Any:
        """A JSON value with the placeholders in its strings replaced."""
        if template == _INSTRUCTION:
            return dict(self.instruction)
        if isinstance(template, str):
            return self.text(template)
        if isinstance(template, Mapping):
            return {key: self.json(value) for key, value in template.items()}
        if isinstance(template, Sequence):
            return [self.json(value) for value in template]
        return template
