"""A case: one timeline under one rubric, with what every check asks of both.

The questions answered here are the ones whose answer must be the same in every check: how late may things
be, how long did a hold last, was the fleet at work when a control was issued, what did the drill expect of
each task.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from scoring.at_work import idle
from scoring.rubric import Rubric
from scoring.timeline import Control, Table, Timeline, ToolCall, Worker, Worktree
from scoring.tolerance import Tolerance, tolerances


@dataclass(frozen=True)
class Case:
    """What a check is given."""

    timeline: Timeline
    rubric: Rubric

    @cached_property
    def tolerances(self) -> dict[int, Tolerance]:
        """By number of the control."""
        return tolerances(self.timeline, self.rubric)

    @cached_property
    def vacuous(self) -> dict[int, str]:
        """By number of the control: why it proves nothing, since the fleet was not at work."""
        found = ((control.n, idle(self.timeline, control)) for control in self.timeline.controls)
        return {n: why for n, why in found if why is not None}

    def issued(self, *kinds: str) -> list[Control]:
        """The controls of these kinds that the subject has."""
        return [control for control in self.timeline.of_kind(*kinds) if control.answer != "absent"]

    def measurable(self, controls: Iterable[Control]) -> list[Control]:
        """Those of them around which time could be measured."""
        return [control for control in controls if self.tolerances[control.n].reason is None]

    def slack(self, control: Control) -> int:
        """How late things may be around a control, in ns; L/4 where that is not known or was less."""
        tolerance = self.tolerances[control.n]
        if tolerance.total is None:
            return self.timeline.settings.longest // 4
        return tolerance.total

    def abort(self) -> Control | None:
        """The first abort that the subject has."""
        return next(iter(self.issued("abort")), None)

    def hold_end(self, pause: Control) -> int:
        """When a hold ended: at the next resume or abort, or with the run."""
        return self.timeline.until(pause, "resume", "abort")

    def in_hold(self, t: int) -> bool:
        """Whether a pause was on at instant `t`."""
        pauses = self.issued("pause")
        return any(pause.t < t < self.hold_end(pause) for pause in pauses)

    def snapshot(self, when: str, task: str) -> Worktree | None:
        """The worktree of a task under one label, where git could read it."""
        return next((tree for tree in self.snapshots(when) if tree.task == task), None)

    def snapshots(self, when: str) -> list[Worktree]:
        """All worktrees under one label that git could read."""
        return [tree for tree in self.timeline.worktrees if tree.when == when and not tree.unreadable]

    def alive_at(self, t: int) -> list[Worker]:
        """The workers that lived at instant `t` and had not said goodbye.

        Those that only the keeper saw are left out: what they did, or were told, nobody can say.
        """
        return [w for w in self.timeline.workers if w.heard and w.begin <= t and w.alive(t) and not _left(w, t)]

    def table(self, redirect: Control) -> Table | None:
        """The table of one redirect: the first that was written after it and before the next one."""
        until = self.timeline.next_control(redirect, "redirect")
        earliest = redirect.t - self.slack(redirect)
        for table in self.timeline.tables:
            if table.written_t >= earliest and (until is None or table.written_t < until.t):
                return table
        return None

    def expected(self, redirect: Control) -> dict[str, str]:
        """What the drill expects of each task: keep, modify or drop. Empty when it does not say."""
        expected = redirect.data.get("expected")
        return {str(t): str(move) for t, move in expected.items()} if isinstance(expected, dict) else {}

    def moves(self, redirect: Control) -> dict[str, str]:
        """The same, or the subject's own table where the drill does not say."""
        table = self.table(redirect)
        return self.expected(redirect) or (dict(table.tasks) if table else {})

    def unsure(self, control: Control) -> int:
        """How late the keeper's word on a process may be, at least: it reports an end some time after it."""
        return max(self.slack(control), self.timeline.settings.longest // 20)

    def lives(self, worker: Worker, t: int) -> bool:
        """Whether a worker's process lived at `t`, as the keeper saw.

        One that the keeper never saw, or whose end comes after the keeper's own, would otherwise live for
        ever.
        """
        return worker.proc is not None and worker.alive(t) and self._told(worker.end, t)

    def flies(self, call: ToolCall, t: int) -> bool:
        """Whether a call was in flight at `t`, and is not just one whose end nobody was left to see."""
        return call.in_flight(t) and self._told(call.end, t)

    def _told(self, end: int | None, t: int) -> bool:
        return end is not None or t <= self.timeline.keeper_until

    def injected(self, task: str | None, pid: int, proc: int | None = None) -> bool:
        """Whether the drill itself broke this process, named by task, pid or the keeper's number."""
        return any(
            event.data.get("pid") == pid
            or (task and event.data["target"] in (task, f"worker/{task}"))
            or (proc is not None and event.data.get("proc") == proc)
            for event in self.timeline.events("fault.inject")
        )

    def ended_by_us(self, t: int) -> bool:
        """Whether the harness had begun to end the run by instant `t`."""
        return self.timeline.killed_t is not None and t >= self.timeline.killed_t


def _left(worker: Worker, t: int) -> bool:
    return worker.working_until is not None and worker.working_until <= t
