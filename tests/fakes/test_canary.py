"""The canary measures the scheduler, writes one line a window, and ends when told."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from fakes import canary
from scoring.history import Event, read_source
from tests.waiting import until

PROGRAM = str(Path(canary.__file__))


def _windows(events: Path) -> list[Event]:
    path = events / "canary.jsonl"
    found, damage, _ = read_source("canary", path.read_bytes() if path.exists() else b"")
    assert damage == []
    return found


def _start(events: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-I", "-S", "-E", PROGRAM, "--events", str(events)])


def test_a_window_is_summed_up_by_nearest_rank() -> None:
    """Hazard: a tolerance that is flattered by interpolation accuses a subject of the machine's faults."""
    late_us = [*range(1, 51)]
    summary = canary.summary(500_000_000, [us * 1000 for us in reversed(late_us)])
    assert summary == {"window_s": 0.5, "n": 50, "p50_us": 25, "p99_us": 50, "max_us": 50}
    assert canary.summary(1, [7_000]) == {"window_s": 0.0, "n": 1, "p50_us": 7, "p99_us": 7, "max_us": 7}


def test_windows_are_written_and_sigterm_ends_it(tmp_path: Path) -> None:
    """Hazard: no tolerance in the history, or a canary that outlives the drill."""
    process = _start(tmp_path)
    try:
        windows = until(lambda: found if len(found := _windows(tmp_path)) >= 2 else None, 20, "two windows")
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    for window in windows:
        assert window.kind == "canary"
        assert window.data["window_s"] >= 0.5
        assert 1 <= window.data["n"] <= 50
        assert 0 <= window.data["p50_us"] <= window.data["p99_us"] <= window.data["max_us"]


def test_a_stall_of_the_machine_shows_as_lateness(tmp_path: Path) -> None:
    """Hazard: a canary that sleeps through a stall reports a calm machine."""
    process = _start(tmp_path)
    try:
        until(lambda: _windows(tmp_path), 20, "the first window")
        process.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "T", 5, "the stop")
        written = len(_windows(tmp_path))
        over = time.monotonic() + 1  # the stall itself, a hundred of its sleeps long
        until(lambda: time.monotonic() >= over, 20, "the end of the stall")
        process.send_signal(signal.SIGCONT)
        late = until(lambda: _windows(tmp_path)[written:], 20, "the window with the stall")
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    assert late[0].data["max_us"] >= 900_000


def test_without_a_folder_it_says_how_it_is_used() -> None:
    """Hazard: a service that fails without a word."""
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (2, "usage: canary.py --events DIR\n")
