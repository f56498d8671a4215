"""The reference coordinator over real processes, real git and real files, with a stand-in worker."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.coordinators.files import append_line, read_lines
from fakes.coordinators.reference.ports import Process
from fakes.coordinators.reference.posix import PosixPort
from fakes.coordinators.reference.processes import start_ticks
from tests.fakes.coordinators.world import World, git
from tests.waiting import until

SLEEPER = "import time; time.sleep(60)"

pytestmark = pytest.mark.real


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()


def test_a_fleet_starts_pauses_resumes_and_is_aborted(world: World) -> None:
    """The whole contract once, with nothing simulated."""
    coordinator = world.serve()
    assert world.ask("start")["ok"]
    world.at_work()
    entries = world.manifest()
    assert [(e["task_id"], e["attempt"], e["branch"]) for e in entries] == [
        (t, 1, f"agent/{world.run}/{t}") for t in ("t01", "t02", "t03")
    ]
    assert [start_ticks(e["pid"]) for e in entries] == [e["started_ticks"] for e in entries]
    assert all(os.getsid(e["pid"]) == e["pid"] for e in entries)
    assert world.ask("pause")["state"] == "paused"
    steps = [world.step(t) for t in world.plan["tasks"]]
    assert world.ask("status")["state"] == "holding"
    assert steps == [world.step(t) for t in world.plan["tasks"]]
    assert world.ask("resume")["state"] == "running"
    assert world.ask("usage")["tokens"] >= 6
    reply = world.ask("abort")
    assert (reply["state"], reply["sweep"], reply["killed"]) == ("aborted", {"alive": [], "dirty": []}, [])
    assert world.alive() == []
    assert world.ask("abort")["changed"] is False
    assert world.ask("close")["exit"] == 3
    assert coordinator.wait(10) == 3
    assert all(Path(e["worktree"]).is_dir() for e in entries)


def test_a_worker_that_ignores_term_is_killed_with_its_tool_and_a_complete_line(world: World) -> None:
    """A victim without a line is work that somebody will look for in vain."""
    world.order(t02="deaf child")
    world.serve()
    world.ask("start")
    world.at_work()
    pid = next(e["pid"] for e in world.manifest() if e["task_id"] == "t02")
    reply = world.ask("abort")
    assert (reply["state"], reply["killed"]) == ("aborted", [pid])
    assert reply["sweep"] == {"alive": [], "dirty": [str(world.root / "worktrees" / "t02")]}
    lines = read_lines(str(world.control / "killed.jsonl"))
    assert {k: lines[0][k] for k in ("what", "run_id", "pid", "task", "branch", "files")} == {
        "what": "killed dirty",
        "run_id": world.run,
        "pid": pid,
        "task": "t02",
        "branch": f"agent/{world.run}/t02",
        "files": ["work.txt"],
    }
    helper = lines[1]
    assert (helper["below"], is_running(helper["pid"])) == (pid, False)


def test_a_redirect_changes_what_it_names(world: World) -> None:
    """Table, delta, tag and new task, as files and refs that others can see."""
    world.serve()
    world.ask("start")
    world.at_work()
    reply = world.ask(
        "redirect",
        n=1,
        text="[[instruction-1]] other things",
        changes=[{"paths": ["packages/p02/*"], "delta": "target 5 [[delta-1-1]]"}],
        drops=["packages/p03/*"],
        adds=[{"task": "t04", "title": "new", "files": ["packages/p04/deps.lock"]}],
    )
    assert reply["state"] == "redirected"
    table = json.loads((world.control / "table-1.json").read_text())
    assert table == {"n": 1, "tasks": {"t01": "keep", "t02": "modify", "t03": "drop"}, "new": ["t04"]}
    assert [m["text"] for m in read_lines(str(world.control / "tasks/t02.jsonl"))] == ["target 5 [[delta-1-1]]"]
    assert not (world.control / "tasks/t01.jsonl").exists()
    tag = f"refs/tags/abandoned/{world.run}/t03"
    head = git(world.repo, "rev-parse", f"agent/{world.run}/t03")
    assert git(world.repo, "rev-parse", tag) == head == git(world.origin, "rev-parse", tag)
    until(lambda: world.step("t04") >= 1, 10, "the new task at work")
    assert (len(world.alive("t01")), len(world.alive("t03"))) == (1, 0)


def test_a_finished_task_becomes_one_commit_on_its_pr_branch(world: World) -> None:
    """Wip commits are for recovery, not for reviewers."""
    for spec in world.plan["tasks"].values():
        spec["steps"] = 3
    world.order()
    coordinator = world.serve()
    world.ask("start")
    until(lambda: world.ask("status")["state"] == "done" or None, 20, "the run to be done")
    for task in world.plan["tasks"]:
        branch = f"pr/{world.run}/{task}"
        assert git(world.origin, "rev-list", "--count", f"main..{branch}") == "1"
        assert git(world.origin, "show", f"{branch}:work.txt").splitlines()[-1] == f"{task} 3"
        assert (world.control / "pr" / f"{task}.json").exists()
    assert world.ask("close")["exit"] == 0
    assert coordinator.wait(10) == 0


def test_a_killed_coordinator_is_succeeded_without_a_duplicate(world: World) -> None:
    """After kill -9 the living are adopted, the dead restarted from their checkpoint, and the abort still
    works.
    """
    first = world.serve()
    world.ask("start")
    world.at_work()
    first.kill()
    first.wait(10)
    victim = next(e for e in world.manifest() if e["task_id"] == "t03")
    kill_through_pidfd(victim["pid"])
    world.serve()
    until(lambda: len(world.manifest()) == 4 or None, 10, "a second attempt of t03")
    assert [(e["task_id"], e["attempt"]) for e in world.manifest()][3] == ("t03", 2)
    assert [len(world.alive(t)) for t in world.plan["tasks"]] == [1, 1, 1]
    assert world.ask("abort")["state"] == "aborted"
    assert world.alive() == []


def test_a_coordinator_that_died_while_aborting_finishes_the_abort(world: World) -> None:
    """An abort must not depend on the process that took it."""
    world.order(t02="deaf")
    first = world.serve()
    world.ask("start")
    world.at_work()
    box_run = world.control / "run"
    asking = subprocess.Popen(ctl(world, "abort"), env=world.env, stdout=subprocess.PIPE)
    until(lambda: box_run.read_text() == "STOP\n", 10, "STOP")
    first.kill()
    first.wait(10)
    world.serve()
    out, _ = asking.communicate(timeout=20)
    assert json.loads(out)["state"] == "aborted"
    assert (world.alive(), len(read_lines(str(world.control / "killed.jsonl")))) == ([], 1)


def test_sigterm_ends_the_coordinator_and_not_the_workers(world: World) -> None:
    """Only an abort stops workers; SIGHUP, the operator's terminal dying, stops nobody."""
    coordinator = world.serve()
    world.ask("start")
    world.at_work()
    coordinator.send_signal(signal.SIGHUP)
    assert world.ask("status")["state"] == "running"
    second = world.serve()
    assert second.wait(10) == 2
    coordinator.send_signal(signal.SIGTERM)
    assert coordinator.wait(10) == 128 + signal.SIGTERM
    assert len(world.alive()) == 3


