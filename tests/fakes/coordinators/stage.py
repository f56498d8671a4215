"""Playing a scene: a coordinator of any kind over the world in memory, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.core import Settings
from fakes.coordinators.reference.plan import Task
from tests.fakes.coordinators.memory import Memory, VirtualLoop

SETTINGS = Settings(
    run="r1", worktrees="wt", longest_call_s=0.3, grace_s=0.4, kill_after_s=0.1, poll_s=0.01, margin_s=0.1
)
INSTRUCTION = {
    "n": 1,
    "text": "version 5 [[instruction-1]]",
    "changes": [{"paths": ["p02/*"], "delta": "target 5 [[delta-1-1]]"}],
    "drops": ["p03/*"],
    "adds": [{"task": "t05", "title": "new", "files": ["p05/x"]}],
}


def plan(n: int = 4) -> dict[str, Task]:
    return {f"t0{i}": Task(f"t0{i}", f"task {i}", (f"p0{i}/x",)) for i in range(1, n + 1)}


def play(
    port: Memory,
    scene: Callable[[Coordinator], Awaitable[None]],
    start: bool = True,
    kind: type[Coordinator] = Coordinator,
) -> None:
    """Run `scene` against a coordinator over `port`, with its watch beside it, for at most ten virtual
    minutes.
    """

    async def whole() -> None:
        subject = kind(port, SETTINGS, plan())
        assert not subject.begin()
        watch = asyncio.create_task(subject.run_watch())
        if start:
            assert (await subject.handle("start", {}))["ok"]
        await scene(subject)
        assert not watch.done(), "the watch crashed"
        watch.cancel()
        await port.finish()

    loop = VirtualLoop()
    try:
        loop.run_until_complete(asyncio.wait_for(whole(), 600))
    finally:
        loop.close()
