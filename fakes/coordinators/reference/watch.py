"""The watch: who has ended and why, who is to be restarted, whose work is to be landed or tagged, who stalls.

It runs beside the controls for as long as the coordinator lives, and starts work only through
`Core.dispatch`. Once the intent is to stop it starts nothing and lands nothing; it only goes on reporting
stalled workers.
"""

from typing import Any

from fakes.coordinators.reference.core import (
    ABANDONED,
    DONE,
    DROPPED,
    FAILED,
    FINISHED,
    HOLDING,
    LANDED,
    RESTARTS_MAX,
    RUNNING,
    WAITING,
    WORKING,
    Core,
    TaskRecord,
)
from fakes.coordinators.reference.ports import PortError, Worker


class Watching(Core):
    """`run_watch` is to be kept running beside the controls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stalled: set[tuple[int, int]] = set()

    async def run_watch(self) -> None:
        """Look after the fleet for ever: at every poll, at heartbeats ten times per longest call."""
        every_s = max(self.settings.poll_s, self.settings.longest_call_s / 10)
        heartbeats_at = 0.0
        while True:
            if self.intent in (RUNNING, HOLDING):
                self.watch_ends()
                self.watch_work()
            if self.port.now() >= heartbeats_at:
                self.watch_heartbeats()
                heartbeats_at = self.port.now() + every_s
            self.watch_jobs()
            await self.port.sleep(self.settings.poll_s)

    def watch_ends(self) -> None:
        """Find out why a worker is gone that is gone. One that merely died is to be restarted."""
        changed = False
        for worker in self.workers:
            record = self.tasks.get(worker.task)
            if record is None or record.phase != WORKING or record.attempt != worker.attempt:
                continue
            if not self.port.alive(worker.process):
                record.phase, record.error = self._why_gone(worker)
                # A tool call may have outlived its worker, and two writers in one worktree are worse than
                # a task that stands still for the length of a call.
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
            return FAILED, f"attempt {worker.attempt} ended ({reason}); {RESTARTS_MAX} restarts are the limit"
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
        if self.may_start() and self._all_over():
            self.declare(DONE)

    def _all_over(self) -> bool:
        over = all(r.phase in (LANDED, ABANDONED, FAILED) for r in self.tasks.values())
        # A redirect that dropped the last task may be about to add another one.
        return bool(self.tasks) and over and all(r.settled for r in self.redirects)

    def watch_jobs(self) -> None:
        """Forget the jobs that have ended. One that crashed takes the watch down: nobody may overlook it."""
        for name, job in list(self._jobs.items()):
            if job.done():
                del self._jobs[name]
                job.result()

    def watch_heartbeats(self) -> None:
        """Report workers without a heartbeat for two boundaries, once for each step they are stuck in."""
        limit = self.port.now() - 2 * self.settings.longest_call_s
        for worker in self.live():
            status = self.status_of(worker)
            step = status.step if status else 0
            heard = max(status.t if status else 0.0, self.since.get(worker.process.pid, 0.0))
            resting = status is not None and status.state in ("parked", "ended")
            if heard < limit and not resting and (worker.process.pid, step) not in self._stalled:
                self._stalled.add((worker.process.pid, step))
                self.report_stall(worker, step)

    def report_stall(self, worker: Worker, last_step: int) -> None:
        self.port.log_stalled(worker, last_step)

    # What git has to do for tasks that are over.

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
        """Tag the branch of a dropped task, here and at the origin. A task never begun has no branch."""
        tag = f"abandoned/{self.settings.run}/{record.task.id}"
        try:
            if record.attempt:
                await self.port.tag(tag, self.branch(record.task.id))
                await self.port.push(f"refs/tags/{tag}")
        except PortError as why:
            record.error = str(why)
        record.phase = ABANDONED
        self.save()
