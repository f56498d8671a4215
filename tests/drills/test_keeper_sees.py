"""The keeper sees every process of the run, however it detaches, and tells whose it is."""

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from drills.keeper import procfs
from drills.keeper_client import KeeperClient
from tests.drills.keeper_world import ESCAPES, World, is_dead, keeping, run_async, soon

HYBRID = Path("/sys/fs/cgroup/unified")
CGROUP_ROOT = HYBRID if HYBRID.is_dir() else Path("/sys/fs/cgroup")
# A child that the keeper has the time to see alive, and that nobody reaps.
ZOMBIE = "tell('zombie')\nif os.fork() == 0: time.sleep(0.2); os._exit(5)\nstay()"


async def _pids_of(world: World, client: KeeperClient, names: list[str]) -> dict[str, int]:
    pids = {name: await soon(partial(world.pid_in, name), f"the pid of {name}") for name in names}
    for name, pid in pids.items():
        await soon(partial(world.started, pid), f"proc.start of {name}")
    return pids


@pytest.mark.parametrize("use_cgroup", [True, False])
def test_every_escape_is_seen_attributed_and_killed(tmp_path: Path, use_cgroup: bool) -> None:
    """Hazard: a helper that leaves its session, its parent, its name or its environment outlives an abort."""

    async def check() -> None:
        async with keeping(tmp_path, use_cgroup=use_cgroup) as (world, client):
            await world.spawn_escapes(client, ESCAPES)
            pids = await _pids_of(world, client, list(ESCAPES))
            handles = [os.pidfd_open(pid) for pid in pids.values()]
            alive = {process.pid: process for process in await client.alive("now")}
            assert set(pids.values()) <= alive.keys()
            for name, pid in pids.items():
                start = world.started(pid)
                assert start is not None
                assert (start["task"], start["role"], start["run"]) == (f"task-{name}", "run", world.run)
            assert await client.end("enough") == []
            assert [is_dead(handle) for handle in handles] == [True] * len(handles)
            ended = {event["pid"] for event in world.history("proc.end")}
            assert set(pids.values()) <= ended
            for handle in handles:
                os.close(handle)

    asyncio.run(check())


@run_async
async def test_what_moves_itself_to_another_cgroup_is_seen_and_dies(tmp_path: Path) -> None:
    """Hazard: a cgroup alone misses what moves itself out, and cgroup.kill does not reach it."""
    async with keeping(tmp_path) as (world, client):
        assert client.watching is not None
        if client.watching.cgroup is None or os.geteuid() != 0:
            pytest.skip("needs root and a cgroup v2 hierarchy")
        move = f"open('{CGROUP_ROOT}/cgroup.procs', 'w').write('0')"
        body = f"{move}\nos.fork() and stay()\ntell('moved'); cleared('sleep', '600')"
        await world.spawn_escapes(client, {"moved": body})
        pid = (await _pids_of(world, client, ["moved"]))["moved"]
        start = world.started(pid)
        assert start is not None
        assert (start["via"], start["task"]) == ("tree", "task-moved")
        handle = os.pidfd_open(pid)
        assert await client.end("enough") == []
        assert is_dead(handle)
        os.close(handle)


@run_async
async def test_exit_status_of_processes_that_others_reap_is_recorded(tmp_path: Path) -> None:
    """Hazard: a worker that was killed looks like one that left, because its coordinator reaped it."""
    async with keeping(tmp_path) as (world, client):
        script = "(sleep 0.15; exit 7) & (sleep 0.15; kill -9 $(exec sh -c 'echo $PPID')) & wait; sleep 600"
        await world.spawn(client, "coordinator", "coordinator", "sh", "-c", script)
        await soon(lambda: len(world.history("proc.end")) >= 4, "the children to end")
        ends = {(event["status"], event["signal"]) for event in world.history("proc.end")}
        assert client.watching is not None
        if client.watching.exit_info:
            assert {(7, None), (None, 9)} <= ends
        else:
            assert ends <= {(7, None), (None, 9), (0, None), (None, None)}


