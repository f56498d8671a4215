"""What all controls share: the durable intent, the fleet, the one place where anything is started, the watch.

Contract kept here: the intent is on disk before its first effect; nothing starts unless the intent is `running`, and
that is looked at in the same breath as the spawn; every worker has its manifest line before the next one is started;
every wait is bounded and ends early when a stronger control has overtaken it.

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
    """State of the coordinator. `plan` are the planned tasks; `run_watch` is to be kept running beside the controls."""

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
        self._stalled: set[tuple[int, int]] = set()
        self._since: dict[int, float] = {}
        self._starting = asyncio.Lock()
        self._jobs: dict[str, asyncio.Task[None]] = {}

    # The intent and the store.

    def declare(self, intent: str) -> None:
        """Make an intent durable, then show it to the workers: in this order, so that no crash can undo a stop."""
        self.intent = intent
        self.epoch += 1
        self.save()
        self.show(WORDS[intent])

    def show(self, word: str) -> None:
        """Put the word where the workers look."""
        self.port.control(word)

    def save(self) -> None:
        """Write state.json whole."""
        tasks = {
            name: {"phase": r.phase, "attempt": r.attempt, "error": r.error} for name, r in self.tasks.items()
        }
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
        worker = self.port.spawn(
            task, record.attempt + 1, self.branch(task) + suffix, self.worktree(task) + suffix
        )
        record.phase, record.attempt = WORKING, worker.attempt
        self.workers.append(worker)
        self._since[worker.process.pid] = self.port.now()
        return worker

    def branch(self, task: str) -> str:
        return f"agent/{self.settings.run}/{task}"

    def worktree(self, task: str) -> str:
        return f"{self.settings.worktrees}/{task}"

    # Waiting.

    async def until(self, look: Callable[[], bool], within_s: float, epoch: int | None = None) -> bool:
        """Wait until `look()`; False after `within_s`. Raises Overtaken when `epoch` is given and has passed."""
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

    # The watch.

    async def run_watch(self) -> None:
        """Look after the fleet for ever: ends and deaths at every poll, heartbeats ten times per longest call."""
        every_s = max(self.settings.poll_s, self.settings.longest_call_s / 10)
        heartbeats_at = 0.0
        while True:
            if self.intent in (RUNNING, HOLDING):
                self.watch_ends()
                self.watch_work()
            if self.port.now() >= heartbeats_at:
                self.watch_heartbeats()
                heartbeats_at = self.port.now() + every_s
            await self.port.sleep(self.settings.poll_s)

    def watch_ends(self) -> None:
        """Find out for each worker that is gone why it is gone. A worker that merely died is to be restarted."""
        changed = False
        for worker in self.workers:
            record = self.tasks[worker.task]
            if (
                record.phase == WORKING
                and record.attempt == worker.attempt
                and not self.port.alive(worker.process)
            ):
                record.phase, record.error = self._why_gone(worker)
                # A tool call may have outlived its worker. Two writers in one worktree are worse than a pause.
                record.not_before = self.port.now() + self.settings.longest_call_s
                changed = True
        if changed:
            self.save()

    def _why_gone(self, worker: Worker) -> tuple[str, str]:
        status = self.status_of(worker)
        reason = status.reason if status is not None and status.state == "ended" else "died"
        if reason == "done":
            return FINISHED, ""
        if worker.attempt > RESTARTS_MAX:
            return (
                FAILED,
                f"attempt {worker.attempt} ended with {reason!r}; restarted {RESTARTS_MAX} times already",
            )
        return WAITING, reason

    def watch_work(self) -> None:
        """Begin what the phases ask for: restarts and PRs only while running, tags also during a hold."""
        for name, record in self.tasks.items():
            if record.phase == DROPPED and not self.live(name):
                self.job(f"tag {name}", self.abandon(record))
            elif record.phase == FINISHED and self.may_start():
                self.job(f"land {name}", self.land(record))
            elif record.phase == WAITING and self.may_start() and record.not_before <= self.port.now():
                self.job("dispatch", self.dispatch())
        if (
            self.may_start()
            and self.tasks
            and all(r.phase in (LANDED, ABANDONED, FAILED) for r in self.tasks.values())
        ):
            self.declare(DONE)

    def watch_heartbeats(self) -> None:
        """Report workers without a heartbeat for two boundaries, once for each step that they are stuck in."""
        limit = self.port.now() - 2 * self.settings.longest_call_s
        for worker in self.live():
            status = self.status_of(worker)
            step = status.step if status else 0
            heard = max(status.t if status else 0.0, self._since.get(worker.process.pid, 0.0))
            resting = status is not None and status.state in ("parked", "ended")
            if heard < limit and not resting and (worker.process.pid, step) not in self._stalled:
                self._stalled.add((worker.process.pid, step))
                self.report_stall(worker, step)

    def report_stall(self, worker: Worker, last_step: int) -> None:
        self.port.log_stalled(worker, last_step)

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

    async def land(self, record: TaskRecord) -> None:
        """Squash a finished task into its PR branch and push that; the wip branch stays as it is."""
        task, onto = record.task.id, f"pr/{self.settings.run}/{record.task.id}"
        try:
            head = await self.port.squash(self.branch(task), onto, record.task.title)
            # Looked at again, so that nothing lands after a stop.
            if not self.may_start():
                return
            await self.port.push(f"refs/heads/{onto}")
            self.port.save_pr(task, {"task": task, "branch": onto, "head": head, "from": self.branch(task)})
            record.phase = LANDED
        except PortError as why:
            record.phase, record.error = FAILED, str(why)
        self.save()

    async def abandon(self, record: TaskRecord) -> None:
        """Tag the branch of a dropped task, here first and then at the origin. A task never begun has no branch."""
        tag = f"abandoned/{self.settings.run}/{record.task.id}"
        try:
            if record.attempt:
                await self.port.tag(tag, self.branch(record.task.id))
                await self.port.push(f"refs/tags/{tag}")
        except PortError as why:
            record.error = str(why)
        record.phase = ABANDONED
        self.save()
