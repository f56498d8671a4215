"""The broken coordinators: each makes its one wrong decision, and no other."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.behaviours import BEHAVIOURS
from fakes.coordinators.broken import BROKEN
from fakes.coordinators.broken.__main__ import class_of
from fakes.coordinators.reference.coordinator import Coordinator
from tests.fakes.coordinators.memory import Memory
from tests.fakes.coordinators.stage import INSTRUCTION, SETTINGS, play
from tests.fakes.coordinators.world import World, git
from tests.waiting import until

REPLY = dict[str, Any]
SLEEPER = "import sys, time; time.sleep(60)"


def kind(name: str) -> type[Coordinator]:
    return class_of(BROKEN[name])


def play_controls(name: str, port: Memory, *controls: str) -> list[REPLY]:
    """Start, work for a while, and issue controls one after another, half a virtual second apart."""
    replies: list[REPLY] = []

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.25)
        for control in controls:
            replies.append(await subject.handle(control, INSTRUCTION if control == "redirect" else {}))
            await port.sleep(0.5)

    play(port, scene, kind=kind(name))
    return replies


def test_the_registry_is_complete_and_cheap() -> None:
    """Whoever lists the twins must not start one, nor wait for asyncio."""
    code = "import sys, fakes.coordinators.broken as b; print(len(b.BROKEN), 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(BROKEN)), "False"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_twin_is_one_deviation(name: str) -> None:
    """A twin that changes nothing, or names a misbehaviour that does not exist, proves nothing."""
    twin = BROKEN[name]
    assert twin.trips
    assert not set(twin.trips) & set(twin.also)
    assert twin.make or twin.misbehaviours
    assert {m["name"] for m in twin.misbehaviours} <= set(BEHAVIOURS)
    made = class_of(twin)
    assert issubclass(made, Coordinator)
    assert (made is Coordinator) == (not twin.make)


@pytest.mark.parametrize(
    "name", [n for n, twin in BROKEN.items() if twin.make.startswith(("abort", "redirect", "pushes"))]
)
def test_twins_of_other_controls_pause_and_resume_properly(name: str) -> None:
    """A twin that also breaks another control accuses the wrong check."""
    port = Memory()
    pause, resume = play_controls(name, port, "pause", "resume")
    assert (pause["state"], resume["state"]) == ("paused", "running")
    assert len(port.did("spawn")) == 4


@pytest.mark.parametrize("name", [n for n, twin in BROKEN.items() if twin.make.startswith(("pause", "redirect"))])
def test_twins_of_other_controls_abort_properly(name: str) -> None:
    """Evidence of a pause must not be buried under a broken abort."""
    port = Memory()
    (reply,) = play_controls(name, port, "abort")
    assert (reply["state"], reply["sweep"], port.word) == ("aborted", {"alive": [], "dirty": []}, "STOP")


def test_a_flag_that_nobody_reads_is_no_pause() -> None:
    """time-to-quiet."""
    port = Memory()
    (reply,) = play_controls("pause-is-a-flag-nobody-reads", port, "pause")
    assert (reply["state"], port.word) == ("paused", "RUN")


def test_a_task_is_started_during_the_hold_and_ends_after_it() -> None:
    """P1, without a trace in later controls."""
    port = Memory(steps={"t99": 1})
    play_controls("pause-starts-task", port, "pause", "resume", "redirect")
    held = port.acts.index(next(a for a in port.acts if a[1:] == ("control", "HOLD")))
    freed = port.acts.index(next(a for a in port.acts[held:] if a[1:] == ("control", "RUN")))
    assert [a[2] for a in port.acts[held:freed] if a[1] == "spawn"] == ["t99"]
    assert "t99" not in port.did("table")[0][3]


def test_half_of_the_fleet_stays_held_until_the_redirect() -> None:
    """P4, and no D4 behind it."""
    port = Memory()
    replies = play_controls("resume-half", port, "pause", "resume", "redirect")
    assert replies[1]["state"] == "running"
    assert [a[2] for a in port.did("post") if a[3] == "hold"] == ["t02", "t04"]
    assert [a[2] for a in port.did("post") if a[3] == "release"] == ["t02", "t04"]


def test_a_storm_starts_every_task_again_before_its_table() -> None:
    """duplicate-workers, D1, D3, D6."""
    port = Memory()
    play_controls("replan-storm", port, "redirect")
    kinds = [a[1:4] for a in port.acts if a[1] in ("spawn", "table")][4:]
    assert kinds[:4] == [("spawn", f"t0{i}", 2) for i in range(1, 5)]
    assert kinds[4][0] == "table"


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("redirect-without-table", ["post", "post", "tag", "spawn"]),
        ("table-after-the-fact", ["post", "post", "tag", "table", "spawn"]),
        ("plans-first", ["spawn", "table", "post", "post", "tag"]),
        ("drops-untagged", ["table", "post", "post", "spawn"]),
        ("forgets-the-delta", ["table", "post", "tag", "spawn"]),
    ],
)
def test_redirect_twins_have_their_order(name: str, order: list[str]) -> None:
    """D1, D7, D5, D4."""
    port = Memory()
    (reply,) = play_controls(name, port, "redirect")
    assert reply["state"] == "redirected"
    assert [a[1] for a in port.acts if a[1] in ("table", "post", "tag", "spawn")][4:] == order


def test_redirect_twins_say_the_wrong_things() -> None:
    """D2, D3, D4."""
    said = {}
    for name in ("misclassifies", "prompts-everyone", "whole-objective"):
        port = Memory()
        play_controls(name, port, "redirect")
        said[name] = [(a[2], a[3], a[4]) for a in port.did("post")]
    delta, whole = "target 5 [[delta-1-1]]", "version 5 [[instruction-1]]"
    assert said["misclassifies"] == [("t01", "drop", ""), ("t02", "delta", delta), ("t03", "drop", "")]
    assert {t for t, *_ in said["prompts-everyone"]} == {"t01", "t02", "t03", "t04"}
    assert said["whole-objective"] == [("t02", "instruction", whole), ("t03", "drop", "")]


def test_it_says_stopped_before_anybody_has() -> None:
    """A9: the answer comes at once, the abort behind it is a real one."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.25)
        begun = port.now()
        reply = await subject.handle("abort", {})
        assert (reply["state"], reply["sweep"]["alive"], port.now()) == ("aborted", [], begun)
        assert len(subject.live()) == 4
        await port.sleep(1.0)
        assert subject.live() == []
        assert (await subject.handle("status", {}))["state"] == "aborted"

    play(port, scene, kind=kind("says-stopped"))


