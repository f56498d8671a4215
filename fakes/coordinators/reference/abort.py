"""Abort: STOP at once, a grace window, SIGTERM, SIGKILL, then the sweep. One action, never a question.

    c                      intent durable, STOP shown, nothing starts any more
    c + grace_s            SIGTERM to each worker that still lives and has not said goodbye
    … + kill_after_s       SIGKILL to each that still lives and to everything below; one `killed dirty` line
    then                   the sweep: what of the manifest is alive, which worktrees are dirty

Nothing is deleted. A second abort gives the same answer and changes nothing. After a crash the ladder goes
on from the instant of the first abort, because the grace window belongs to the operator and not to the
process that counts it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from fakes.coordinators.reference.core import ABORTED, ABORTING, DONE, AbortRecord, Reply
from fakes.coordinators.reference.ports import Process, Worker
from fakes.coordinators.reference.watch import Watching

DEATH_WITHIN_S = 2.0
JOBS_WITHIN_S = 5.0


class Aborting(Watching):
    """The verbs abort and sweep. The rungs are methods, in the order in which `climb` takes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ladder: asyncio.Task[Reply] | None = None
        self._helpers: dict[Process, Worker] = {}  # killed below a worker, with that worker

    async def abort(self, args: Mapping[str, Any]) -> Reply:
        """`aborted` with `sweep` and `killed`; `aborting` when something survived even that.

        `changed` on the first.
        """
        if self.intent == DONE:
            return {"ok": True, "state": DONE, "sweep": await self.sweep(), "killed": [], "changed": False}
        first = self.abort_record is None
        if first:
            self.declare_abort()
        return {**await self.finish_abort(), "changed": first}

    def declare_abort(self) -> None:
        self.abort_record = AbortRecord(self.port.now())
        self.declare(ABORTING)

    async def finish_abort(self) -> Reply:
        """Climb the ladder, or join the climb that is under way, or repeat what it came to."""
        assert self.abort_record is not None
        if self.abort_record.reply is not None:
            return self.abort_record.reply
        if self._ladder is None:
            self._ladder = asyncio.create_task(self.climb(self.abort_record))
        # Shielded, because a request that goes away must not take the ladder with it.
        return await asyncio.shield(self._ladder)

    async def climb(self, record: AbortRecord) -> Reply:
        """The whole ladder, from whatever rung the clock says."""
        await self.let_workers_stop(record.t + self.settings.grace_s)
        if self.live():
            below = self.terminate()
            await self.escalate(record, below)
        await self.log_victims(record)
        await self.settle_jobs(JOBS_WITHIN_S)
        return await self.conclude(record)

    async def let_workers_stop(self, deadline: float) -> None:
        """Wait for the workers to leave by themselves."""
        await self.until(lambda: not self.live(), max(0.0, deadline - self.port.now()))

    def terminate(self) -> dict[Process, Worker]:
        """SIGTERM to those who still work; what lives below whom, seen before anybody can disown it."""
        below = self.below(self.live())
        for worker in self.live():
            if not self.has_left(worker):
                self.port.signal(worker.process, "SIGTERM")
        return below

    def below(self, workers: list[Worker]) -> dict[Process, Worker]:
        return {process: w for w in workers for process in self.port.descendants(w.process)}

    async def escalate(self, record: AbortRecord, below: dict[Process, Worker]) -> None:
        """SIGKILL to what is left after the second window."""
        await self.until(lambda: not self.remaining(below), self.settings.kill_after_s)
        self.kill(record, below)
        await self.until(lambda: not self.remaining(below), DEATH_WITHIN_S)

    def remaining(self, below: Mapping[Process, Worker]) -> list[Process]:
        return [w.process for w in self.live()] + [p for p in below if self.port.alive(p)]

    def kill(self, record: AbortRecord, below: dict[Process, Worker]) -> None:
        """Kill, having first made durable whom: a line that is owed survives a crash of the coordinator."""
        workers = self.live()
        below.update(self.below(workers))
        self._helpers = {p: w for p, w in below.items() if self.port.alive(p)}
        self.watch_heartbeats()
        record.victims = [w.process.pid for w in workers]
        self.save()
        for worker in workers:
            self.port.signal(worker.process, "SIGKILL")
        for process in self._helpers:
            self.port.signal(process, "SIGKILL")

    async def log_victims(self, record: AbortRecord) -> None:
        """One complete line for each victim that has none yet."""
        written = set(self.port.killed())
        victims = {w.process: w for w in self.workers if w.process.pid in record.victims}
        for process, worker in {**victims, **self._helpers}.items():
            if process.pid not in written:
                files = await self.port.dirty_files(worker.worktree)
                self.log_killed(worker, process, files or [])

    def log_killed(self, worker: Worker, process: Process, files: list[str]) -> None:
        self.port.log_killed(worker, process, files)

    async def conclude(self, record: AbortRecord) -> Reply:
        """Sweep and answer. Something that outlived SIGKILL keeps the state at `aborting`."""
        sweep = await self.sweep()
        if not sweep["alive"]:
            self.intent = ABORTED
        reply: Reply = {"ok": True, "state": self.intent, "sweep": sweep, "killed": list(record.victims)}
        record.reply = reply
        self.save()
        return reply

    async def sweep(self) -> dict[str, Any]:
        """`{alive: [{pid, task}], dirty: [worktree paths]}` of everything in the manifest."""
        alive = [{"pid": w.process.pid, "task": w.task} for w in self.live()]
        alive += [{"pid": p.pid, "task": w.task} for p, w in self._helpers.items() if self.port.alive(p)]
        dirty = []
        for worktree in dict.fromkeys(w.worktree for w in self.workers):
            files = await self.port.dirty_files(worktree)
            # What git cannot tell is listed: a worktree in doubt is for a human to look at.
            if files is None or files:
                dirty.append(worktree)
        return {"alive": alive, "dirty": dirty}