def test_a_recycled_pid_is_not_ours(world: World) -> None:
    """A manifest line outlives its process; what has its pid now must not be signalled."""
    bystander = subprocess.Popen([sys.executable, "-c", SLEEPER])
    try:
        world.serve().kill()
        world.coordinators[0].wait(10)
        append_line(
            str(world.root / "manifest.jsonl"),
            {
                "run_id": world.run,
                "task_id": "t01",
                "attempt": 1,
                "pid": bystander.pid,
                "branch": f"agent/{world.run}/t01",
                "worktree": str(world.root / "worktrees/t01"),
                "started_ticks": (start_ticks(bystander.pid) or 0) - 1,
            },
        )
        world.serve()
        reply = world.ask("abort")
        assert (reply["state"], reply["sweep"]["alive"], reply["killed"]) == ("aborted", [], [])
        assert bystander.poll() is None
        port = PosixPort(world.loaded())
        assert port.adopt(Process(bystander.pid, (start_ticks(bystander.pid) or 0) - 1)) is False
        assert port.signal(Process(bystander.pid, 1), "SIGKILL") is False
    finally:
        bystander.kill()
        bystander.wait(10)


def test_a_configuration_that_cannot_be_used_is_refused(world: World) -> None:
    """The message has to name the file and the key, otherwise the operator searches."""
    world.config.write_text("{}")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "fakes.coordinators.reference", "serve", "--config", str(world.config)],
        env=world.env,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, "lacks 'plan'" in done.stderr) == (2, True)


def ctl(world: World, verb: str) -> list[str]:
    program = [sys.executable, "-I", "-m", "fakes.coordinators.reference", "ctl"]
    return [*program, "--control", str(world.control), verb, "--wait", "20"]


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie: who reaps an orphan is not the coordinator's business."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_through_pidfd(pid: int) -> None:
    """SIGKILL to a worker of a coordinator that is dead, and wait until it is gone."""
    fd = os.pidfd_open(pid)
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    assert select.select([fd], [], [], 10)[0]
    os.close(fd)
