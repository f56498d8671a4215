"""Twins that break pause and resume."""

from collections.abc import Mapping
from typing import Any

from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.core import HOLDING, Reply, TaskRecord
from fakes.coordinators.reference.plan import task_from
from fakes.coordinators.reference.ports import Worker

EXTRA = "t99"


class FlagNobodyReads(Coordinator):
    """Keeps the hold to itself, and calls that paused."""

    def hold(self) -> None:
        self.intent = HOLDING
        self.epoch += 1
        self.save()

    def moving(self) -> list[Worker]:
        return []


class StartsTask(Coordinator):
    """Starts one more task during the hold.

    It ends by itself after the resume, so that later controls meet the plan.
    """

    def hold(self) -> None:
        super().hold()
        if EXTRA not in self.tasks:
            self.job("extra", self._start_extra())

    async def _start_extra(self) -> None:
        template = next(iter(self.plan.values())).spec
        spec = {
            **template,
            "title": "one more",
            "files": [f"extra/{EXTRA}.txt"],
            "steps": 1,
            "misbehaviours": [],
        }
        self.added[EXTRA] = spec
        self.tasks[EXTRA] = TaskRecord(task_from(EXTRA, spec))
        self.port.save_plan(self.added)
        await self.port.add_worktree(self.branch(EXTRA), self.worktree(EXTRA))
        if self.intent == HOLDING:
            self.spawn(self.tasks[EXTRA])
        self.save()


class ResumesHalf(Coordinator):
    """Keeps every other worker held by a message of its own, and says running. A redirect frees them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._forgotten: list[str] = []

    def release(self) -> None:
        self._forgotten = [worker.task for worker in self.live()][1::2]
        for task in self._forgotten:
            self.port.post(task, "hold", "", f"forgotten-{self.epoch}")
        super().release()

    def resting(self) -> list[Worker]:
        return []

    async def redirect(self, args: Mapping[str, Any]) -> Reply:
        for task in self._forgotten:
            self.port.post(task, "release", "", f"remembered-{self.epoch}")
        return await super().redirect(args)


class BySigstop(Coordinator):
    """Freezes workers and what is below them.

    They go on at resume, and at an abort, so that they can be stopped at all.
    """

    def hold(self) -> None:
        self.intent = HOLDING
        self.epoch += 1
        self.save()
        self._signal_all("SIGSTOP")

    def moving(self) -> list[Worker]:
        return []

    def release(self) -> None:
        self._signal_all("SIGCONT")
        super().release()

    def declare_abort(self) -> None:
        super().declare_abort()
        self._signal_all("SIGCONT")

    def _signal_all(self, name: str) -> None:
        for worker in self.live():
            self.port.signal(worker.process, name)
            for process in self.port.descendants(worker.process):
                self.port.signal(process, name)
