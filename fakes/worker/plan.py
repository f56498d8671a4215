"""A worker's own part of plan.json, and what each step of it is.

Step k is the same in every attempt and in every run of the same seed: its choices are drawn from (seed, task,
k) and from nothing else, so that a restarted worker repeats the very call that was cut.
"""

import json
import math
import random


class PlanError(Exception):
    """The plan, or the worker's environment, is not usable. The message says where and what."""


class Step:
    """What step `number` does: its tool, the file, its duration (real seconds), in a child process or not."""

    __slots__ = ("child", "duration_s", "number", "path", "tool")

    def __init__(self, number: int, tool: str, path: str, duration_s: float, child: bool) -> None:
        self.number = number
        self.tool = tool  # edit, or test, which changes nothing
        self.path = path
        self.duration_s = duration_s
        self.child = child


class Plan:
    """The record of one task. Raises PlanError when the file or the task's record can't be used."""

    def __init__(self, path: str, task: str) -> None:
        try:
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
            # A task that a redirect adds is planned, too, for workers whose coordinator writes no plan of its own.
            mine = whole["tasks"].get(task) or whole.get("adds", {})[task]
            self.seed = str(whole["seed"])
            self.base = str(whole["base"])
            self.longest_call_s = float(whole["longest_call_s"])
            self.kill_after_s = float(whole["kill_after_s"])
            self.poll_s = float(whole.get("poll_s", 0.01))
            self.objective = str(whole["objective"]["text"])
            self.files = [checked_path(name) for name in mine["files"]]
            self.steps = int(mine["steps"])
            self.calls = dict(mine["calls"])
            self.child_share = float(mine.get("child_share", 0.0))
            self.readonly_share = float(mine.get("readonly_share", 0.0))
            self.model = dict(mine.get("model", {}))
            self.push_every = int(mine.get("push_every") or 0)
            self.target = str(mine.get("target", "4.0.0"))
            self.misbehaviours = list(mine.get("misbehaviours", []))
            self.shim_commits = bool(dict(whole.get("shim", {})).get("commits"))
        except OSError as error:
            raise PlanError(f"can't read the plan: {error}") from error
        except KeyError as error:
            raise PlanError(f"{path}: task {task}: {error} is missing") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise PlanError(f"{path}: task {task}: {error}") from error
        if not self.files:
            raise PlanError(f"{path}: task {task}: files is empty")
        self.task = task

    def step(self, number: int) -> Step:
        """Step `number`, counted from 1. The draws have a fixed order, so shares don't shift durations."""
        draw = random.Random(f"{self.seed}/{self.task}/{number}")
        duration_s = _duration_s(self.calls, number, draw.gauss(0, 1), draw.random())
        child = draw.random() < self.child_share
        tool = "test" if draw.random() < self.readonly_share else "edit"
        return Step(number, tool, self.files[number % len(self.files)], duration_s, child)


def checked_path(name: str) -> str:
    """A path that stays in the worktree, or ValueError: a plan is data, and may have come from anywhere."""
    parts = str(name).split("/")
    if name.startswith("/") or ".." in parts or ".git" in parts or not all(parts):
        raise ValueError(f"{name!r} is not a plain path inside the worktree")
    return name


def _duration_s(calls: dict[str, object], number: int, normal: float, uniform: float) -> float:
    def figure(key: str) -> float:
        value = calls.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PlanError(f"calls: {key} must be a number, not {value!r}")
        return float(value)

    kind = calls.get("distribution")
    if kind == "fixed":
        duration_s = figure("value_s")
    elif kind == "uniform":
        duration_s = figure("low_s") + (figure("high_s") - figure("low_s")) * uniform
    elif kind == "lognormal":
        duration_s = figure("median_s") * math.exp(figure("sigma") * normal)
    elif kind == "list":
        values = calls.get("values_s")
        if not isinstance(values, list) or not values:
            raise PlanError("calls: values_s must be a list of numbers")
        duration_s = float(values[(number - 1) % len(values)])
    else:
        raise PlanError(f"calls: distribution {kind!r} is not fixed, uniform, lognormal or list")
    return min(duration_s, figure("longest_s")) if "longest_s" in calls else duration_s
