"""The scenes of a conformance run: each a small fleet and an order of calls that a careless adapter falls over."""

import asyncio
from dataclasses import dataclass

from drills.adapters.base import BaseAdapter
from drills.conformance.trial import Script, Trial


async def in_order(trial: Trial) -> None:
    """Each control as it should come, and then once more; controls after the abort."""
    await trial.claims("before the start")
    if not await trial.start("starts"):
        return
    for verb in ("pause", "resume", "redirect"):
        for kind, when in (("answers", f"the {verb}"), ("twice", f"the second {verb}")):
            await trial.control(kind, when, verb, *_instruction(trial, verb))
    await trial.claims("during the run")
    if await trial.control("answers", "the abort", "abort") is not None:
        # While workers are left there is change without end: then only the answers are looked at.
        issue = trial.without_effect if await trial.aborted() else trial.control
        await issue("second-abort", "the second abort", "abort")
        for verb in ("pause", "resume", "redirect"):
            await issue("after-abort", f"{verb} after the abort", verb, *_instruction(trial, verb))
    await trial.close()
    await trial.claims("after the end")


async def in_odd_orders(trial: Trial) -> None:
    """A resume without a pause, a redirect and an abort during a hold."""
    if not await trial.start("starts-again"):
        return
    await trial.control("odd-orders", "a resume without a pause", "resume")
    await trial.control("odd-orders", "the pause after it", "pause")
    await trial.control("in-a-hold", "a redirect during a hold", "redirect", *_instruction(trial, "redirect"))
    await trial.claims("during a hold")
    if await trial.control("in-a-hold", "an abort during a hold", "abort") is not None:
        await trial.aborted()
    await trial.close()


async def overlapping(trial: Trial) -> None:
    """An abort while a pause has not been answered, as an operator in a hurry gives it."""
    if not (trial.has("pause") and trial.has("abort")) or not await trial.start("starts"):
        return
    pause = asyncio.ensure_future(trial.control("overlapping", "a pause that an abort overtakes", "pause"))
    await asyncio.sleep(0)
    abort = asyncio.ensure_future(trial.control("overlapping", "an abort right after a pause", "abort"))
    await asyncio.gather(pause, abort)
    await trial.aborted()
    await trial.close()


async def coordinator_dies(trial: Trial) -> None:
    """SIGKILL to the coordinator: what it says of itself, its restart, its abort and its close."""
    if not await trial.start("starts") or not await trial.kill_coordinator():
        return
    kind = "coordinator-dies"
    await trial.claims("after the coordinator's death", kind)
    if type(trial.adapter).restart is not BaseAdapter.restart:
        await trial.call(kind, "after the coordinator's death", "restart", within_s=15.0)
        if await trial.control(kind, "an abort after the restart", "abort") is not None:
            await trial.aborted()
    else:
        trial.dead = True
    await trial.close()


def _instruction(trial: Trial, verb: str) -> tuple[object, ...]:
    return (trial.redirect(),) if verb == "redirect" else ()


@dataclass(frozen=True)
class Scene:
    """A script, and whether it needs the very adapter that the scene before it closed."""

    name: str
    script: Script
    same_adapter: bool = False


SCENES = (
    Scene("in-order", in_order),
    Scene("odd-orders", in_odd_orders, same_adapter=True),
    Scene("overlapping", overlapping),
    Scene("coordinator-dies", coordinator_dies),
)
