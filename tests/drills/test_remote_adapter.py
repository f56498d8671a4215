"""An adapter in a process of its own: the same results, and whatever it does to its interpreter stays there."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from drills import script
from drills.adapters import wire
from drills.adapters.base import Ack, Claims, Redirect, Spawned, Table
from drills.adapters.remote import RemoteAdapter, remote_adapter
from drills.api import Result, run, run_async
from scoring.verdict import Verdict
from tests.drills.harness import Running, measured, nothing_left
from tests.waiting import until

HERE = "tests.drills.adapters_for_tests"
PAUSE = {"do": "pause", "at": "32s", "answer_within": "20s"}
ABORT = {"do": "abort", "at": "72s", "answer_within": "20s"}


def drilled(name: str, out: Path, **changes: Any) -> Result:
    """The small drill with an adapter in its own process; neither the run nor the process is left."""
    drill, _ = script.load(script.find("small"))
    used: list[RemoteAdapter] = []

    def once() -> Result:
        used.append(remote_adapter(f"{HERE}:{name}"))
        return run(drill.changed(changes, "test"), used[-1], out=out, report=False)

    result = measured(once)
    nothing_left(result.bundle.path)
    assert [adapter.pid for adapter in used if adapter.pid is None or psutil.pid_exists(adapter.pid)] == []
    assert result.trouble == () and result.scorecard is not None
    return result


def events(result: Result, kind: str) -> list[dict[str, Any]]:
    """Events of the driver of one kind."""
    lines = (result.bundle.path / "events" / "driver.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["kind"] == kind]


def log(result: Result) -> str:
    """What the adapter wrote."""
    return (result.bundle.path / "world" / "logs" / "adapter.txt").read_text(errors="replace")


@pytest.mark.real
def test_a_drill_passes_and_what_the_adapter_prints_is_in_its_log(tmp_path: Path) -> None:
    """Hazard: a print, the adapter's or its programs', that is taken for the protocol."""
    result = drilled("Prints", tmp_path)
    assert result.scorecard is not None and result.scorecard.verdict is Verdict.PASS, result.scorecard
    assert {"from a program", "from the descriptor"} <= set(log(result).splitlines())
    assert len(events(result, "control.delivered")) == 4


@pytest.mark.real
def test_an_adapter_that_ends_its_interpreter_is_an_error_of_its_call(tmp_path: Path) -> None:
    """Hazard: `os._exit` in an adapter ends the drill without a verdict."""
    result = drilled("Exits", tmp_path, controls=[PAUSE, ABORT])
    pause, abort = (event["reason"] for event in events(result, "control.error"))
    assert "in the middle of pause, the adapter's process ended with status 7" in pause
    assert "adapter.txt" in pause
    assert "abort could not be asked: the adapter's process ended with status 7" in abort
    assert "about to exit" in log(result)


@pytest.mark.real
def test_an_adapter_that_blocks_and_ignores_term_is_killed(tmp_path: Path) -> None:
    """Hazard: a blocked adapter that outlives the drill."""
    result = drilled("Deaf", tmp_path, controls=[PAUSE, ABORT])
    assert [event["control"] for event in events(result, "control.timeout")] == ["pause", "abort"]


@pytest.mark.real
def test_an_adapter_that_raises_no_exception_is_asked_again(tmp_path: Path) -> None:
    """Hazard: SystemExit out of a method ends the loop, and every later control with it."""
    result = drilled("Quits", tmp_path, controls=[PAUSE, ABORT])
    assert [event["reason"] for event in events(result, "control.error")] == ["AdapterRaised: SystemExit: 3"]
    assert [event["state"] for event in events(result, "control.ack")] == ["aborted"]


@pytest.mark.real
def test_an_interrupted_run_ends_the_adapters_process(tmp_path: Path) -> None:
    """Hazard: Ctrl-C never comes to the adapter's close, and its process stays."""
    adapter = remote_adapter(f"{HERE}:factory")

    async def main() -> Result:
        running = asyncio.ensure_future(run_async("small", adapter, out=tmp_path, report=False))
        seen = asyncio.get_running_loop().run_in_executor(None, lambda: until(lambda: adapter.pid, 20, "its process"))
        await seen
        running.cancel()
        return await running

    result = asyncio.run(main())
    assert result.interrupted
    assert adapter.pid is not None and not psutil.pid_exists(adapter.pid)
    nothing_left(result.bundle.path)


@pytest.mark.real
def test_the_adapters_process_dies_with_the_driver(tmp_path: Path) -> None:
    """Hazard: kill -9 of the driver leaves an adapter that nobody knows of."""
    drill = tmp_path / "small.toml"
    drill.write_text(script.find("small").read_text())
    running = Running(tmp_path / "runs", drill, "--subject", f"{HERE}:Deaf")
    running.wait_for("control.issue")
    host = next(one for one in psutil.Process(running.process.pid).children() if running.bundle.name in one.cmdline())
    running.kill(signal.SIGKILL)
    running.process.wait(10)
    until(lambda: not host.is_running() or host.status() == psutil.STATUS_ZOMBIE, 5, "the adapter's process to end")
    nothing_left(running.bundle)


def test_values_come_out_as_what_they_were() -> None:
    """Hazard: an adapter that works in one place and not in the other."""
    values: list[Any] = [
        None, 7, 1.5, "é\n", Path("a/b"), (1, (2,)), {"$": "Path", "is": "x"}, {"a": [Path("p")]},
        Ack(state="aborted", sweep={"alive": [], "dirty": ["x"]}, changed=True, detail={"n": (1,)}),
        Claims(manifest=[{"pid": 1}], tables=[Table(1, {"t01": "keep"}, 5)], usage_tokens=3),
        Redirect(1, "text", ({"paths": ["p"]},), ("d",), ({"task": "n01"},)),
        Spawned(1, 2),
    ]  # fmt: skip
    assert [wire.unpack(json.loads(wire.line({"v": wire.pack(value)}))["v"]) for value in values] == values
    assert wire.pack({1: {"x"}, "b": b"y"}) == {"1": ["x"], "b": "b'y'"}


def test_before_its_start_it_claims_nothing_and_says_so_of_controls() -> None:
    """Hazard: looking back at a run that never started raises something odd."""
    adapter = remote_adapter(f"{HERE}:factory")
    assert asyncio.run(adapter.claims()) == Claims()
    adapter.end()
    with pytest.raises(Exception, match="has not been started"):
        asyncio.run(adapter.abort())