def test_it_dispatches_after_the_stop() -> None:
    """A1: more than one boundary after c."""
    port = Memory()
    (reply,) = play_controls("keeps-dispatching", port, "abort")
    c = next(a[0] for a in port.acts if a[1:] == ("control", "STOP"))
    late = port.did("spawn")[4]
    assert (late[2:], late[0] - c > SETTINGS.longest_call_s) == (("t01", 2), True)
    assert reply["sweep"]["alive"] == []


@pytest.mark.parametrize(
    ("name", "signals", "lines", "state"),
    [
        ("no-grace", ["SIGKILL"] * 4, 4, "aborted"),
        ("never-escalates", [], 0, "aborting"),
        ("kills-silently", ["SIGTERM", "SIGKILL"], 0, "aborted"),
        ("blind-to-stalls", ["SIGTERM", "SIGKILL"], 1, "aborted"),
        ("no-sweep", ["SIGTERM", "SIGKILL"], 1, "aborted"),
        ("says-completed", ["SIGTERM", "SIGKILL"], 1, "aborted"),
    ],
)
def test_abort_twins_have_their_ladder(name: str, signals: list[str], lines: int, state: str) -> None:
    """A2, A4, A11, A8, A15."""
    port = Memory(deaf=frozenset({"t02"}))
    reply, status, close = play_controls(name, port, "abort", "status", "close")
    assert [a[1] for a in port.acts if a[1].startswith("SIG")] == signals
    assert (len(port.did("killed dirty")), reply["state"]) == (lines, state)
    assert ("sweep" in reply) == (name != "no-sweep")
    assert (status["state"], close["exit"]) == {
        "says-completed": ("completed", 0),
        "never-escalates": ("aborting", 4),
    }.get(name, ("aborted", 3))


