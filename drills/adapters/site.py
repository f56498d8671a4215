"""The site: what an adapter sees of the world, and how it starts processes in it.

Adapters run in a thread of their own, the keeper is talked to from the driver's loop: `DriverSite` hops over.
"""

import asyncio
import json
import os
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from drills import shims
from drills import world as worlds
from drills.adapters.base import Spawned
from drills.errors import HarnessTrouble
from drills.keeper_client import KeeperClient, KeeperError, Role
from drills.operator import Operator
from drills.script import Drill
from drills.world import World

T = TypeVar("T")

_KEEPER_WITHIN_S = 20.0  # the keeper client's own bound is shorter; this one is for a driver's loop that stands still


class DriverSite:
    """The `Site` of one run; created in the driver's loop."""

    def __init__(
        self,
        world: World,
        keeper: KeeperClient,
        operator: Operator,
        misbehaviours: list[Mapping[str, Any]],
        drill: Drill,
    ) -> None:
        self._world, self._keeper, self._operator, self._drill = world, keeper, operator, drill
        self._misbehaviours = misbehaviours
        self._loop = asyncio.get_running_loop()
        self.run_id = world.run_id
        self.run_dir, self.repo, self.origin = world.run_dir, world.repo, world.origin
        self.worktrees, self.control, self.manifest = world.worktrees, world.control, world.manifest
        self.events, self.plan, self.config = world.events, world.plan, world.config
        self.worker_argv = worlds.worker_argv()
        shims.install(world.bin)
        self.env: Mapping[str, str] = self._environment()
        self.coordinator: int | None = None
        self._procs: dict[str, int] = {}

    def _environment(self) -> dict[str, str]:
        port = json.loads(self._world.port_file.read_text())["port"]
        environment = self._world.environment()
        return {
            **environment,
            # A script that calls an agent CLI gets a simulated worker, never the real one with a real account.
            "PATH": f"{self._world.bin}{os.pathsep}{environment['PATH']}",
            "STOPDRILL_PROVIDER": f"http://127.0.0.1:{port}",
            # A credential that is none, so that a ghost can be named by what it would have held.
            "WORKER_API_TOKEN": "not-a-secret",
        }

    def install_shims(self, names: Sequence[str]) -> None:
        """See `Site.install_shims`."""
        shims.install(self._world.bin, names)

    def misbehave(self, task: str, name: str, **parameters: Any) -> None:
        """Add a scripted misbehaviour; takes effect in `write_plan`."""
        self._misbehaviours.append({"task": task, "name": name, **parameters})

    def write_plan(self) -> None:
        """Write plan.json and config.json for the bundled coordinators and the simulated workers."""
        drill, world = self._drill, self._world
        worlds.write_json(world.plan, worlds.plan(world, drill, tuple(self._misbehaviours)))
        worlds.write_json(
            world.config,
            {
                "run": world.run_id,
                "repo": str(world.repo),
                "origin": str(world.origin),
                "worktrees": str(world.worktrees),
                "control": str(world.control),
                "manifest": str(world.manifest),
                "events": str(world.events),
                "plan": str(world.plan),
                "logs": str(world.root / "logs"),
                "python": self.worker_argv[0],
                "worker": list(self.worker_argv),
                "env": dict(self.env),
                "base": "main",
                "grace_s": drill.real(drill.abort.grace),
                "kill_after_s": drill.real(drill.abort.kill_after),
            },
        )

    async def spawn(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Spawned:
        """Start a process of the subject in its own session, under the keeper's eyes. Raises HarnessTrouble."""
        log = self.log(name)
        role: Role = "coordinator" if name == "coordinator" else "run"
        work = self._keeper.spawn(
            name,
            role,
            argv,
            env={**self.env, **(env or {})},
            cwd=cwd or self._world.root,
            stdout=log,
            stderr=log,
        )
        spawned = await self._hop(work, _KEEPER_WITHIN_S, f"the keeper did not start {name}; see {log}")
        self._procs[name] = spawned.proc
        if role == "coordinator":
            self.coordinator = spawned.proc
        return Spawned(spawned.pid, spawned.proc)

    async def wait_exit(self, name: str, within_s: float) -> int | None:
        """See `Site.wait_exit`. Raises HarnessTrouble when there is no such process, or no keeper any more."""
        if name not in self._procs:
            raise HarnessTrouble(f"no process named {name} was started")
        try:
            work = self._keeper.wait_exit(name, within_s)
            ended = await self._hop(work, within_s + _KEEPER_WITHIN_S, f"the end of {name} could not be waited for")
        except KeeperError as error:
            if self._keeper.dead.done():
                raise HarnessTrouble(str(error)) from None
            return None
        return ended.status if ended.signal is None else -ended.signal

    async def signal(self, name: str, number: int) -> None:
        """See `Site.signal`; goes through the keeper's pidfd, so it can't reach a recycled pid."""
        if name not in self._procs:
            raise HarnessTrouble(f"no process named {name} was started")
        work = self._keeper.signal(self._procs[name], number)
        try:
            await self._hop(work, _KEEPER_WITHIN_S, f"the keeper did not signal {name}")
        except KeeperError as error:
            raise HarnessTrouble(f"{name} could not be signalled: {error}") from None

    def log(self, name: str) -> Path:
        """See `Site.log`."""
        return self._world.root / "logs" / f"{name}.txt"

    def real(self, drill_seconds: float) -> float:
        """See `Site.real`."""
        return self._drill.real(drill_seconds)

    async def _hop(self, work: Coroutine[Any, Any, T], within_s: float, otherwise: str) -> T:
        """Await the driver's own coroutine from the adapter's loop."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise HarnessTrouble(f"{otherwise} within {within_s:g} s") from None

    def delivered(self) -> None:
        """See `Site.delivered`; safe to call from the adapter's thread."""
        self._operator.delivered()