@run_async
async def test_a_zombie_is_dead_and_a_frozen_process_is_alive(tmp_path: Path) -> None:
    """Hazard: an unreaped child counts as an orphan, or a stopped one as gone."""
    async with keeping(tmp_path) as (world, client):
        await world.spawn_escapes(client, {"zombie": ZOMBIE, "stopped": ESCAPES["stopped"]})
        parent, stopped = (await _pids_of(world, client, ["zombie", "stopped"])).values()
        child = await soon(
            lambda: next((e for e in world.history("proc.start") if e["ppid"] == parent), None), "the child"
        )
        end = await soon(
            lambda: next((e for e in world.history("proc.end") if e["proc"] == child["proc"]), None),
            "its end",
        )
        assert (end["status"], end["signal"]) == (5, None)
        frozen = await soon(lambda: world.history("proc.state"), "proc.state")
        assert [(event["pid"], event["state"]) for event in frozen] == [(stopped, "T")]
        states = {process.pid: process.state for process in await client.alive("now")}
        assert child["pid"] not in states
        assert states[stopped] == "T"
        assert parent in states
        assert procfs.read_stat(child["pid"]) is not None, "no zombie, no proof"


@run_async
async def test_a_program_that_is_executed_later_is_told(tmp_path: Path) -> None:
    """Hazard: a harmless name at the start, another program behind the same pid afterwards."""
    async with keeping(tmp_path) as (world, client):
        spawned = await world.spawn(client, "it", "coordinator", "sh", "-c", "sleep 0.3; exec sleep 600")
        # Of the shell itself: its child may be told twice too, where fork to exec takes long.
        changed = await soon(
            lambda: [event for event in world.history("proc.exec") if event["proc"] == spawned.proc],
            "proc.exec",
        )
        assert [(event["cmdline"], event["renamed"]) for event in changed] == [(["sleep", "600"], False)]


@run_async
async def test_names_of_credentials_are_told_and_values_never(tmp_path: Path) -> None:
    """Hazard: the report of a leak leaks the secret."""
    async with keeping(tmp_path) as (world, client):
        secrets = {
            "WORKER_API_TOKEN": "tell-nobody-1",
            "Db_Password": "tell-nobody-2",
            "STOPDRILL_TOKEN": "x",
        }
        spawned = await world.spawn(client, "worker", "run", "sleep", "600", **secrets)
        start = world.started(spawned.pid)
        assert start is not None
        assert start["cred_names"] == ["Db_Password", "WORKER_API_TOKEN"]
        assert b"tell-nobody" not in (world.events / "keeper.jsonl").read_bytes()


@run_async
async def test_a_look_alike_that_is_not_of_the_run_is_neither_seen_nor_hurt(tmp_path: Path) -> None:
    """Hazard: a stop by name or environment reaches the neighbour."""
    async with keeping(tmp_path) as (world, client):
        await world.spawn(client, "worker", "run", "sleep", "599", TASK_ID="t01")
        neighbour = await asyncio.create_subprocess_exec(
            "sleep", "599", env={"PATH": os.environ["PATH"], "RUN_ID": world.run, "TASK_ID": "t01"}
        )
        try:
            for label in ("one", "two"):
                assert neighbour.pid not in [process.pid for process in await client.alive(label)]
            assert await client.end("enough") == []
            assert world.started(neighbour.pid) is None
            assert neighbour.returncode is None
        finally:
            neighbour.kill()
            assert await neighbour.wait() == -9


@run_async
async def test_services_are_watched_but_not_of_the_run(tmp_path: Path) -> None:
    """Hazard: the harness's own programs, and their children, count as orphans of the subject."""
    async with keeping(tmp_path) as (world, client):
        await world.spawn(client, "provider", "service", "sh", "-c", "sleep 600 & sleep 600")
        roles = await soon(
            lambda: [r for r in [[e["role"] for e in world.history("proc.start")]] if len(r) == 3],
            "its children",
        )
        assert roles == [["service"] * 3]
        assert await client.alive("now") == []


def test_a_name_full_of_brackets_does_not_fool_the_reader() -> None:
    """Hazard: a process that calls itself `x) R 1 (y` forges its own parent."""
    own = Path("/proc/self/comm")
    before = own.read_text()
    try:
        own.write_text("x) R 1 (y")
        stat = procfs.read_stat(os.getpid())
    finally:
        own.write_text(before.strip())
    assert stat is not None
    assert (stat.comm, stat.ppid, stat.sid) == ("x) R 1 (y", os.getppid(), os.getsid(0))
