"""Twins that break redirect."""

from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.core import ABANDONED, LIVE, Redirect, Reply, TaskRecord
from fakes.coordinators.reference.plan import DROP, KEEP, Instruction, Table


class ReplanStorm(Coordinator):
    """Throws the plan away: a second worker for every task, beside the first, and then the table."""

    async def carry_out(self, redirect: Redirect, instruction: Instruction) -> None:
        for record in [r for r in self.tasks.values() if r.phase in LIVE]:
            task = record.task.id
            await self.port.add_worktree(f"{self.branch(task)}-2", f"{self.worktree(task)}-2")
            if self.may_start():
                self.spawn(record, "-2")
        # The table comes when the storm is there, not merely ordered: a worker takes a moment to begin.
        await self.port.sleep(self.settings.longest_call_s)
        await super().carry_out(redirect, instruction)


class NoTable(Coordinator):
    """Keeps the table in its head."""

    def write_table(self, redirect: Redirect) -> None:
        if redirect not in self.redirects:
            self.redirects.append(redirect)

    def redirected(self, redirect: Redirect) -> Reply:
        reply = super().redirected(redirect)
        return {key: value for key, value in reply.items() if key != "table"}


class LateTable(Coordinator):
    """Moves first, and writes the table down when everybody has reached the next boundary."""

    async def carry_out(self, redirect: Redirect, instruction: Instruction) -> None:
        self.move_workers(redirect, instruction)
        await self.let_dropped_leave(redirect)
        await self.port.sleep(self.settings.longest_call_s)
        await super().carry_out(redirect, instruction)


class Misclassifies(Coordinator):
    """Drops the first task that it should keep."""

    def classify(self, instruction: Instruction) -> Table:
        table = super().classify(instruction)
        wrong = table.of(KEEP)[:1]
        return Table({**table.tasks, **dict.fromkeys(wrong, DROP)}, table.deltas, table.new)


class PromptsEveryone(Coordinator):
    """Tells keep-workers what does not concern them."""

    def move_workers(self, redirect: Redirect, instruction: Instruction) -> None:
        super().move_workers(redirect, instruction)
        news = [change.delta for change in instruction.changes] or [instruction.text]
        for task, decision in redirect.tasks.items():
            if decision == KEEP:
                self.port.post(task, "delta", news[0], f"redirect-{redirect.n}/everyone")


class WholeObjective(Coordinator):
    """Gives modify-workers the instruction itself."""

    def tell_change(self, redirect: Redirect, task: str, instruction: Instruction) -> None:
        self.port.post(task, "instruction", instruction.text, f"redirect-{redirect.n}/0")


class ForgetsTheDelta(Coordinator):
    """Has the right table and tells modify-workers nothing."""

    def tell_change(self, redirect: Redirect, task: str, instruction: Instruction) -> None:
        pass


class DropsUntagged(Coordinator):
    """Leaves dropped branches as they are."""

    async def abandon(self, record: TaskRecord) -> None:
        record.phase = ABANDONED
        self.save()


class PlansFirst(Coordinator):
    """Starts the new tasks, and waits until they have begun, before it makes the table known."""

    async def carry_out(self, redirect: Redirect, instruction: Instruction) -> None:
        self.plan_new(redirect, instruction)
        await self.dispatch()
        begun = [task.id for task in instruction.adds]
        await self.until(
            lambda: all(self.port.status(task) is not None for task in begun),
            2 * self.settings.longest_call_s + self.settings.margin_s,
        )
        await super().carry_out(redirect, instruction)
