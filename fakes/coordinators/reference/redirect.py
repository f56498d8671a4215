"""Redirect: the table first, then only the workers that it names, then new tasks for the gap.

Order is the whole contract. The table is complete and on disk before anything moves. Modify-workers get
their delta and nothing else, drop-workers a drop message; keep-workers get nothing at all. A dropped task's
branch is tagged when its worker has left. New tasks are planned last, from the instruction's `adds` alone.
An instruction that no table can be made of is refused before anything was touched.

A redirect that was cut short by a crash is carried on with the table that it had: every step may be done
twice.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from fakes.coordinators.reference.core import (
    ABANDONED,
    DROPPED,
    FAILED,
    LIVE,
    Core,
    Redirect,
    Reply,
    TaskRecord,
)
from fakes.coordinators.reference.plan import (
    DROP,
    MODIFY,
    Instruction,
    Refused,
    Table,
    classify,
    task_from,
)


class Redirecting(Core):
    """The verb redirect. The steps are methods, in the order in which `carry_out` takes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._one_at_a_time = asyncio.Lock()

    async def redirect(self, args: Mapping[str, Any]) -> Reply:
        """`redirected` with the table.

        `redirecting` when a dropped worker has not left within 2 L and a margin.
        """
        async with self._one_at_a_time:
            self.refuse_after_stop("redirect")
            instruction = Instruction.read(args)
            known = next((r for r in self.redirects if r.args == args), None)
            if known is not None and known.settled:
                return {**self.redirected(known), "changed": False}
            redirect = known or self.decide(instruction, args)
            await self.carry_out(redirect, instruction)
            return self.redirected(redirect)

    async def carry_out(self, redirect: Redirect, instruction: Instruction) -> None:
        """The four moves."""
        self.write_table(redirect)
        self.move_workers(redirect, instruction)
        await self.let_dropped_leave(redirect)
        self.plan_new(redirect, instruction)
        self.settle(redirect)

    def decide(self, instruction: Instruction, args: Mapping[str, Any]) -> Redirect:
        """Classify every live task. Raises Refused when a new task bears the id of an old one."""
        known = sorted({task.id for task in instruction.adds} & set(self.tasks))
        if known:
            raise Refused(f"no table can be made: new tasks bear ids that are taken: {', '.join(known)}")
        table = self.classify(instruction)
        return Redirect(
            n=len(self.redirects) + 1,
            args=dict(args),
            tasks=dict(table.tasks),
            deltas={task: list(deltas) for task, deltas in table.deltas.items()},
            new=list(table.new),
        )

    def classify(self, instruction: Instruction) -> Table:
        return classify(instruction, [r.task for r in self.tasks.values() if r.phase in LIVE])

    def write_table(self, redirect: Redirect) -> None:
        """Make the decision visible and durable."""
        if redirect in self.redirects:
            return
        self.redirects.append(redirect)
        self.port.save_table(redirect.n, redirect.tasks, tuple(redirect.new))
        self.save()

    def move_workers(self, redirect: Redirect, instruction: Instruction) -> None:
        """Messages to those whom the table names as modify or drop."""
        for task, decision in redirect.tasks.items():
            if decision == MODIFY:
                self.tell_change(redirect, task, instruction)
            elif decision == DROP:
                self.port.post(task, "drop", "", f"redirect-{redirect.n}/drop")
                record = self.tasks[task]
                record.phase = DROPPED if record.phase in LIVE else record.phase
        self.save()

    def tell_change(self, redirect: Redirect, task: str, instruction: Instruction) -> None:
        """The delta, never the whole objective."""
        for k, delta in enumerate(redirect.deltas[task]):
            self.port.post(task, "delta", delta, f"redirect-{redirect.n}/{k}")

    async def let_dropped_leave(self, redirect: Redirect) -> None:
        """Wait until every dropped worker has left and its branch is tagged (by the watch)."""
        within_s = 2 * self.settings.longest_call_s + self.settings.margin_s
        deadline = self.port.now() + within_s
        while self.unsettled(redirect) and self.port.now() < deadline:
            self.refuse_after_stop("redirect")
            await self.port.sleep(self.settings.poll_s)
        self.refuse_after_stop("redirect")

    def unsettled(self, redirect: Redirect) -> list[str]:
        """The dropped tasks that still have a worker, or no tag yet."""
        dropped = [task for task, decision in redirect.tasks.items() if decision == DROP]
        return [task for task in dropped if self.tasks[task].phase not in (ABANDONED, FAILED)]

    def plan_new(self, redirect: Redirect, instruction: Instruction) -> None:
        """Put the new tasks into the plan; the watch starts them, unless there is a hold."""
        fresh = [task for task in instruction.adds if task.id not in self.tasks]
        template = next((dict(t.spec) for t in self.plan.values()), {})
        template.pop("misbehaviours", None)
        for task in fresh:
            self.added[task.id] = {**template, **task.spec}
            self.tasks[task.id] = TaskRecord(task_from(task.id, self.added[task.id]))
        if fresh:
            self.port.save_plan(self.added)

    def settle(self, redirect: Redirect) -> None:
        redirect.settled = True
        self.save()

    def redirected(self, redirect: Redirect) -> Reply:
        """The reply, from what is known now."""
        late = self.unsettled(redirect)
        table = {"n": redirect.n, "tasks": redirect.tasks, "new": redirect.new}
        reply: Reply = {"ok": True, "state": "redirecting" if late else "redirected", "table": table}
        return {**reply, "not_left": late} if late else reply
