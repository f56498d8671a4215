"""When to look: snapshots of worktrees, refs and processes at the instants that the contract names.

Labels are `pause@1:quiet`, `abort@4:sweep` …: the control, its number, and the instant. Snapshots of many worktrees
run in threads, because one `git status` after the other would smear the instant over a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from drills.keeper_client import KeeperClient
from drills.observers import gitstate
from drills.observers.tail import Tail
from drills.script import Drill
from drills.world import World
from scoring.journal import Journal


class Watch:
    """Takes snapshots for one run and writes them to the driver's journal."""

    def __init__(self, drill: Drill, world: World, journal: Journal, keeper: KeeperClient, tail: Tail) -> None:
        self._drill, self._world, self._journal = drill, world, journal
        self._keeper, self._tail = keeper, tail
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="gitstate")
        self.longest_s = drill.real(drill.longest_call)

    async def snapshot(self, when: str, *, processes: bool = False) -> None:
        """Worktrees and refs as they are now; with `processes`, a full audit by the keeper first."""
        if processes:
            await self._keeper.audit(when)
        loop = asyncio.get_running_loop()
        jobs = [
            loop.run_in_executor(self._threads, gitstate.worktree, task, path, self._world.base, files)
            for task, path, files in self._worktrees()
        ]
        for state in await asyncio.gather(*jobs):
            self._journal.write("worktree.state", when=when, base=self._world.base, **state.fields())
        for where, path in (("repo", self._world.repo), ("origin", self._world.origin)):
            refs, stashes = await loop.run_in_executor(self._threads, gitstate.refs, path)
            self._journal.write("refs.state", when=when, where=where, refs=refs, stashes=stashes)

    def _worktrees(self) -> list[tuple[str, Path, tuple[str, ...]]]:
        """Planned tasks, and whatever else stands in the worktrees folder."""
        files = {task: tuple(record["files"]) for task, record in self._world.tasks.items()}
        there = {entry.name for entry in self._world.worktrees.iterdir() if entry.is_dir()}
        return [(name, self._world.worktrees / name, files.get(name, ())) for name in sorted(files.keys() | there)]

    async def quiet(self, n: int, until: float) -> None:
        """After pause `n`: wait for quiet that lasts one longest call, then take the snapshot; at latest at `until`.

        The allowance of one longest call is for the checkpoint: the last worker's commit begins only after its call
        has returned, so that a look at the very instant of quiet would accuse an honest worker.
        """
        since: float | None = None
        told = False
        margin = self.longest_s / 4
        while (now := time.monotonic()) < until - margin:
            if self._tail.fleet.in_flight:
                since, told = None, False
            elif since is None:
                since = now
            if since is not None and not told:
                self._journal.write("quiet.seen", control="pause", n=n)
                told = True
            if since is not None and now - since >= self.longest_s:
                await self.snapshot(f"pause@{n}:quiet")
                return
            await asyncio.sleep(0.005)
        label = "quiet" if since is not None else "hold-end"
        await self.snapshot(f"pause@{n}:{label}")

    async def condition(self, name: str, tasks: tuple[str, ...], within_s: float) -> bool:
        """Wait for a condition of the fleet; False when `within_s` real seconds have passed."""
        checks: dict[str, Callable[[], bool]] = {
            "all-mid-task": lambda: self._tail.fleet.at_work(tasks),
            "all-mid-call": lambda: len(self._tail.fleet.in_flight) >= len(tasks) and self._tail.fleet.at_work(tasks),
            "any-mid-call": lambda: bool(self._tail.fleet.in_flight),
            "quiet": lambda: not self._tail.fleet.in_flight,
        }
        return await wait_for(checks[name], within_s)

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


async def wait_for(look: Callable[[], Any], within_s: float, every_s: float = 0.005) -> bool:
    """Await until `look()` is true; False when `within_s` real seconds have passed."""
    deadline = time.monotonic() + within_s
    while not look():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(every_s)
    return True


async def follow(tail: Tail, every_s: float, changed: Callable[[], Awaitable[None] | None]) -> None:
    """Poll the event files for ever; the caller cancels it."""
    while True:
        tail.poll()
        changed()
        await asyncio.sleep(every_s)
