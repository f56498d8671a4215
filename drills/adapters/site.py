"""The site: what an adapter sees of the world, and how it starts processes in it.

Adapters run in a thread of their own, the keeper is talked to from the driver's loop: `DriverSite.spawn` hops over.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drills import world as worlds
from drills.adapters.base import Spawned
from drills.errors import HarnessTrouble
from drills.keeper_client import KeeperClient, Role
from drills.operator import Operator
from drills.script import Drill
from drills.world import World

_SPAWN_WITHIN_S = 20.0


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
        self.env: Mapping[str, str] = self._environment()
        self.coordinator: int | None = None

    def _environment(self) -> dict[str, str]:
        port = json.loads(self._world.port_file.read_text())["port"]
        return {
            **self._world.environment(),
            "STOPDRILL_PROVIDER": f"http://127.0.0.1:{port}",
            # A credential that is none, so that a ghost can be named by what it would have held.
            "WORKER_API_TOKEN": "not-a-secret",
        }

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
        log = self._world.root / "logs" / f"{name}.txt"
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
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            async with asyncio.timeout(_SPAWN_WITHIN_S):
                spawned = await asyncio.wrap_future(future)
        except TimeoutError:
            raise HarnessTrouble(f"the keeper did not start {name} within {_SPAWN_WITHIN_S:g} s; see {log}") from None
        if role == "coordinator":
            self.coordinator = spawned.proc
        return Spawned(spawned.pid, spawned.proc)

    def delivered(self) -> None:
        """See `Site.delivered`; safe to call from the adapter's thread."""
        self._operator.delivered()
