"""Twins that break abort."""

from collections.abc import Mapping
from typing import Any

from fakes.coordinators.broken.ports import reckless
from fakes.coordinators.reference.abort import DEATH_WITHIN_S, JOBS_WITHIN_S
from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.core import ABORTED, AbortRecord, Reply
from fakes.coordinators.reference.plan import Refused
from fakes.coordinators.reference.ports import STOP, Process, Worker


class CtrlCOnly(Coordinator):
    """Does what a terminal does, and believes that it was enough: workers in own sessions hear nothing."""

    def show(self, word: str) -> None:
        if word != STOP:
            super().show(word)

    async def climb(self, record: AbortRecord) -> Reply:
        reckless(self.port).interrupt_own_group()
        self.intent = ABORTED
        return await self.conclude(record)


class SaysStopped(Coordinator):
    """Says aborted before anybody has stopped."""

    async def abort(self, args: Mapping[str, Any]) -> Reply:
        first = self.abort_record is None
        if first:
            self.declare_abort()
            self.job("abort", self._behind())
        nothing: dict[str, list[str]] = {"alive": [], "dirty": []}
        return {"ok": True, "state": ABORTED, "sweep": nothing, "killed": [], "changed": first}

    async def _behind(self) -> None:
        await self.finish_abort()

    async def settle_jobs(self, within_s: float) -> list[str]:
        # The abort itself is one of the jobs here; it cannot wait for its own end.
        return []


class KeepsDispatching(Coordinator):
    """Starts one ended task again, more than one boundary after STOP."""

    async def let_workers_stop(self, deadline: float) -> None:
        late_s = 1.25 * self.settings.longest_call_s
        await self.port.sleep(min(late_s, self.settings.grace_s))
        ended = [w for w in self.workers if not self.live(w.task)]
        if ended:
            self.spawn(self.tasks[ended[0].task])
        await super().let_workers_stop(deadline)


class NoGrace(Coordinator):
    """Kills first."""

    async def climb(self, record: AbortRecord) -> Reply:
        below: dict[Process, Worker] = {}
        self.kill(record, below)
        await self.until(lambda: not self.remaining(below), DEATH_WITHIN_S)
        await self.log_victims(record)
        await self.settle_jobs(JOBS_WITHIN_S)
        return await self.conclude(record)


class NeverEscalates(Coordinator):
    """Waits for the grace window and leaves it at that. Its answer is honest about who is left."""

    async def climb(self, record: AbortRecord) -> Reply:
        await self.let_workers_stop(record.t + self.settings.grace_s)
        await self.settle_jobs(JOBS_WITHIN_S)
        return await self.conclude(record)


class KillsByName(Coordinator):
    """After the ladder, ends whatever looks like a worker of a run of this name."""

    async def conclude(self, record: AbortRecord) -> Reply:
        reckless(self.port).terminate_by_name()
        return await super().conclude(record)


class KillsSilently(Coordinator):
    """Kills, and tells nobody."""

    def log_killed(self, worker: Worker, process: Process, files: list[str]) -> None:
        pass


class CleansUp(Coordinator):
    """Removes the worktrees of the killed, with the evidence in them."""

    async def conclude(self, record: AbortRecord) -> Reply:
        for worker in self.workers:
            if worker.process.pid in record.victims:
                await reckless(self.port).remove_worktree(worker.worktree)
        return await super().conclude(record)


class NoSweep(Coordinator):
    """Does not look."""

    async def conclude(self, record: AbortRecord) -> Reply:
        reply = {key: value for key, value in (await super().conclude(record)).items() if key != "sweep"}
        record.reply = reply
        self.save()
        return reply

    async def sweep_now(self, args: Mapping[str, Any]) -> Reply:
        raise Refused("this coordinator does not sweep")


class AsksFirst(Coordinator):
    """Answers an abort with a question, and acts when that is answered, whatever the answer."""

    async def abort(self, args: Mapping[str, Any]) -> Reply:
        if self.abort_record is not None:
            return await super().abort(args)
        question = f"Stop all {len(self.live())} workers?"
        return {"ok": True, "state": self.state(), "question": question}

    async def answer(self, args: Mapping[str, Any]) -> Reply:
        return await super().abort(args)


class BlindToStalls(Coordinator):
    """Never mentions a stalled worker. The ladder ends it all the same."""

    def report_stall(self, worker: Worker, last_step: int) -> None:
        pass


class SaysCompleted(Coordinator):
    """Calls an abort a success."""

    def state(self) -> str:
        return "completed" if self.intent == ABORTED else super().state()

    def closing_status(self) -> int:
        return 0 if self.intent == ABORTED else super().closing_status()
