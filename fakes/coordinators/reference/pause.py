"""Pause and resume: hold at the boundary, and say "paused" only when every worker stands there.

A pause is shown to the workers before anything else; the plan is kept and nothing is started during the
hold. The answer is honest: workers that have not parked in time are named, and the state is then `pausing`,
not `paused`. Deliberately no signal: a process frozen in mid-call holds locks and has no checkpoint.
"""

from collections.abc import Mapping
from typing import Any

from fakes.coordinators.reference.core import HOLDING, RUNNING, Core, Reply
from fakes.coordinators.reference.plan import Refused
from fakes.coordinators.reference.ports import Worker

SETTLE_POLLS = 3


class Pausing(Core):
    """The verbs pause and resume."""

    async def pause(self, args: Mapping[str, Any]) -> Reply:
        """`paused` when every live worker has parked.

        `pausing` with the rest in `moving` after 2 L and a margin.
        """
        self.refuse_after_stop("pause")
        _whole_run(args)
        if self.intent != HOLDING:
            self.hold()
        epoch = self.epoch
        within_s = 2 * self.settings.longest_call_s + self.settings.margin_s
        quiet = await self.until(lambda: not self.moving(), within_s, epoch)
        if quiet:
            # Looked at twice: a worker that was just released by a resume still says "parked" for a moment.
            await self.port.sleep(SETTLE_POLLS * self.settings.poll_s)
            quiet = await self.until(lambda: not self.moving(), within_s, epoch)
        if quiet:
            return {"ok": True, "state": "paused"}
        return {"ok": True, "state": "pausing", "moving": [w.task for w in self.moving()]}

    async def resume(self, args: Mapping[str, Any]) -> Reply:
        """`running` when nobody is parked any more.

        `resuming` with the rest in `parked` after L and a margin.
        """
        self.refuse_after_stop("resume")
        _whole_run(args)
        if self.intent != RUNNING:
            self.release()
        epoch = self.epoch
        within_s = self.settings.longest_call_s + self.settings.margin_s
        moving = await self.until(lambda: not self.resting(), within_s, epoch)
        if moving:
            return {"ok": True, "state": "running"}
        return {"ok": True, "state": "resuming", "parked": [w.task for w in self.resting()]}

    def hold(self) -> None:
        """Tell the workers to wait at their next boundary."""
        self.declare(HOLDING)

    def release(self) -> None:
        """Tell the workers to go on; what waited to be started is found by the watch."""
        self.declare(RUNNING)

    def moving(self) -> list[Worker]:
        """The live workers that do not stand at a boundary."""
        return [w for w in self.live() if not self.parked(w)]

    def resting(self) -> list[Worker]:
        """The live workers that do."""
        return [w for w in self.live() if self.parked(w)]


def _whole_run(args: Mapping[str, Any]) -> None:
    """This coordinator has no smaller scope, and says so rather than hold more than it was asked to."""
    if args.get("scope", "run") != "run":
        raise Refused(f"scope {args['scope']!r} is not known here: only the whole run can be held")
