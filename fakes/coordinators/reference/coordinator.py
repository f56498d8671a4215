"""The reference coordinator: every verb an operator has, over a port."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fakes.coordinators.reference.abort import Aborting
from fakes.coordinators.reference.core import ABORTED, DONE, FAILED, LIVE, Overtaken, Reply, TaskRecord
from fakes.coordinators.reference.pause import Pausing
from fakes.coordinators.reference.plan import Refused
from fakes.coordinators.reference.recover import Recovering
from fakes.coordinators.reference.redirect import Redirecting

Verb = Callable[[Mapping[str, Any]], Awaitable[Reply]]


class Coordinator(Pausing, Redirecting, Aborting, Recovering):
    """`begin()` once; `run_watch()` beside `handle()` of every request; over when `exit_status` is set."""

    exit_status: int | None = None

    async def handle(self, verb: str, args: Mapping[str, Any]) -> Reply:
        """Carry out one request and answer it.

        A refusal is an answer too: `ok` false, with the reason in `error`.
        """
        verbs = self.verbs()
        if verb not in verbs:
            return self._no(f"unknown verb {verb!r}; known: {', '.join(verbs)}")
        try:
            return await verbs[verb](args)
        except (Refused, Overtaken) as why:
            return self._no(str(why))

    def verbs(self) -> dict[str, Verb]:
        """What an operator can ask for."""
        return {
            "start": self.start,
            "pause": self.pause,
            "resume": self.resume,
            "redirect": self.redirect,
            "abort": self.abort,
            "status": self.status,
            "sweep": self.sweep_now,
            "usage": self.usage,
            "answer": self.answer,
            "close": self.close,
        }

    def _no(self, why: str) -> Reply:
        return {"ok": False, "state": self.state(), "error": why}

    def state(self) -> str:
        """running, holding, aborting, aborted or done."""
        return self.intent

    async def start(self, args: Mapping[str, Any]) -> Reply:
        """Plan and start every task; answered when all of them have a worker."""
        self.refuse_after_stop("start")
        for name, task in self.plan.items():
            self.tasks.setdefault(name, TaskRecord(task))
        self.started = True
        self.save()
        await self.dispatch()
        self.refuse_after_stop("start")
        waiting = [name for name, r in self.tasks.items() if r.phase in LIVE and not r.attempt]
        failed = {name: r.error for name, r in self.tasks.items() if r.phase == FAILED}
        reply: Reply = {"ok": not failed, "state": self.state(), "waiting": waiting}
        return {**reply, "error": f"not started: {failed}"} if failed else reply

    async def status(self, args: Mapping[str, Any]) -> Reply:
        """Where every task stands."""
        tasks = {}
        for name, record in self.tasks.items():
            word = self.port.status(name)
            tasks[name] = {
                "state": record.phase,
                "attempt": record.attempt,
                "pids": [w.process.pid for w in self.live(name)],
                "step": word.step if word else None,
                "error": record.error or None,
            }
        return {"ok": True, "state": self.state(), "tasks": tasks, "tokens": self.tokens()}

    async def usage(self, args: Mapping[str, Any]) -> Reply:
        """The tokens that the workers say they spent; null when none of them says anything."""
        return {"ok": True, "state": self.state(), "tokens": self.tokens()}

    def tokens(self) -> int | None:
        words = [self.port.status(name) for name in self.tasks]
        told = [w.tokens for w in words if w is not None and w.tokens is not None]
        return sum(told) if told else None

    async def sweep_now(self, args: Mapping[str, Any]) -> Reply:
        """The sweep without an abort."""
        return {"ok": True, "state": self.state(), "sweep": await self.sweep()}

    async def answer(self, args: Mapping[str, Any]) -> Reply:
        """This coordinator asks nothing, so there is nothing to answer."""
        raise Refused("nothing was asked")

    async def close(self, args: Mapping[str, Any]) -> Reply:
        """Leave; exit status 0 done, 1 done with failed tasks, 3 aborted, 4 while anything else."""
        self.exit_status = self.closing_status()
        return {"ok": True, "state": self.state(), "exit": self.exit_status}

    def closing_status(self) -> int:
        """The exit status that tells the truth about the run."""
        if self.state() == DONE:
            return 1 if any(r.phase == FAILED for r in self.tasks.values()) else 0
        return 3 if self.state() == ABORTED else 4
