"""The history as intervals: everything that checks and reports look at, and how to find a part of it.

Checks and reports read these records instead of raw events. `build` reads a history into a `Timeline`; the
records are described in `scoring.records`, how they are made in `scoring.assembly`. Nothing here decides
whether anything is good or bad, and nothing is computed twice: what many checks ask for is an index made
once.

All instants are CLOCK_MONOTONIC nanoseconds, `None` where the history does not say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring import assembly
from scoring.history import Event, History
from scoring.records import (
    Audit,
    Canary,
    Control,
    Listed,
    ModelRequest,
    Process,
    Refs,
    Settings,
    Table,
    ToolCall,
    Worker,
    Worktree,
)

__all__ = [
    "Audit",
    "Canary",
    "Control",
    "Listed",
    "ModelRequest",
    "Process",
    "Refs",
    "Settings",
    "Table",
    "Timeline",
    "ToolCall",
    "Worker",
    "Worktree",
    "build",
]


@dataclass(frozen=True)
class Timeline:
    """Everything that checks look at. `config` is that of run.begin, `settings` the same with types and
    units.
    """

    history: History
    config: Mapping[str, Any]
    controls: tuple[Control, ...]  # by t
    calls: tuple[ToolCall, ...]  # by start
    workers: tuple[Worker, ...]  # by begin
    processes: Mapping[int, Process]  # by proc
    requests: tuple[ModelRequest, ...]  # by t
    audits: tuple[Audit, ...]
    by_kind: Mapping[str, tuple[Event, ...]]
    by_source: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    worktrees: tuple[Worktree, ...] = ()
    refs: tuple[Refs, ...] = ()
    tables: tuple[Table, ...] = ()
    canaries: tuple[Canary, ...] = ()
    calls_of: Mapping[str, tuple[ToolCall, ...]] = field(default_factory=dict)  # by source of the worker
    workers_of: Mapping[str, tuple[Worker, ...]] = field(default_factory=dict)  # by task
    requests_of: Mapping[str, tuple[ModelRequest, ...]] = field(default_factory=dict)  # by task
    malformed: tuple[tuple[str, str], ...] = ()  # (event id, what is wrong): of a known kind, but without sense
    begin_t: int = 0  # of the drill clock: fleet.at-work, otherwise run.begin, otherwise the first event
    end_t: int = 0  # when the harness began to end the run, otherwise the last event
    keeper_until: int = 0  # the keeper's knowledge ends here: later, a process without an end may live or not
    killed_t: int | None = None  # the keeper's first kill: what ends after it was ended by us

    def events(self, kind: str) -> tuple[Event, ...]:
        """All events of one kind, in order."""
        return self.by_kind.get(kind, ())

    def of_kind(self, *kinds: str) -> list[Control]:
        """All controls of these kinds, in order."""
        return [control for control in self.controls if control.kind in kinds]

    def next_control(self, after: Control, *kinds: str) -> Control | None:
        """The first control (of these kinds, if any are named) that was issued after that one."""
        later = (c for c in self.controls if (c.t, c.n) > (after.t, after.n))
        return next((c for c in later if not kinds or c.kind in kinds), None)

    def until(self, control: Control, *kinds: str) -> int:
        """The instant of that next control, or the end of the run."""
        following = self.next_control(control, *kinds)
        return self.end_t if following is None else following.t

    def worker_process(self, worker: Worker) -> Process | None:
        """Its process, as the keeper saw it."""
        return None if worker.proc is None else self.processes.get(worker.proc)

    def calls_by(self, worker: Worker) -> tuple[ToolCall, ...]:
        """The calls of one worker, by start."""
        return self.calls_of.get(worker.source, ())

    def seconds(self, duration: int) -> float:
        """Drill seconds of a duration in nanoseconds, to the millisecond."""
        return round(duration / 1e9 * self.settings.speed, 3)

    def clock(self, t: int) -> float:
        """Drill seconds since the fleet was at work."""
        return self.seconds(t - self.begin_t)


def build(history: History) -> Timeline:
    """Read the history into intervals. Never raises on a history that is cut short: what is unknown stays
    None.
    """
    return Timeline(history=history, **assembly.assemble(history))
