"""The bystander survives what can be survived, notes who signalled it, and leaves when its parent says so."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes import bystander
from scoring.history import Event, read_source
from tests.waiting import until

PROGRAM = str(Path(bystander.__file__))
SIGNAL_FROM_ELSEWHERE = "import os, sys; os.kill(int(sys.argv[1]), int(sys.argv[2])); print(os.getpid(), flush=True)"


def _events(folder: Path) -> list[Event]:
    path = folder / "bystander-b1.jsonl"
    found, damage, _ = read_source("bystander-b1", path.read_bytes() if path.exists() else b"")
    assert damage == []
    return found


@pytest.fixture
def standing(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-I", "-S", "-E", PROGRAM, "--events", str(tmp_path), "--name", "b1"]
    process = subprocess.Popen([*argv, "--run", "r1", "--task", "t01"])
    try:
        until(lambda: _events(tmp_path), 20, "bystander.begin")
        yield process
    finally:
        process.kill()
        process.wait(10)


def test_it_notes_a_signal_with_its_sender_and_stays(tmp_path: Path, standing: "subprocess.Popen[bytes]") -> None:
    """Hazard: a stop by name hits the neighbour, and nobody can say who did it."""
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGRTMIN]
    senders = []
    for number in numbers:
        argv = [sys.executable, "-c", SIGNAL_FROM_ELSEWHERE, str(standing.pid), str(int(number))]
        senders.append(int(subprocess.run(argv, capture_output=True, check=True, timeout=20).stdout))
        until(lambda: len(_events(tmp_path)) == 1 + len(senders), 20, f"a note of {number!r}")
    noted = [(event.data["signal"], event.data["sender"]) for event in _events(tmp_path)[1:]]
    assert noted == list(zip(map(int, numbers), senders, strict=True))
    assert {event.kind for event in _events(tmp_path)[1:]} == {"bystander.signal"}
    assert standing.poll() is None


def test_its_parents_sigterm_is_its_dismissal(tmp_path: Path, standing: "subprocess.Popen[bytes]") -> None:
    """Hazard: the harness's own clean-up is taken for a stop that reached too far."""
    standing.send_signal(signal.SIGUSR1)
    until(lambda: len(_events(tmp_path)) == 2, 20, "a note of the parent's other signal")
    standing.send_signal(signal.SIGTERM)
    assert standing.wait(10) == 0
    kinds = [event.kind for event in _events(tmp_path)]
    assert kinds == ["bystander.begin", "bystander.signal", "bystander.end"]


def test_it_looks_the_part(standing: "subprocess.Popen[bytes]") -> None:
    """Hazard: a bystander that no careless search would find proves nothing."""
    cmdline = Path(f"/proc/{standing.pid}/cmdline").read_text().split("\0")
    assert cmdline[-5:-1] == ["--run", "r1", "--task", "t01"]


def test_without_a_name_it_says_how_it_is_used() -> None:
    """Hazard: a service that fails without a word."""
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr[:19]) == (2, "usage: bystander.py")
