"""Nothing of a run outlives it, whoever of keeper, warden and driver dies first."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from drills.keeper_client import KeeperClient, KeeperError
from tests.drills.keeper_world import ESCAPES, World, is_dead, keeping, run_async, soon
from tests.waiting import until

ROOT = Path(__file__).parents[2]
HARD = {name: ESCAPES[name] for name in ("double-fork", "stopped", "stubborn")}
BYSTANDER = str(ROOT / "fakes" / "bystander.py")


async def _hard_to_kill(world: World, client: KeeperClient) -> list[int]:
    """Handles on a coordinator, on processes that resist, and on a service."""
    coordinator = await world.spawn_escapes(client, HARD)
    argv = (sys.executable, "-I", "-S", "-E", BYSTANDER, "--events", str(world.events), "--name", "b")
    service = await world.spawn(client, "bystander", "service", *argv)
    pids = [await soon(partial(world.pid_in, name), name) for name in HARD]
    await soon(lambda: world.history("bystander.begin", source="bystander-b"), "the bystander")
    return [os.pidfd_open(pid) for pid in (coordinator.pid, service.pid, *pids)]


def _kill(pid: int) -> None:
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)


async def _all_dead(handles: list[int], within_s: float = 5.0) -> None:
    await soon(lambda: all(map(is_dead, handles)), "everything of the run to be dead", within_s)
    for handle in handles:
        os.close(handle)


def _no_cgroup_left(client: KeeperClient) -> bool:
    assert client.watching is not None
    return client.watching.cgroup is None or not Path(client.watching.cgroup).exists()


@run_async
async def test_the_keepers_death_is_the_runs_death(tmp_path: Path) -> None:
    """Hazard: an abort that reaches too far kills the watcher, and the fleet goes on unseen."""
    async with keeping(tmp_path) as (world, client):
        handles = await _hard_to_kill(world, client)
        assert client.watching is not None
        _kill(client.watching.pid)
        why = await asyncio.wait_for(client.dead, 8)
        assert "the keeper died; its warden ended with 70" in why
        assert str(world.events) in why
        await _all_dead(handles, 0.5)
        assert _no_cgroup_left(client)
        with pytest.raises(KeeperError, match="the keeper died"):
            await client.alive("too late")


@run_async
async def test_the_wardens_death_is_the_runs_death(tmp_path: Path) -> None:
    """Hazard: without its warden, the keeper's own death would go unnoticed."""
    async with keeping(tmp_path) as (world, client):
        handles = await _hard_to_kill(world, client)
        _kill(client._process.pid)
        await asyncio.wait_for(client.dead, 8)
        await _all_dead(handles, 0.5)
        assert world.history("keeper.end")[0]["why"] == "the warden died"
        assert _no_cgroup_left(client)


@run_async
async def test_the_death_of_both_at_once_is_the_runs_death(tmp_path: Path) -> None:
    """Hazard: killed by the kernel together, when memory is short."""
    async with keeping(tmp_path) as (world, client):
        assert client.watching is not None
        if client.watching.cgroup is None:
            pytest.skip("without a cgroup nobody can find the run any more")
        handles = await _hard_to_kill(world, client)
        for pid in (client._process.pid, client.watching.pid):
            _kill(pid)
        await asyncio.wait_for(client.dead, 8)
        await _all_dead(handles)
        assert _no_cgroup_left(client)


DRIVER = """
import asyncio, pathlib, sys
sys.path.insert(0, {root!r})
from tests.drills.keeper_world import keeping
from tests.drills.test_keeper_ends import _hard_to_kill
import json
async def main():
    async with keeping(pathlib.Path({folder!r})) as (world, client):
        await _hard_to_kill(world, client)
        alive = [process.pid for process in await client.alive("now")]
        print(json.dumps([client._process.pid, client.watching.pid, *alive]), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def test_the_drivers_death_is_the_runs_death(tmp_path: Path) -> None:
    """Hazard: kill -9 of the harness leaves a fleet that nobody will ever stop."""
    script = DRIVER.format(root=str(ROOT), folder=str(tmp_path))
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        handles = [os.pidfd_open(pid) for pid in json.loads(driver.stdout.readline())]
    finally:
        driver.kill()
        driver.communicate()
    assert len(handles) >= 6
    until(lambda: all(map(is_dead, handles)), 6, "keeper, warden and the whole run to be dead")
    for handle in handles:
        os.close(handle)
    assert World(tmp_path, "").history("keeper.end")[0]["why"] == "driver died"


@run_async
async def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    """Hazard: the keeper goes on without being able to write what it sees."""
    async with keeping(tmp_path) as (world, client):
        handles = await _hard_to_kill(world, client)
        assert client.watching is not None
        size = (world.events / "keeper.jsonl").stat().st_size
        _, hard = resource.prlimit(client.watching.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(client.watching.pid, resource.RLIMIT_FSIZE, (size + 20, hard))
        with pytest.raises(KeeperError):
            await world.spawn(client, "more", "run", "sleep", "600")
            await client.alive("now")
        assert "cannot write the keeper's events" in await asyncio.wait_for(client.dead, 8)
        await _all_dead(handles, 0.5)
        assert client._process.returncode == 74


@run_async
async def test_the_end_is_orderly_and_told(tmp_path: Path) -> None:
    """Hazard: a service dies before it closed its journal; a bystander takes its dismissal for an attack."""
    async with keeping(tmp_path) as (world, client):
        handles = await _hard_to_kill(world, client)
        assert await client.end("done") == []
        await _all_dead(handles, 0.5)
        (kill,), (end,) = world.history("keeper.kill"), world.history("keeper.end")
        assert (kill["why"], end["why"], end["left"]) == ("done", "done", [])
        assert kill["count"] >= 4
        kinds = ["bystander.begin", "bystander.end"]
        told = world.history("bystander.begin", "bystander.signal", "bystander.end", source="bystander-b")
        assert [event["kind"] for event in told] == kinds
        started = {event["proc"] for event in world.history("proc.start")}
        assert started == {event["proc"] for event in world.history("proc.end")}
        assert client._process.returncode == 0
        assert not client.dead.done()
        assert _no_cgroup_left(client)


@run_async
async def test_sigterm_to_the_warden_is_an_orderly_end(tmp_path: Path) -> None:
    """Hazard: a service manager stops the harness, and the run stays."""
    async with keeping(tmp_path) as (world, client):
        handles = await _hard_to_kill(world, client)
        client._process.terminate()
        await asyncio.wait_for(client.dead, 8)
        await _all_dead(handles, 0.5)
        assert world.history("keeper.end")[0]["why"] == "the keeper received SIGTERM"
