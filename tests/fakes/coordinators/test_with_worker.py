"""The reference coordinator with the simulated worker itself: both sides keep one protocol."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.coordinators.files import read_lines
from tests.fakes.coordinators.world import ROOT, World, git
from tests.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    program = str(Path(ROOT) / "fakes" / "worker" / "__main__.py")
    made = World(tmp_path, tasks=3, worker=[sys.executable, "-I", "-S", "-E", program])
    yield made
    made.end()


def events(world: World, kind: str, task: str) -> list[dict[str, Any]]:
    found = [
        event
        for path in sorted((world.root / "events").glob(f"worker-{task}-*.jsonl"))
        for event in read_lines(str(path))
    ]
    return [event for event in found if event["kind"] == kind]


def test_all_controls_once(world: World) -> None:
    """Start, hold, go on at the next step, take a delta, drop, add, stop."""
    world.serve()
    assert world.ask("start")["ok"]
    world.at_work()
    assert world.ask("pause")["state"] == "paused"
    assert all(len(events(world, "worker.parked", t)) == 1 for t in world.plan["tasks"])
    assert world.ask("resume")["state"] == "running"
    reply = world.ask(
        "redirect",
        n=1,
        text="[[instruction-1]]",
        changes=[{"paths": ["packages/p02/*"], "delta": "version 5 [[delta-1-1]]"}],
        drops=["packages/p03/*"],
        adds=[{"task": "t04", "title": "new", "files": ["packages/p04/deps.lock"]}],
    )
    assert reply["state"] == "redirected", reply
    until(lambda: world.step("t04") >= 1, 10, "the new task at work")
    told = [(m["what"], m["text"]) for m in events(world, "message", "t02")]
    assert told == [("objective", "do it [[objective-1]]"), ("delta", "version 5 [[delta-1-1]]")]
    assert [m["what"] for m in events(world, "message", "t01")] == ["objective"]
    assert [e["reason"] for e in events(world, "worker.end", "t03")] == ["drop"]
    aborted = world.ask("abort")
    assert (aborted["state"], aborted["sweep"], aborted["killed"]) == (
        "aborted",
        {"alive": [], "dirty": []},
        [],
    )
    assert {e["reason"] for t in ("t01", "t02", "t04") for e in events(world, "worker.end", t)} == {"stop"}
    assert git(world.repo, "log", "-1", "--format=%s", f"agent/{world.run}/t01").startswith("wip: t01 ")


def test_a_deaf_worker_is_killed_in_mid_call_with_its_tool(world: World) -> None:
    """The worker's tools ignore SIGTERM too, so they have to be found below it."""
    deaf = [{"name": "never-looks"}, {"name": "ignores-sigterm"}]
    world.plan["tasks"]["t02"]["misbehaviours"] = deaf
    world.configure({})
    world.serve()
    world.ask("start")
    world.at_work()
    reply = world.ask("abort")
    assert (reply["state"], len(reply["killed"]), reply["sweep"]["alive"]) == ("aborted", 1, [])
    line = read_lines(str(world.control / "killed.jsonl"))[0]
    assert (line["task"], line["pid"]) == ("t02", reply["killed"][0])
    assert [s["signal"] for s in events(world, "worker.signal", "t02")] == ["SIGTERM"]
    assert world.alive() == []


def test_a_stalled_worker_is_noticed(world: World) -> None:
    """Without a heartbeat for two boundaries a worker is stalled, and says nothing about it itself."""
    world.plan["tasks"]["t02"]["misbehaviours"] = [{"name": "stops-heartbeat", "at_step": 2}]
    world.configure({})
    world.serve()
    world.ask("start")
    path = world.control / "stalled.jsonl"
    until(lambda: path.exists(), 10, "a stall to be reported")
    assert [json.loads(line)["task"] for line in path.read_text().splitlines()] == ["t02"]
    assert world.ask("abort")["state"] == "aborted"


def test_a_worker_that_died_is_restarted_from_its_checkpoint(world: World) -> None:
    """A restart that begins at the first step does the work twice, one that goes on too far leaves a hole."""
    world.serve()
    world.ask("start")
    world.at_work()
    pid = next(e["pid"] for e in world.manifest() if e["task_id"] == "t01")
    fd = os.pidfd_open(pid)
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    os.close(fd)
    again = until(lambda: events(world, "worker.begin", "t01")[1:], 10, "the second attempt")[0]
    last = events(world, "checkpoint", "t01")
    done = [e["step"] for e in last if e["t"] < again["t"]]
    assert (again["attempt"], again["step"] in (done[-1] + 1, done[-1] + 2)) == (2, True)
    assert world.ask("abort")["state"] == "aborted"
