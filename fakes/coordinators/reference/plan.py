"""What an instruction means for each task: keep, modify or drop. Values in, values out.

The table is made by comparing files, never by planning anew: a task that the instruction does not touch is
a keep, and its worker never learns that there was an instruction. New tasks come from the instruction
alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

KEEP, MODIFY, DROP = "keep", "modify", "drop"


class Refused(Exception):
    """The control cannot be carried out as it was given; nothing has been touched."""


@dataclass(frozen=True)
class Task:
    """One unit of the plan and the files that belong to it; `spec` is its whole entry in the plan file."""

    id: str
    title: str
    files: tuple[str, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """Tasks with a file that matches one of `paths` (glob patterns) are told `delta` and nothing else."""

    paths: tuple[str, ...]
    delta: str


@dataclass(frozen=True)
class Instruction:
    """The operator's redirect: what changes, what loses its premise, what is new."""

    text: str
    changes: tuple[Change, ...]
    drops: tuple[str, ...]
    adds: tuple[Task, ...]

    @classmethod
    def read(cls, args: Mapping[str, Any]) -> "Instruction":
        """From args `{text, changes: [{paths, delta}], drops, adds: [{task, title, files}]}`; or Refused."""
        try:
            changes = tuple(Change(_patterns(c["paths"]), _text(c["delta"])) for c in args.get("changes", ()))
            adds = tuple(task_from(_text(a["task"]), a) for a in args.get("adds", ()))
            instruction = cls(_text(args.get("text", "")), changes, _patterns(args.get("drops", [])), adds)
        except (KeyError, TypeError, AttributeError) as why:
            raise Refused(f"no table can be made of this instruction: {why!r}") from why
        if not (instruction.changes or instruction.drops or instruction.adds):
            raise Refused("no table can be made: the instruction names no change, no drop and no new task")
        return instruction


@dataclass(frozen=True)
class Table:
    """The decision: every live task once, the deltas of the modified ones, the ids of the new ones."""

    tasks: Mapping[str, str]
    deltas: Mapping[str, tuple[str, ...]]
    new: tuple[str, ...]

    def of(self, decision: str) -> tuple[str, ...]:
        """The tasks with this decision, in the plan's order."""
        return tuple(task for task, what in self.tasks.items() if what == decision)


def task_from(task: str, spec: Mapping[str, Any]) -> Task:
    """A task from its entry in a plan file or in an instruction.

    Raises KeyError and TypeError when it is none.
    """
    return Task(task, str(spec.get("title", task)), _patterns(spec.get("files", [])), dict(spec))


def classify(instruction: Instruction, tasks: Iterable[Task]) -> Table:
    """The table for the live `tasks`.

    Drop: all its files match a drop. Modify: one matches a change. Else keep.
    """
    decisions: dict[str, str] = {}
    deltas: dict[str, tuple[str, ...]] = {}
    for task in tasks:
        told = tuple(c.delta for c in instruction.changes if any(_matches(f, c.paths) for f in task.files))
        # A task without files is no drop, because "all of none" would abandon work that nobody named.
        if task.files and all(_matches(f, instruction.drops) for f in task.files):
            decisions[task.id] = DROP
        elif told:
            decisions[task.id] = MODIFY
            deltas[task.id] = told
        else:
            decisions[task.id] = KEEP
    return Table(decisions, deltas, tuple(task.id for task in instruction.adds))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _patterns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list of paths, found {value!r}")
    return tuple(_text(item) for item in value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value
