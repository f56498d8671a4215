"""The history as intervals: controls, tool calls, workers, processes, model requests, pushes, worktrees.

Checks and reports read these records instead of raw events, so that "when was this call in flight" is decided in one
place. Built in one pass; nothing here decides whether anything is good or bad.

All instants are CLOCK_MONOTONIC nanoseconds, `None` where the history does not say. `ids` are the events that a
record was made from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scoring.history import Event, History


@dataclass(frozen=True, slots=True)
class Control:
    """A control that the operator issued at instant `t` (the contract's c)."""

    kind: str  # pause, resume, redirect, abort
    n: int  # 1 for the first control of the run, whatever its kind
    t: int
    scope: str
    data: Mapping[str, Any]  # of control.issue: instruction, expected …
    delivered_t: int | None
    answer: str  # ack, error, timeout, absent, none
    answer_t: int | None
    state: str | None  # the subject's own word, when it acknowledged
    questions: tuple[Event, ...]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. In flight from `start` (the earlier of issued and started) to `end`."""

    call: str
    task: str
    attempt: int
    step: int
    worker_pid: int
    pid: int  # of the process that runs it; the worker's own when it runs in-process
    start: int
    end: int | None  # None: still in flight when the history ends
    cut: bool  # it ended because its process ended, not because it returned
    changed: tuple[str, ...] | None  # None when it never returned to its worker
    returned_t: int | None
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Worker:
    """One attempt at a task, from its first event to the end of its process."""

    task: str
    attempt: int
    pid: int
    proc: int | None
    first_step: int
    begin: int
    end: int | None  # of the process, as the keeper saw it; the worker's own word where no keeper saw it
    left: str | None  # reason of worker.end; None when it never said goodbye
    left_t: int | None
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the run, identified by the keeper's own number (pids are recycled)."""

    proc: int
    pid: int
    ppid: int
    role: str  # coordinator, run, service
    task: str | None
    cmdline: tuple[str, ...]
    cred_names: tuple[str, ...]
    start: int
    end: int | None
    signal: int | None
    status: int | None
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request at the model provider's meter."""

    req: str
    run: str
    task: str
    t: int
    tokens_in: int
    chunks: tuple[tuple[int, int], ...]  # (instant, tokens)
    close: int | None
    outcome: str | None
    marks: tuple[str, ...]
    id: str


@dataclass(frozen=True, slots=True)
class Audit:
    """One full enumeration by the keeper; `alive` are `proc` numbers of the run, zombies left out."""

    when: str
    t: int
    alive: tuple[int, ...]
    id: str


@dataclass(frozen=True)
class Timeline:
    """Everything that checks look at. `config` is that of run.begin."""

    history: History
    config: Mapping[str, Any]
    controls: tuple[Control, ...]
    calls: tuple[ToolCall, ...]  # by start
    workers: tuple[Worker, ...]  # by begin
    processes: Mapping[int, Process]  # by proc
    requests: tuple[ModelRequest, ...]  # by t
    audits: tuple[Audit, ...]
    by_kind: Mapping[str, tuple[Event, ...]]

    def events(self, kind: str) -> tuple[Event, ...]:
        """All events of one kind, in order."""
        return self.by_kind.get(kind, ())


def build(history: History) -> Timeline:
    """Read the history into intervals. Never raises on a history that is cut short: what is unknown stays None."""
    raise RuntimeError("being written")
