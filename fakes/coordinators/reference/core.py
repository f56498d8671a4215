"""What all controls share: the durable intent, the fleet, and the one place where anything is started.

Contract kept here: the intent is on disk before its first effect; nothing starts unless the intent is
`running`, and that is looked at in the same breath as the spawn; every worker has its manifest line before
the next one is started; every wait is bounded and ends early when a stronger control has overtaken it.

This module and its neighbours touch no operating system: everything goes through the port.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.coordinators.reference.plan import Refused, Task
from fakes.coordinators.reference.ports import HOLD, RUN, STOP, Port, PortError, Status, Worker

RUNNING, HOLDING, ABORTING, ABORTED, DONE = "running", "holding", "aborting", "aborted", "done"
WORDS = {RUNNING: RUN, HOLDING: HOLD, ABORTING: STOP, ABORTED: STOP, DONE: RUN}

# Phases of a task. `waiting` is to be started; `done` waits for its PR and `dropped` for its tag.
WAITING, WORKING, FINISHED, LANDED, DROPPED, ABANDONED, FAILED = (
    "waiting", "working", "done", "landed", "dropped", "abandoned", "failed",
)  # fmt: skip
LIVE = (WAITING, WORKING)

RESTARTS_MAX = 3

Reply = dict[str, Any]


class Overtaken(Exception):
    """A wait ended early, because a later or stronger control came."""


@dataclass(frozen=True)
class Settings:
    """What the coordinator has to know of its run; seconds are real ones."""

    run: str
    worktrees: str
    longest_call_s: float
    grace_s: float
    kill_after_s: float
    poll_s: float = 0.01
    margin_s: float = 0.5


@dataclass
class TaskRecord:
    """Where a task stands. `not_before` holds a restart back, in seconds of the port's clock."""

    task: Task
    phase: str = WAITING
    attempt: int = 0
    not_before: float = 0.0
    error: str = ""


@dataclass
class Redirect:
    """A redirect that has its table; `settled` once it was carried out."""

    n: int
    args: Mapping[str, Any]
    tasks: dict[str, str]
    deltas: dict[str, list[str]]
    new: list[str]
    settled: bool = False


@dataclass
class AbortRecord:
    """The abort: when it was declared (port's clock), whom it had to kill, what it answered."""

    t: float
    victims: list[int] = field(default_factory=list)
    reply: Reply | None = None


class Core:
    """State of the coordinator. `plan` are the planned tasks; none is started before `start`."""

    def __init__(self, port: Port, settings: Settings, plan: Mapping[str, Task]) -> None:
        self.port = port
        self.settings = settings
        self.plan = dict(plan)
        self.intent = RUNNING
        self.started = False
        self.tasks: dict[str, TaskRecord] = {}
        self.added: dict[str, Mapping[str, Any]] = {}
        self.workers: list[Worker] = []
        self.redirects: list[Redirect] = []
        self.abort_record: AbortRecord | None = None
        self.epoch = 0  # counts pauses, resumes and the abort, so that a wait knows it was overtaken
        self.since: dict[int, float] = {}  # pid -> when we first knew of it, for those who never said a word
        self._starting = asyncio.Lock()
        self._jobs: dict[str, asyncio.Task[None]] = {}

    # The intent and the store.

    def declare(self, intent: str) -> None:
        """Make an intent durable, then show it to the workers, so that no crash can undo a stop."""
        self.intent = intent
        self.epoch += 1
        try:
            self.save()
        finally:
            # A store that fails must not keep a stop from the workers.
            self.show(WORDS[intent])

    def show(self, word: str) -> None:
        """Put the word where the workers look."""
        self.port.control(word)

    def save(self) -> None:
        """Write state.json whole."""
        tasks = {name: {"phase": r.phase, "attempt": r.attempt, "error": r.error} for name, r in self.tasks.items()}
        self.port.save_state(
            {
                "run_id": self.settings.run,
                "intent": self.intent,
                "started": self.started,
                "tasks": tasks,
                "added": self.added,
                "table": self.redirects[-1].tasks if self.redirects else None,
                "redirects": [vars(r) for r in self.redirects],
                "abort": vars(self.abort_record) if self.abort_record else None,
            }
        )

    # The fleet.

    def live(self, task: str | None = None) -> list[Worker]:
        """The workers (of one task) whose process exists, oldest first."""
        return [w for w in self.workers if task in (None, w.task) and self.port.alive(w.process)]

    def status_of(self, worker: Worker) -> Status | None:
        """The worker's own last word; None when it has said nothing in this attempt."""
        status = self.port.status(worker.task)
        return status if status is not None and status.of(worker) else None

    def parked(self, worker: Worker) -> bool:
        status = self.status_of(worker)
        return status is not None and status.state == "parked"

    def has_left(self, worker: Worker) -> bool:
        """Whether it said goodbye, although its process may still be on the way out."""
        status = self.status_of(worker)
        return status is not None and status.state == "ended"

    # Starting: the only place where work comes from.

    def may_start(self) -> bool:
        return self.started and self.intent == RUNNING

    async def dispatch(self) -> None:
        """Start everything that waits, one after another, for as long as the intent allows it."""
        async with self._starting:
            for record in list(self.tasks.values()):
                if not self.may_start():
                    return
                if record.phase == WAITING and record.not_before <= self.port.now():
                    await self._start(record)

    async def _start(self, record: TaskRecord) -> None:
        task = record.task.id
        try:
            await self.port.add_worktree(self.branch(task), self.worktree(task))
            # Looked at again, because a stop or a drop may have come while git was at work.
            if self.may_start() and record.phase == WAITING:
                self.spawn(record)
        except PortError as why:
            record.phase, record.error = FAILED, str(why)
        self.save()

    def spawn(self, record: TaskRecord, suffix: str = "") -> Worker:
        """One more attempt at a task, in its worktree."""
        task = record.task.id
        worker = self.port.spawn(task, record.attempt + 1, self.branch(task) + suffix, self.worktree(task) + suffix)
        record.phase, record.attempt = WORKING, worker.attempt
        self.workers.append(worker)
        self.since[worker.process.pid] = self.port.now()
        return worker

    def branch(self, task: str) -> str:
        return f"agent/{self.settings.run}/{task}"

    def worktree(self, task: str) -> str:
        return f"{self.settings.worktrees}/{task}"

    # Waiting.

    async def until(self, look: Callable[[], bool], within_s: float, epoch: int | None = None) -> bool:
        """Wait until `look()`; False after `within_s`. Raises Overtaken once `epoch` has passed."""
        deadline = self.port.now() + within_s
        while not look():
            self.not_overtaken(epoch)
            if self.port.now() >= deadline:
                return False
            await self.port.sleep(self.settings.poll_s)
        self.not_overtaken(epoch)
        return True

    def not_overtaken(self, epoch: int | None) -> None:
        if epoch is not None and epoch != self.epoch:
            raise Overtaken(f"overtaken by a later control: the run is {self.intent}")

    def refuse_after_stop(self, verb: str) -> None:
        """An explicit stop is final: nothing resurrects the run."""
        if self.intent not in (RUNNING, HOLDING):
            raise Refused(f"{verb} refused: the run is {self.intent}")

    # Jobs: what takes git a while.

    def job(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else, unless a job of that name runs already."""
        if name in self._jobs and not self._jobs[name].done():
            work.close()
            return
        self._jobs[name] = asyncio.create_task(work, name=name)

    async def settle_jobs(self, within_s: float) -> list[str]:
        """Wait for the jobs under way; the names of those that did not end in time."""
        await self.until(lambda: all(job.done() for job in self._jobs.values()), within_s)
        return [name for name, job in self._jobs.items() if not job.done()]
