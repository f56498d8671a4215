"""Running the command line as a user does, and looking for what it left: helpers for tests of whole drills."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from drills.api import Result
from tests.waiting import until

STOPDRILL = [sys.executable, "-m", "drills"]

BAD_FLEET = """\
name = "bad-fleet"
speed = 40
longest_call = "12s"
[fleet]
workers = 3
calls = { distribution = "uniform", low = "4s", high = "9s", longest = "10s" }
[abort]
grace = "16s"
kill_after = "6s"
sweep_after = "32s"
hold_after = "12s"
[[controls]]
do = "pause"
at = "40s"
[[controls]]
do = "resume"
at = "90s"
[[controls]]
do = "abort"
at = "400s"
[[misbehaviours]]
task = "t01"
name = "detaches"
[[misbehaviours]]
task = "t02"
name = "ignores-eof"
[[misbehaviours]]
task = "t03"
name = "ignores-sigterm"
"""
"""A drill whose fleet is hard to get rid of, and which goes on until it is ended."""


class Running:
    """`stopdrill run` as a process of its own; `bundle` is found as soon as it exists."""

    def __init__(self, out: Path, drill: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.out = out
        command = [*STOPDRILL, "run", str(drill), "--out", str(out), *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip

    @property
    def bundle(self) -> Path:
        """The run's directory."""
        return until(lambda: next(iter(sorted(self.out.glob("r*/events"))), None), 30, "a bundle").parent

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All events of one kind that are in the files by now."""
        found = []
        for file in (self.bundle / "events").glob("*.jsonl"):
            for line in file.read_bytes().split(b"\n"):
                if b'"' + kind.encode() + b'"' in line:
                    try:
                        found.append(json.loads(line))
                    except ValueError:
                        continue  # its writer is in the middle of it
        return [event for event in found if event["kind"] == kind]

    def wait_for(self, kind: str, within_s: float = 40) -> dict[str, Any]:
        """Wait until an event of this kind is in the history."""
        return until(lambda: next(iter(self.events(kind)), None), within_s, f"an event {kind}")

    def keeper_pids(self) -> list[int]:
        """Warden and keeper, outermost first."""
        keeper = self.wait_for("keeper.begin")["pid"]
        return [psutil.Process(keeper).ppid(), keeper]

    def finish(self, within_s: float = 60) -> tuple[int, str, str]:
        """Exit status, stdout and stderr."""
        out, err = self.process.communicate(timeout=within_s)
        return self.process.returncode, out, err

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the driver alone."""
        self.process.send_signal(number)


def pids_of(bundle: Path) -> set[tuple[int, float]]:
    """All processes that carry the run in environment, command line or working directory: pid and start."""
    found = set()
    for process in psutil.process_iter():
        try:
            text = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if process.status() != psutil.STATUS_ZOMBIE and any(bundle.name in part for part in text):
                found.add((process.pid, process.create_time()))
        except psutil.Error:
            continue  # it ended while it was looked at
    return found


def nothing_left(bundle: Path, seen: Sequence[int] = (), within_s: float = 5.0) -> None:
    """Assert that within five seconds nothing of the run is alive, by marker and by the pids that it recorded."""

    def gone() -> bool:
        return not pids_of(bundle) and not [pid for pid in seen if is_of_run(pid, bundle)]

    until(gone, within_s, f"everything of {bundle.name} to be gone; left: {pids_of(bundle)}")


def is_of_run(pid: int, bundle: Path) -> bool:
    """Whether a pid that the run had is still that process: alive, started before now, with our programs."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and any("fakes" in part for part in process.cmdline())
    except psutil.Error:
        return False


def measured(drill: Callable[[], Result]) -> Result:
    """Run a drill until the machine was calm enough to measure it, at most three times; the last result otherwise.

    A drill that says "not measurable" is right to say so, and says nothing about the subject.
    """
    for _ in range(2):
        result = drill()
        findings = result.scorecard.findings if result.scorecard is not None else ()
        if not any(finding.why.startswith("time could not be measured") for finding in findings):
            return result
    return drill()


def score(bundle: Path, *options: str) -> tuple[int, str]:
    """`stopdrill score` on a bundle: exit status and output."""
    done = subprocess.run([*STOPDRILL, "score", str(bundle), *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr
