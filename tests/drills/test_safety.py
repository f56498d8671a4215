"""The harness itself: however it ends, nothing of the run lives on, and what it saw can be scored.

The fleet of these drills is one that is hard to get rid of: a helper that has left session, parent and environment
behind, a tool server that ignores EOF and TERM, a worker that ignores TERM.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drills import script
from tests.drills.harness import BAD_FLEET, STOPDRILL, Running, nothing_left, score
from tests.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def drill(tmp_path: Path) -> Path:
    """A drill file with the bad fleet."""
    path = tmp_path / "bad-fleet.toml"
    path.write_text(BAD_FLEET)
    return path


@pytest.fixture
def running(tmp_path: Path, drill: Path) -> Iterator[Running]:
    """A drill on its way, which a failing test does not leave behind."""
    run = Running(tmp_path / "runs", drill)
    yield run
    if run.process.poll() is None:
        run.kill(signal.SIGINT)
        run.finish()


def recorded_pids(run: Running) -> list[int]:
    """Pids of everything that the keeper has seen of the run."""
    return [event["pid"] for event in run.events("proc.start")]


def test_kill_9_of_the_driver_leaves_nothing_and_a_history_to_score(running: Running) -> None:
    """Hazard: the harness is killed by CI's time limit and its own fleet becomes the orphans."""
    running.wait_for("fleet.at-work")
    running.kill()
    _, _, err = running.finish()
    assert "the driver was killed" in err and f"stopdrill score {running.bundle}" in err
    nothing_left(running.bundle, recorded_pids(running))
    status, said = score(running.bundle)
    assert (status, "incomplete" in said) == (3, True), said
    assert running.events("keeper.end")[0]["why"] == "driver died"
    shown = subprocess.run([*STOPDRILL, "report", str(running.bundle)], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "incomplete" in (running.bundle / "report.html").read_text()


@pytest.mark.parametrize("which", [0, 1], ids=["warden", "keeper"])
def test_kill_9_of_the_keeper_ends_the_run_as_broken(running: Running, which: int) -> None:
    """Hazard: without the keeper nobody knows what is alive, and nobody ends it."""
    running.wait_for("fleet.at-work")
    pids = recorded_pids(running)
    os.kill(running.keeper_pids()[which], signal.SIGKILL)
    status, _, err = running.finish()
    nothing_left(running.bundle, pids)
    assert status == 4
    assert "keeper" in err and str(running.bundle) in err
    assert score(running.bundle)[0] in (3, 4)


def test_kill_9_of_driver_and_keeper_together_leaves_nothing(running: Running) -> None:
    """Hazard: an out-of-memory killer does not stop at one process."""
    running.wait_for("fleet.at-work")
    pids = recorded_pids(running)
    _, keeper = running.keeper_pids()
    running.kill()
    os.kill(keeper, signal.SIGKILL)
    running.finish()
    nothing_left(running.bundle, pids)


@pytest.mark.parametrize("phase", ["keeper.begin", "worker.begin", "fleet.at-work", "control.issue", "quiet.seen"])
def test_ctrl_c_at_any_phase_keeps_the_evidence(running: Running, phase: str) -> None:
    """Hazard: Ctrl-C in the wrong moment is exactly what this project is about."""
    running.wait_for(phase)
    running.kill(signal.SIGINT)
    status, _, err = running.finish()
    nothing_left(running.bundle, recorded_pids(running))
    assert status == 130
    assert "interrupted" in err and str(running.bundle) in err
    assert running.events("run.end")[0]["reason"] == "interrupted"
    status, said = score(running.bundle)
    assert status == 3 and "incomplete" in said, said


def test_a_second_ctrl_c_does_not_break_the_ending(running: Running) -> None:
    """Hazard: the impatient operator's second Ctrl-C kills the one who is cleaning up."""
    running.wait_for("fleet.at-work")
    for _ in range(3):
        running.kill(signal.SIGINT)
    assert running.finish()[0] == 130
    nothing_left(running.bundle, recorded_pids(running))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MB; root only, elsewhere a limit on file size does its work."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(path)], check=True, timeout=10)
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=10)