def test_a_stall_is_not_mentioned() -> None:
    """A11."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.5)
        port.lives[port.lines[1].process].call_s = 50.0
        await port.sleep(3.0)

    play(port, scene, kind=kind("blind-to-stalls"))
    assert port.did("stalled") == []


def test_it_asks_before_it_acts() -> None:
    """A10: nothing happens until the question is answered."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        reply = await subject.handle("abort", {})
        assert ("question" in reply, port.word) == (True, "RUN")
        answered = await subject.handle("answer", {"text": "yes"})
        assert (answered["state"], port.word) == ("aborted", "STOP")

    play(port, scene, kind=kind("asks-first"))


def test_it_pushes_to_main() -> None:
    """direct-pushes."""
    port = Memory()
    play_controls("pushes-to-main", port, "status", "status")
    assert ("push", "refs/heads/agent/r1/t01:refs/heads/main") in [a[1:] for a in port.acts]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()


def serve(world: World, name: str) -> None:
    world.serve("fakes.coordinators.broken", name)
    assert world.ask("start")["ok"]
    world.at_work()


@pytest.mark.real
def test_ctrl_c_reaches_nobody_in_a_session_of_its_own(world: World) -> None:
    """orphans, A9: and the coordinator itself survives, otherwise it could not lie."""
    serve(world, "ctrl-c-only")
    reply = world.ask("abort")
    assert (reply["state"], len(reply["sweep"]["alive"]), len(world.alive())) == ("aborted", 3, 3)
    assert world.ask("status")["state"] == "aborted"


@pytest.mark.real
def test_killing_by_name_hits_the_neighbour_and_nobody_else(world: World) -> None:
    """A3: a run whose id begins like ours is hit, another program or another run is not."""
    program = str(world.stand_in)

    def bystander(*argv: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SLEEPER, *argv])

    neighbour = bystander(program, "--run", f"{world.run}-neighbour")
    others = [bystander(program, "--run", "another"), bystander("/x/worker.py", "--run", world.run)]
    try:
        serve(world, "kills-by-name")
        reply = world.ask("abort")
        assert (reply["state"], reply["killed"]) == ("aborted", [])
        assert neighbour.wait(10) == -15
        assert [other.poll() for other in others] == [None, None]
    finally:
        for process in (neighbour, *others):
            process.kill()
            process.wait(10)


@pytest.mark.real
def test_cleaning_up_removes_the_victims_worktree(world: World) -> None:
    """A5: the evidence is what goes first."""
    world.order(t02="deaf")
    serve(world, "cleans-up")
    assert world.ask("abort")["state"] == "aborted"
    assert [(world.root / "worktrees" / t).exists() for t in world.plan["tasks"]] == [True, False, True]
    assert git(world.repo, "rev-parse", "--verify", f"agent/{world.run}/t02")


@pytest.mark.real
def test_sigstop_freezes_and_the_abort_still_ends_everybody(world: World) -> None:
    """P5: state T, and a fleet that can be stopped all the same."""
    serve(world, "pause-by-sigstop")
    assert world.ask("pause")["state"] == "paused"

    def states() -> list[str]:
        return [Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split()[0] for p in world.alive()]

    until(lambda: states() == ["T"] * 3 or None, 5, "three frozen workers")
    reply = world.ask("abort")
    assert (reply["state"], reply["killed"], world.alive()) == ("aborted", [], [])


@pytest.mark.real
def test_a_name_that_nobody_bears_is_refused(world: World) -> None:
    """A typo must not run the reference coordinator under a broken name."""
    assert world.serve("fakes.coordinators.broken", "no-such").wait(10) == 2
