"""What the driver asks of the keeper is answered, refused with a sentence, or bounded."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from drills.keeper import program
from drills.keeper_client import Exit, KeeperClient, KeeperError
from tests.drills.keeper_world import keeping, run_async, soon


@run_async
async def test_what_cannot_be_started_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Hazard: a missing program hangs the drill, or leaves half a process behind."""
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    good: dict[str, Any] = {"env": {"PATH": os.environ["PATH"]}, "cwd": tmp_path}
    good |= {"stdout": plain, "stderr": plain}
    nowhere = tmp_path / "nowhere" / "at-all"
    async with keeping(tmp_path) as (world, client):
        for argv, changed, sentence in (
            (["no-such-program"], {}, "cannot start it: execute no-such-program: No such file"),
            ([str(plain)], {}, f"cannot start it: execute {plain}: Permission denied"),
            (["true"], {"cwd": nowhere}, f"cannot start it: enter the folder {nowhere}: No such file"),
            (["true"], {"stdout": nowhere}, f"cannot start it: open {nowhere}: No such file"),
            ([], {}, "cannot start it: no program given"),
        ):
            with pytest.raises(KeeperError, match=sentence):
                await client.spawn("it", "run", argv, **{**good, **changed})
        assert await client.alive("now") == []
        assert (await world.spawn(client, "it", "run", "true")).proc == 1


@run_async
async def test_exits_are_pushed_with_status_or_signal(tmp_path: Path) -> None:
    """Hazard: the driver polls for the subject's end and stamps it late."""
    async with keeping(tmp_path) as (world, client):
        seen: list[Exit] = []
        client.on_exit = seen.append
        left = await world.spawn(client, "left", "run", "sh", "-c", "exit 3")
        killed = await world.spawn(client, "killed", "run", "sleep", "600")
        await client.signal(killed.proc, signal.SIGKILL)
        assert await client.wait_exit("left", 10) == Exit("left", left.proc, left.pid, 3, None)
        assert await client.wait_exit("killed", 10) == Exit("killed", killed.proc, killed.pid, None, 9)
        await soon(lambda: len(seen) == 2, "both callbacks")
        with pytest.raises(KeeperError, match="is not alive"):
            await client.signal(killed.proc, signal.SIGKILL)
        await world.spawn(client, "stays", "run", "sleep", "600")
        with pytest.raises(KeeperError, match=r"waited 0.05 s for stays to end; see .*keeper.jsonl"):
            await client.wait_exit("stays", 0.05)


@run_async
async def test_a_spawned_program_inherits_nothing(tmp_path: Path) -> None:
    """Hazard: with SIGINT ignored or a pipe of ours held open, a worker behaves as it never would outside."""
    async with keeping(tmp_path) as (world, client):
        script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls -l /proc/self/fd; ps -o sid= -p $$; echo $$; env"
        spawned = await world.spawn(client, "it", "run", "sh", "-c", script)
        assert (await client.wait_exit("it", 10)).status == 0
        text = (tmp_path / "it.txt").read_text().split("\n")
        # Signals 32 and 33 are the C library's own; no program can set them, and some launchers leave them ignored.
        masks = [int(line.split()[1], 16) & ~(0b11 << 31) for line in text[:2]]
        assert masks == [0, 0]
        open_files = [line.split()[8] for line in text if "->" in line and "/proc/" not in line]
        assert open_files == ["0", "1", "2"]
        session_and_pid = [line.strip() for line in text if line.strip().isdigit()]
        assert session_and_pid == [str(spawned.pid)] * 2
        names = {line.partition("=")[0] for line in text if "=" in line}
        assert names <= {"PATH", "RUN_ID", "PWD", "SHLVL", "_", "OLDPWD"}


@run_async
async def test_begin_says_how_processes_are_watched(tmp_path: Path) -> None:
    """Hazard: a run without cgroup or exit status is scored as if it had them."""
    async with keeping(tmp_path, use_cgroup=False) as (world, client):
        (begin,) = world.history("keeper.begin")
        assert client.watching is not None
        assert (begin["pid"], begin["subreaper"], begin["cgroup"]) == (client.watching.pid, True, None)
        assert client.watching.cgroup_why == "not wanted"


@run_async
async def test_a_keeper_that_cannot_write_says_so_at_the_start(tmp_path: Path) -> None:
    """Hazard: a drill runs for minutes and has no history."""
    with pytest.raises(KeeperError, match=r"cannot write the keeper's events in .*: No such file"):
        await KeeperClient.start("r", tmp_path / "missing", log=tmp_path / "keeper.txt")


@run_async
async def test_a_stuck_keeper_is_told_by_name_and_bounded(tmp_path: Path) -> None:
    """Hazard: one frozen process of ours makes the whole drill wait for ever."""
    async with keeping(tmp_path) as (_world, client):
        assert client.watching is not None
        handle = os.pidfd_open(client.watching.pid)
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        with pytest.raises(KeeperError, match=r"waited 0.2 s for an answer; see "):
            await client._ask("an answer", 0.2, do="audit", when="now")
        signal.pidfd_send_signal(handle, signal.SIGCONT)
        os.close(handle)
        assert await client.alive("again") == []


@run_async
async def test_nonsense_is_answered(tmp_path: Path) -> None:
    """Hazard: one malformed command ends the keeper, and with it the run."""
    async with keeping(tmp_path) as (_world, client):
        with pytest.raises(KeeperError, match="knows no command 'dance'"):
            await client._ask("a dance", do="dance")
        with pytest.raises(KeeperError, match="not a command of the keeper: KeyError"):
            await client._ask("an audit", do="audit")
        assert client._process.stdin is not None
        client._process.stdin.write(b"[1,\n\n{}\n")
        assert await client.alive("still there") == []


@run_async
async def test_several_questions_at_once_get_their_own_answers(tmp_path: Path) -> None:
    """Hazard: answers are matched to the wrong question."""
    async with keeping(tmp_path) as (world, client):
        spawned = await asyncio.gather(
            *(world.spawn(client, f"w{n}", "run", "sh", "-c", f"exit {n}") for n in range(8))
        )
        ends = await asyncio.gather(*(client.wait_exit(one.name, 10) for one in spawned))
        assert [(end.name, end.status) for end in ends] == [(f"w{n}", n) for n in range(8)]


def test_a_run_id_that_is_a_path_is_refused() -> None:
    """Hazard: the run id becomes the name of a cgroup, and `../x` another folder."""
    with pytest.raises(ValueError, match="usage"):
        program.parse(["--run", "../x", "--events", "/tmp"])
    with pytest.raises(ValueError, match="unknown argument '--rum'"):
        program.parse(["--rum", "x"])
