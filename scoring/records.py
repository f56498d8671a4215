"""The records that a history is read into: controls, tool calls, workers, processes, requests, snapshots.

One record is one thing with a beginning and an end, so that "when was this call in flight" is decided in
one place, `scoring.assembly`, and not in every check. Nothing here decides whether anything is good or bad.

All instants are CLOCK_MONOTONIC nanoseconds, `None` where the history does not say. `ids` are the events
that a record was made from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.history import Event


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

    @property
    def label(self) -> str:
        """`pause@1`: the name that snapshots and audits use for it."""
        return f"{self.kind}@{self.n}"


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
    source: str = ""  # of the worker that issued it

    def in_flight(self, t: int) -> bool:
        """Whether it ran at instant `t`."""
        return self.start <= t and (self.end is None or self.end > t)

    @property
    def may_have_changed(self) -> bool:
        """Whether files may differ because of it: it changed some, or never said what it changed."""
        return self.changed != ()


NEVER_HEARD = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """One attempt at a task, from its first event to the end of its process."""

    task: str
    attempt: int
    pid: int
    proc: int | None
    first_step: int  # NEVER_HEARD when the keeper saw it and it did not live to say anything
    begin: int
    end: int | None  # of the process, as the keeper saw it; the worker's own word where no keeper saw it
    left: str | None  # reason of worker.end; None when it never said goodbye
    left_t: int | None
    ids: tuple[str, ...]
    source: str = ""
    started: int = 0  # its process was made: earlier than `begin` by the start of an interpreter
    last_t: int = 0  # its own last event

    @property
    def heard(self) -> bool:
        """Whether it ever said that it had begun."""
        return self.first_step != NEVER_HEARD

    def alive(self, t: int) -> bool:
        """Whether its process lived at instant `t`."""
        return self.started <= t and (self.end is None or self.end > t)

    @property
    def working_until(self) -> int | None:
        """When it stopped acting: its goodbye, unless it acted after that, otherwise the end of its process.

        Of one that nobody saw end, no more is known than its own last event.
        """
        if self.left_t is not None:
            return max(self.left_t, self.last_t)
        return self.last_t if self.proc is None and self.end is None else self.end


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
    attempt: int | None = None  # of its task, as its environment says, or its parent's

    def alive(self, t: int) -> bool:
        """Whether it lived at instant `t`."""
        return self.start <= t and (self.end is None or self.end > t)


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
    tokens_out: int = 0  # the larger of what was streamed and what the close says

    @property
    def tokens(self) -> int:
        """Everything that it cost."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Listed:
    """One living process in an audit, as the keeper described it at that instant."""

    proc: int
    pid: int
    role: str
    task: str | None
    cmdline: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True)
class Audit:
    """One full enumeration by the keeper; `alive` are `proc` numbers of the run, zombies left out."""

    when: str
    t: int
    alive: tuple[int, ...]
    id: str
    listed: tuple[Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class Worktree:
    """What git said about one worktree at one instant."""

    when: str
    t: int
    task: str
    path: str
    exists: bool
    branch: str | None
    head: str | None
    wip_step: int | None
    wips: tuple[str, ...]
    dirty: tuple[str, ...]
    half_written: tuple[str, ...]
    dead_locks: tuple[str, ...]
    id: str

    @property
    def unreadable(self) -> bool:
        """Whether git could not read it, which says nothing about what is in it."""
        return self.exists and self.head is None and bool(self.dirty)


@dataclass(frozen=True, slots=True)
class Refs:
    """All refs of one repository at one instant. `where` is `repo` or `origin`."""

    when: str
    t: int
    where: str
    refs: Mapping[str, str]
    stashes: tuple[str, ...]
    id: str


@dataclass(frozen=True, slots=True)
class Table:
    """The subject's keep/modify/drop table, as it stood at `written_t`."""

    n: int
    written_t: int
    tasks: Mapping[str, str]
    id: str


@dataclass(frozen=True, slots=True)
class Canary:
    """How late a short sleep came back in the window from `start` to `end`."""

    start: int
    end: int
    p99: int


@dataclass(frozen=True)
class Settings:
    """What run.begin says about the drill, durations in nanoseconds of real time. L = 0 means: not known."""

    run: str = ""
    drill: str = ""
    subject: str = ""
    speed: float = 1.0
    longest: int = 0  # L
    grace: int = 0
    kill_after: int = 0
    sweep_after: int = 0
    tasks: tuple[str, ...] = ()
    main_ref: str = "refs/heads/main"
    branch_prefix: str = ""
    tag_prefix: str = ""
    new_tasks_max: int | None = None
    success_exit: tuple[int, ...] = (0,)
    pause_means: str = "quiesce"  # or hold: acknowledged when nothing new starts
    instruction_marks: frozenset[str] = field(default_factory=frozenset)
    delta_marks: frozenset[str] = field(default_factory=frozenset)