def test_a_full_disk_ends_the_run_with_a_sentence(small_disk: Path, drill: Path) -> None:
    """Hazard: a harness that can't write any more goes on blind, and says pass."""
    run = Running(small_disk / "runs", drill)
    run.wait_for("fleet.at-work")
    filler = (small_disk / "filler").open("wb", buffering=0)
    try:
        while filler.write(b"x" * 65536):
            pass
    except OSError:
        pass  # full, as wanted
    status, _, err = run.finish()
    nothing_left(run.bundle)
    assert status == 4
    assert "No space left" in err or "no space left" in err
    assert "Traceback" not in err


def test_a_read_only_run_directory_is_refused_at_once(tmp_path: Path, drill: Path) -> None:
    """Hazard: a traceback, or half a world, where nothing can be written."""
    if os.geteuid() != 0:
        pytest.skip("mounting a read-only file system needs root")
    path = tmp_path / "readonly"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(path)], check=True, timeout=10)
    try:
        run = Running(path / "runs", drill)
        status, _, err = run.finish()
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, timeout=10)
    assert status == 2
    assert str(path) in err and "--out" in err and "Traceback" not in err


LOOKALIKE = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
print("ready", flush=True)
got = signal.sigwait([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
print("signalled", got, flush=True)
"""


def test_a_stranger_with_the_same_name_and_environment_is_never_signalled(running: Running) -> None:
    """Hazard: a harness that hunts by name or marker kills the work of somebody else."""
    running.wait_for("fleet.at-work")
    worker = next(event for event in running.events("proc.start") if "--task" in event["cmdline"])
    stranger = subprocess.Popen(
        [sys.executable, "-c", LOOKALIKE, *worker["cmdline"]], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "RUN_ID": running.bundle.name, "TASK_ID": "t01"},
    )  # fmt: skip
    assert stranger.stdout is not None and stranger.stdout.readline() == "ready\n"
    running.kill(signal.SIGINT)
    assert running.finish()[0] == 130
    assert stranger.poll() is None
    stranger.send_signal(signal.SIGUSR1)
    assert stranger.communicate(timeout=10)[0] == f"signalled {signal.SIGUSR1!r}\n" or stranger.returncode == 0


ADOPT = """
import os, sys, time
pid = int(sys.argv[1])
for _ in range(2000):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    child = os.fork()
    if child == 0:
        if os.getpid() == pid:
            print("adopted", flush=True)
            sys.stdin.read()
        os._exit(0)
    if child == pid:
        os.waitpid(child, 0)
        print("let go", flush=True)
        sys.exit(0)
    os.waitpid(child, 0)
"""


def test_a_recycled_pid_of_a_worker_is_never_signalled(tmp_path: Path) -> None:
    """Hazard: pids are recycled; whoever stops "the worker with pid 4711" a minute later stops somebody else."""
    if os.geteuid() != 0:
        pytest.skip("choosing a pid needs root")
    small, _ = script.load(script.find("small"))
    path = tmp_path / "late-abort.toml"
    path.write_text(script.parse(small.to_toml().replace('at = "152s"', 'at = "400s"')).to_toml())
    run = Running(tmp_path / "runs", path)
    dropped = until(lambda: [e for e in run.events("worker.end") if e["reason"] == "drop"], 40, "a dropped worker")
    pid = dropped[0]["pid"]
    until(lambda: any(e["pid"] == pid for e in run.events("proc.end")), 10, "the end of the dropped worker")
    stranger = subprocess.Popen(
        [sys.executable, "-c", ADOPT, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert stranger.stdout is not None and stranger.stdout.readline() == "adopted\n"
    status, out, _ = run.finish()
    assert Path(f"/proc/{pid}").exists(), "the stranger with the recycled pid was ended"
    assert stranger.communicate("", timeout=10)[0] == "let go\n"
    assert status == 0, out
    nothing_left(run.bundle)


def test_help_and_catalogue_need_no_run() -> None:
    """Hazard: a command that starts the world to print a list."""
    for words in (["--help"], ["run", "--help"], ["catalogue"], ["catalogue", "rows", "--json"]):
        done = subprocess.run([*STOPDRILL, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout
