"""The services of a run: model provider, scheduler canary, bystander. Of the harness, and not counted as of the run."""

import sys
from pathlib import Path

import fakes
from drills import world as worlds
from drills.errors import HarnessTrouble
from drills.keeper_client import KeeperClient
from drills.observers.watch import wait_for
from drills.world import World

_STARTS_WITHIN_S = 20.0


async def start(world: World, keeper: KeeperClient) -> dict[str, int]:
    """Start all services; returns name to the keeper's process number. Raises HarnessTrouble when one does not come."""
    logs = world.root / "logs"
    procs = {}
    for name, argv in _commands(world).items():
        environment = world.environment()
        if name == "bystander":
            environment["RUN_ID"] = f"{world.run_id}-neighbour"
        log = logs / f"{name}.txt"
        spawned = await keeper.spawn(name, "service", argv, env=environment, cwd=world.root, stdout=log, stderr=log)
        procs[name] = spawned.proc
    if not await wait_for(world.port_file.exists, _STARTS_WITHIN_S):
        raise HarnessTrouble(
            f"the model provider did not say its port within {_STARTS_WITHIN_S:g} s; see {logs / 'provider.txt'}"
        )
    return procs


def _commands(world: World) -> dict[str, list[str]]:
    """Command lines. The bystander's looks like a worker of a neighbour run, whose id begins like this one's."""
    events = str(world.events)
    here = Path(fakes.__file__).parent
    quick = [sys.executable, "-I", "-S", "-E"]
    lookalike = [*worlds.worker_argv(), "--run", f"{world.run_id}-neighbour", "--task", "t01"][1:]
    provider = [sys.executable, "-I", "-m", "fakes.provider", "--events", events]
    return {
        "provider": [*provider, "--port-file", str(world.port_file), "--token", world.token],
        "canary": [*quick, str(here / "canary.py"), "--events", events],
        "bystander": [*quick, str(here / "bystander.py"), "--events", events, "--name", "neighbour", *lookalike],
    }
