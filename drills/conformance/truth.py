"""What the world says at the instant of an answer: for holding a claimed state against it, and for seeing a change.

A coarse look for an author at a desk; what counts is what a drill says, from its whole history.
"""

import asyncio
from dataclasses import dataclass

import psutil

from drills.adapters.base import Adapter
from drills.keeper_client import KeeperClient
from drills.observers import gitstate
from drills.observers.tail import Tail
from drills.observers.watch import wait_for
from drills.world import World
from scoring.findings.abort import STOPPED
from scoring.findings.claims import PAUSED, RUNNING

_DYING_S = 0.25  # a worker that has stopped needs a moment to be gone
_GOES_ON_WITHIN_L = 6
_SHOWN_MAX = 3


async def contradiction(state: str, adapter: Adapter, tail: Tail, keeper: KeeperClient, longest_s: float) -> str | None:
    """How a state that was just claimed differs from what is seen; None when it does not, or claims nothing."""
    word = state.lower()
    tail.poll()
    if word in PAUSED:
        return await _still_calling(state, adapter.capabilities.pause_means == "hold", tail, longest_s)
    if word in RUNNING:
        before = _calls(tail)
        if await wait_for(lambda: _calls(tail) > before, _GOES_ON_WITHIN_L * longest_s):
            return None
        return f"it said {state!r} and no tool call began within {_GOES_ON_WITHIN_L} longest calls"
    if word in STOPPED and (alive := await _alive(keeper)):
        await asyncio.sleep(_DYING_S)
        alive = await _alive(keeper)
        if alive:
            return f"it said {state!r} while {len(alive)} processes were alive: {'; '.join(alive[:_SHOWN_MAX])}"
    return None


async def _still_calling(state: str, may_finish: bool, tail: Tail, longest_s: float) -> str | None:
    running = [worker.task for worker in tail.fleet.workers.values() if worker.pid in tail.fleet.in_flight.values()]
    if running and not may_finish:
        return f"it said {state!r} while tool calls were in flight ({', '.join(running[:_SHOWN_MAX])})"
    before = _calls(tail)
    if await wait_for(lambda: _calls(tail) > before, 1.5 * longest_s):
        return f"it said {state!r} and a tool call began after that"
    return None


def _calls(tail: Tail) -> int:
    return sum(worker.calls for worker in tail.fleet.workers.values())


async def _alive(keeper: KeeperClient) -> list[str]:
    found = await keeper.alive("conformance")
    return [f"{one.task or one.pid} ({' '.join(one.cmdline)[-60:]})" for one in found if one.role == "run"]


@dataclass(frozen=True)
class Snapshot:
    """What a control that has to change nothing could change."""

    refs: tuple[tuple[str, str], ...]
    worktrees: frozenset[str]
    workers: frozenset[tuple[str, int]]


def snapshot(world: World, tail: Tail) -> Snapshot:
    """Branches and tags, worktrees, and the workers that are alive. Blocks for a moment."""
    refs, _ = gitstate.refs(world.repo)
    folders = frozenset(entry.name for entry in world.worktrees.iterdir())
    workers = frozenset((worker.task, worker.pid) for worker in tail.fleet.alive())
    return Snapshot(tuple(sorted(refs.items())), folders, workers)


def differences(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """What is different, in words; a worker that ended meanwhile is none."""
    found = []
    if before.refs != after.refs:
        names = sorted({name for name, _ in set(before.refs) ^ set(after.refs)})
        found.append(f"changed branches or tags ({', '.join(names[:_SHOWN_MAX])})")
    if gone := before.worktrees - after.worktrees:
        found.append(f"removed worktrees ({', '.join(sorted(gone))})")
    if new := after.worktrees - before.worktrees:
        found.append(f"made worktrees ({', '.join(sorted(new))})")
    if begun := after.workers - before.workers:
        found.append(f"started workers ({', '.join(sorted(task for task, _ in begun))})")
    return tuple(found)


def children_outside(keeper: KeeperClient) -> dict[int, str]:
    """Our own processes that are not below the keeper: pid to command line."""
    assert keeper.watching is not None
    top = keeper.watching.pid
    above = {parent.pid for parent in psutil.Process(top).parents()}
    return {
        child.pid: line
        for child in psutil.Process().children(recursive=True)
        if child.pid not in above and (line := _line_outside(child, top))
    }


def _line_outside(process: psutil.Process, top: int) -> str:
    """Its command line if it is alive and not below `top`."""
    try:
        # Its own ancestors, and not a list made before, because processes begin below the keeper all the time.
        if top in (process.pid, *(parent.pid for parent in process.parents())):
            return ""
        return "" if process.status() == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())[:80]
    except psutil.Error:
        return ""  # it ended while it was looked at: then it is not left
