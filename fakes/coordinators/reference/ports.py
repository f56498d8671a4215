"""What the coordinator's decisions need of the world, and nothing more.

One protocol, two worlds: `posix.PosixPort` drives processes, files and git; a simulated port drives a model
of them under a virtual clock. Calls that take time are coroutines. The others happen at once, and the
coordinator relies on that: between its last look at the intent and a spawn nothing else can run, so an
abort has no gap to fall into.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

RUN, HOLD, STOP = "RUN", "HOLD", "STOP"


class PortError(Exception):
    """The world refused: git failed, a program could not be started. The message says which and why."""


@dataclass(frozen=True)
class Process:
    """A process by pid and start time (field 22 of /proc/<pid>/stat): a recycled pid is another one."""

    pid: int
    ticks: int


@dataclass(frozen=True)
class Worker:
    """One attempt at a task, as the manifest records it."""

    task: str
    attempt: int
    process: Process
    branch: str
    worktree: str


@dataclass(frozen=True)
class Status:
    """The last word of a worker: its heartbeat. `t` is in seconds of the port's clock."""

    attempt: int
    pid: int
    state: str  # working, parked, ended
    step: int
    reason: str
    t: float
    tokens: int | None = None

    def of(self, worker: Worker) -> bool:
        """Whether this is the word of this very attempt, not of one before it."""
        return (self.attempt, self.pid) == (worker.attempt, worker.process.pid)


class Port(Protocol):
    """The world of one run. Every method may raise OSError; the git ones raise PortError."""

    def now(self) -> float:
        """Seconds of a clock that is the same after a restart of the coordinator."""

    async def sleep(self, seconds: float) -> None: ...

    # Processes. A process that was neither spawned nor adopted here is never alive and never signalled.

    def spawn(self, task: str, attempt: int, branch: str, worktree: str) -> Worker:
        """Start a worker in a session of its own and write its manifest line."""

    def adopt(self, process: Process) -> bool:
        """Take hold of an earlier coordinator's process; False when it is gone or its pid recycled."""

    def alive(self, process: Process) -> bool: ...

    def signal(self, process: Process, name: str) -> bool:
        """Send SIGTERM, SIGKILL, …; False when there is nobody to receive it."""

    def descendants(self, process: Process) -> tuple[Process, ...]:
        """Everything below a living process, each taken hold of."""

    # The control directory.

    def control(self, word: str) -> None:
        """Put RUN, HOLD or STOP where every worker looks at its boundaries."""

    def post(self, task: str, kind: str, text: str, key: str) -> None:
        """A message to one worker. The same `key` twice is delivered once."""

    def status(self, task: str) -> Status | None: ...

    # The store.

    def manifest(self) -> list[Worker]: ...

    def save_state(self, state: Mapping[str, Any]) -> None: ...

    def load_state(self) -> dict[str, Any] | None: ...

    def save_table(self, n: int, tasks: Mapping[str, str], new: tuple[str, ...]) -> None: ...

    def save_plan(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Make tasks that are not in the plan file known to the workers started from now on."""

    def log_killed(self, worker: Worker, process: Process, files: list[str]) -> None: ...

    def killed(self) -> list[int]:
        """The pids that have their line already."""

    def log_stalled(self, worker: Worker, last_step: int) -> None: ...

    def save_pr(self, task: str, record: Mapping[str, str]) -> None: ...

    # Git. Nothing here deletes anything.

    async def add_worktree(self, branch: str, worktree: str) -> None:
        """A branch from the base with a worktree of its own; one that exists already is left as it is."""

    async def tag(self, name: str, branch: str) -> None: ...

    async def squash(self, branch: str, onto: str, message: str) -> str:
        """Branch `onto`: one commit with the branch's tree, on where the branch came from; its sha."""

    async def push(self, ref: str) -> None:
        """Push a ref (or `from:to`) to the origin."""

    async def dirty_files(self, worktree: str) -> list[str] | None:
        """Changed and untracked files, read without taking locks; None when git could not say."""
