"""What the keeper's tests share: a run in a folder, its history, and programs that try to escape."""

import asyncio
import json
import os
import select
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.keeper_client import KeeperClient, Role, Spawned
from tests.waiting import until

CHILD = """
import os, signal, sys, time
def tell(name):
    with open(name + ".new", "w") as file: file.write(str(os.getpid()))
    os.rename(name + ".new", name)
def stay():
    while True: time.sleep(60)
def cleared(*argv):
    os.execve("/bin/sleep", argv, {})
"""

ESCAPES = {
    "setsid": "os.fork() and stay(); os.setsid(); tell('setsid'); stay()",
    "double-fork": """
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/"); os.environ["TASK_ID"]; open(os.environ["HERE"] + "/double-fork", "w").write(str(os.getpid()));
stay() """,
    "cleared": "os.fork() and stay(); tell('cleared'); os.chdir('/'); cleared('sleep', '600')",
    "renamed": """
os.fork() and stay()
open("/proc/self/comm", "w").write("x) R 1 (y"); tell("renamed"); os.chdir("/"); cleared(") S 1 (", "600")
""",
    "orphan": "os.fork() and os._exit(0); tell('orphan'); cleared('sleep', '600')",
    "stopped": "tell('stopped'); os.kill(os.getpid(), signal.SIGSTOP); stay()",
    "stubborn": """
for number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)
tell("stubborn"); stay()
""",
}


@dataclass
class World:
    """A run's folders: `events`, `worktrees/<task>`, and where processes write their pids."""

    root: Path
    run: str

    @property
    def events(self) -> Path:
        return self.root / "events"

    def history(self, *kinds: str, source: str = "keeper") -> list[dict[str, Any]]:
        """The events of these kinds that have been written so far."""
        path = self.events / f"{source}.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if event["kind"] in kinds]

    def started(self, pid: int) -> dict[str, Any] | None:
        """The proc.start of the process that has this pid."""
        return next((e for e in self.history("proc.start") if e["pid"] == pid), None)

    def pid_in(self, name: str) -> int | None:
        """The pid that a process wrote into a file of this name, below `worktrees`."""
        for path in (self.root / "worktrees").glob(f"*/{name}"):
            return int(text) if (text := path.read_text()) else None
        return None

    async def spawn(self, client: KeeperClient, name: str, role: Role, *argv: str, **env: str) -> Spawned:
        """Spawn with plain surroundings."""
        return await client.spawn(
            name,
            role,
            argv,
            env={"PATH": os.environ["PATH"], "RUN_ID": self.run, **env},
            cwd=self.root,
            stdout=self.root / f"{name}.txt",
            stderr=self.root / f"{name}.txt",
        )

    async def spawn_escapes(self, client: KeeperClient, escapes: dict[str, str]) -> Spawned:
        """A coordinator that starts a worker for each escape, of task `task-<escape>`, in its worktree."""
        lines = []
        for name, body in escapes.items():
            folder = self.root / "worktrees" / f"task-{name}"
            folder.mkdir(parents=True)
            (folder / "escape.py").write_text(CHILD + body)
            ids = f"HERE={folder} TASK_ID=task-{name} ATTEMPT=2"
            lines.append(f"(cd {folder}; {ids} exec {sys.executable} -I -S escape.py) &")
        script = "\n".join([*lines, "sleep 600"])
        return await self.spawn(client, "coordinator", "coordinator", "sh", "-c", script)


@asynccontextmanager
async def keeping(root: Path, **options: Any) -> AsyncIterator[tuple[World, KeeperClient]]:
    """A world with a keeper; whatever the test did, the run is ended."""
    world = World(root, f"test.{os.getpid()}.{root.name[-40:]}")
    world.events.mkdir()
    (root / "worktrees").mkdir()
    client = await KeeperClient.start(
        world.run, world.events, log=root / "keeper.txt", worktrees=root / "worktrees", **options
    )
    try:
        yield world, client
    finally:
        await client.end("the test is over")


async def soon(look: Callable[[], Any], what: str, within_s: float = 20.0) -> Any:
    """As `tests.waiting.until`, and lets the event loop run."""
    return await asyncio.to_thread(until, look, within_s, what)


def is_dead(pidfd: int) -> bool:
    """Whether the process of this pidfd has ended."""
    return bool(select.select([pidfd], [], [], 0)[0])


def run_async(test: Callable[[Path], Awaitable[None]]) -> Callable[[Path], None]:
    """Run a coroutine test without a plugin."""

    def wrapped(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))  # type: ignore[arg-type]

    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped
