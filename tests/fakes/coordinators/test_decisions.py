"""Whole runs of the reference coordinator in memory, under a virtual clock: order and instants of what it
does.
"""

import ast
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import fakes.coordinators.reference as reference
from fakes.coordinators.reference.coordinator import Coordinator
from tests.fakes.coordinators.memory import Memory, VirtualLoop
from tests.fakes.coordinators.stage import INSTRUCTION, SETTINGS, plan, play

PURE = ("plan", "ports", "core", "watch", "pause", "redirect", "abort", "recover", "coordinator")


def coordinator(port: Memory) -> Coordinator:
    return Coordinator(port, SETTINGS, plan())


@pytest.mark.parametrize("module", PURE)
def test_decisions_touch_no_operating_system(module: str) -> None:
    """A decision that reads a clock or sends a signal by itself can be tested in one world only."""
    path = Path(reference.__path__[0]) / f"{module}.py"
    allowed = {"asyncio", "collections.abc", "dataclasses", "typing", "fnmatch"}
    allowed |= {f"fakes.coordinators.reference.{name}" for name in PURE}
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            used.add(node.module)
        elif isinstance(node, ast.Import):
            used |= {name.name for name in node.names}
    assert used - allowed == set()


def test_every_task_gets_a_worktree_before_its_worker_and_one_after_another() -> None:
    """Parallel `git worktree add` fails now and then."""
    port = Memory(git_s=0.05)

    async def scene(subject: Coordinator) -> None:
        pass

    play(port, scene)
    kinds = [(what, name.rpartition("/")[2]) for _, what, name, *_ in port.acts if what in ("worktree", "spawn")]
    assert kinds == [(what, f"t0{i}") for i in range(1, 5) for what in ("worktree", "spawn")]


def test_pause_answers_when_every_worker_is_parked_and_starts_nothing() -> None:
    """ "Paused" while one still works is the lie that the whole project is about."""
    port = Memory(steps={"t01": 2})

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.35)
        begun = port.now()
        reply = await subject.handle("pause", {})
        assert reply["state"] == "paused"
        assert port.now() - begun <= SETTINGS.longest_call_s
        assert not subject.moving()
        await port.sleep(2.0)

    play(port, scene)
    held = port.acts.index(next(a for a in port.acts if a[1:] == ("control", "HOLD")))
    assert port.acts[held - 1][1:] == ("intent", "holding")
    assert [a for a in port.acts[held:] if a[1] in ("spawn", "worktree", "squash", "push")] == []


def test_pause_names_those_who_do_not_park() -> None:
    """A worker that never looks must not be covered by a general "paused"."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        reply = await subject.handle("pause", {})
        assert (reply["state"], reply["moving"]) == ("pausing", ["t02"])

    play(port, scene)


def test_resume_releases_everybody_and_starts_nobody_twice() -> None:
    """A resume that brings up second workers doubles the fleet."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("pause", {})
        reply = await subject.handle("resume", {})
        assert (reply["state"], subject.resting()) == ("running", [])

    play(port, scene)
    assert len(port.did("spawn")) == 4


def test_a_worker_that_died_in_a_hold_is_restarted_after_it() -> None:
    """A watchdog that revives workers during a hold breaks the hold."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("pause", {})
        port.end(port.lives[port.lines[0].process], 1, "killed")
        await port.sleep(3.0)
        assert len(port.did("spawn")) == 4
        await subject.handle("resume", {})
        await port.sleep(1.0)
        assert port.did("spawn")[4:] == [(port.did("spawn")[4][0], "spawn", "t01", 2)]

    play(port, scene)


def test_a_worker_that_keeps_dying_is_restarted_three_times() -> None:
    """Restarting for ever burns tokens on a task that cannot be done."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        for _ in range(8):
            for life in port.lives.values():
                if life.worker.task == "t01" and life.alive:
                    port.end(life, 1, "killed")
            await port.sleep(0.5)
        status = await subject.handle("status", {})
        assert status["tasks"]["t01"]["state"] == "failed"

    play(port, scene)
    assert [a[3] for a in port.did("spawn") if a[2] == "t01"] == [1, 2, 3, 4]


def test_redirect_writes_the_table_before_anything_moves() -> None:
    """A table made after the fact describes what happened, not what was decided."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.3)
        reply = await subject.handle("redirect", INSTRUCTION)
        assert reply["state"] == "redirected"
        assert reply["table"]["tasks"] == {"t01": "keep", "t02": "modify", "t03": "drop", "t04": "keep"}
        await port.sleep(0.1)

    play(port, scene)
    acts = [a[1:] for a in port.acts if a[1] in ("table", "post", "tag", "spawn", "end", "plan")][4:]
    assert [a[0] for a in acts] == ["table", "post", "post", "end", "tag", "plan", "spawn"]
    assert acts[1:3] == [
        ("post", "t02", "delta", "target 5 [[delta-1-1]]"),
        ("post", "t03", "drop", ""),
    ]
    assert acts[4] == ("tag", "abandoned/r1/t03", "agent/r1/t03")
    assert acts[6] == ("spawn", "t05", 1)


def test_keep_workers_hear_nothing_of_a_redirect() -> None:
    """A keep-worker that is prompted again starts to reconsider what it has done."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("redirect", INSTRUCTION)

    play(port, scene)
    assert set(port.messages) == {"t02", "t03"}


def test_the_same_redirect_twice_is_one_redirect() -> None:
    """A request that was delivered twice must not tell a worker its delta twice."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("redirect", INSTRUCTION)
        again = await subject.handle("redirect", dict(INSTRUCTION))
        assert (again["state"], again["changed"]) == ("redirected", False)

    play(port, scene)
    assert (len(port.did("table")), len(port.did("post"))) == (1, 2)


@pytest.mark.parametrize("args", [{"text": "be better"}, {**INSTRUCTION, "adds": [{"task": "t01"}]}])
def test_a_redirect_without_a_table_is_refused_and_touches_nothing(args: dict[str, Any]) -> None:
    """Refusing late would leave half of the fleet redirected."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        before = len(port.acts)
        reply = await subject.handle("redirect", args)
        assert (reply["ok"], reply["state"], "table" in reply["error"]) == (False, "running", True)
        assert len(port.acts) == before

    play(port, scene)


def test_new_tasks_of_a_redirect_wait_for_the_end_of_a_hold() -> None:
    """A redirect during a pause must not become a way around the pause."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("pause", {})
        reply = await subject.handle("redirect", INSTRUCTION)
        assert reply["state"] == "redirected"
        await port.sleep(1.0)
        assert len(port.did("spawn")) == 4
        await subject.handle("resume", {})
        await port.sleep(0.5)
        assert port.did("spawn")[4][2:] == ("t05", 1)

    play(port, scene)


def test_abort_of_a_fleet_that_listens_signals_nobody() -> None:
    """A signal to a worker that leaves by itself cuts the checkpoint that it was about to make."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.25)
        reply = await subject.handle("abort", {})
        assert reply == {
            "ok": True,
            "state": "aborted",
            "sweep": {"alive": [], "dirty": []},
            "killed": [],
            "changed": True,
        }

    play(port, scene)
    assert [a for a in port.acts if a[1].startswith("SIG")] == []
    stop = port.acts.index(next(a for a in port.acts if a[1:] == ("control", "STOP")))
    assert port.acts[stop - 1][1:] == ("intent", "aborting")
    assert port.acts[stop - 1][0] == port.acts[stop][0]


def test_the_abort_ladder_has_its_order_and_its_instants() -> None:
    """TERM inside the grace window cuts a legitimate call; KILL without TERM before it cuts everything."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.25)
        reply = await subject.handle("abort", {})
        assert (reply["state"], reply["killed"]) == ("aborted", [101])
        assert reply["sweep"] == {"alive": [], "dirty": ["wt/t02"]}

    play(port, scene)
    c = next(a[0] for a in port.acts if a[1:] == ("control", "STOP"))
    signals = [(round(a[0] - c, 2), *a[1:]) for a in port.acts if a[1].startswith("SIG")]
    assert [(what, task) for _, what, task in signals] == [("SIGTERM", "t02"), ("SIGKILL", "t02")]
    assert SETTINGS.grace_s <= signals[0][0] <= SETTINGS.grace_s + 0.02
    assert 0.1 <= signals[1][0] - signals[0][0] <= 0.12
    assert port.did("killed dirty")[0][2:] == ("t02", "agent/r1/t02", ("half.txt",))


def test_a_second_abort_changes_nothing() -> None:
    """The operator presses twice; the second press must neither do more nor hide what the first one did."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        first, second = await asyncio.gather(subject.handle("abort", {}), subject.handle("abort", {}))
        third = await subject.handle("abort", {})
        assert (first["changed"], second["changed"], third["changed"]) == (True, False, False)
        assert {**first, "changed": False} == second == third

    play(port, scene)
    assert (len(port.did("SIGTERM")), len(port.did("killed dirty"))) == (1, 1)


def test_abort_wins_over_a_running_redirect() -> None:
    """A redirect that carries on after the stop starts the very work that was to be stopped."""
    port = Memory(deaf=frozenset({"t03"}))

    async def scene(subject: Coordinator) -> None:
        redirect = asyncio.create_task(subject.handle("redirect", INSTRUCTION))
        await port.sleep(0.05)
        abort = await subject.handle("abort", {})
        assert abort["state"] == "aborted"
        refused = await redirect
        assert (refused["ok"], "abort" in refused["error"]) == (False, True)

    play(port, scene)
    assert [a[2] for a in port.did("spawn")] == ["t01", "t02", "t03", "t04"]


def test_abort_wins_over_a_running_pause() -> None:
    """Two operators at once: the stronger control gets through while the weaker one still waits."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        pause = asyncio.create_task(subject.handle("pause", {}))
        await port.sleep(0.02)
        assert (await subject.handle("abort", {}))["state"] == "aborted"
        assert (await pause)["ok"] is False
        assert (await subject.handle("resume", {}))["ok"] is False

    play(port, scene)
    assert port.word == "STOP"


def test_abort_during_the_start_ends_the_start() -> None:
    """The gap between a worktree and its worker is where a stop gets lost."""
    port = Memory(git_s=0.1)

    async def scene(subject: Coordinator) -> None:
        start = asyncio.create_task(subject.handle("start", {}))
        await port.sleep(0.25)
        assert (await subject.handle("abort", {}))["state"] == "aborted"
        assert (await start)["ok"] is False

    play(port, scene, start=False)
    assert [a[2] for a in port.did("spawn")] == ["t01", "t02"]


def test_nothing_lands_after_a_stop() -> None:
    """A PR that is pushed behind an abort is work that nobody asked for any more."""
    port = Memory(steps={"t01": 1})

    async def scene(subject: Coordinator) -> None:
        port.git_s = 0.2
        await port.sleep(0.3)
        await subject.handle("abort", {})

    play(port, scene)
    assert (len(port.did("squash")), port.did("push")) == (1, [])


def test_a_stalled_worker_is_reported_once() -> None:
    """A heartbeat that stops unnoticed is a worker that nobody can account for."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.5)
        port.lives[port.lines[1].process].call_s = 50.0
        await port.sleep(3.0)

    play(port, scene)
    assert [a[2] for a in port.did("stalled")] == ["t02"]


def test_finished_tasks_are_squashed_and_pushed_and_the_run_is_done() -> None:
    """Only a run whose every task has landed may call itself done."""
    port = Memory(steps={f"t0{i}": 2 for i in range(1, 5)})

    async def scene(subject: Coordinator) -> None:
        await port.sleep(2.0)
        assert (await subject.handle("status", {}))["state"] == "done"
        abort = await subject.handle("abort", {})
        assert (abort["state"], abort["changed"]) == ("done", False)
        assert (await subject.handle("close", {}))["exit"] == 0

    play(port, scene)
    assert {a[2] for a in port.did("pr")} == {"t01", "t02", "t03", "t04"}
    assert ("push", "refs/heads/pr/r1/t01") in [a[1:] for a in port.acts]


def test_a_git_that_fails_is_reported_and_not_a_success() -> None:
    """A start that silently leaves tasks out looks like a smaller plan."""
    port = Memory(broken_git=True)

    async def scene(subject: Coordinator) -> None:
        reply = await subject.handle("start", {})
        assert (reply["ok"], "disk is on fire" in reply["error"]) == (False, True)

    play(port, scene, start=False)


@pytest.mark.parametrize(("control", "word", "status"), [("pause", "HOLD", 4), ("abort", "STOP", 3)])
def test_close_tells_the_truth_about_the_run(control: str, word: str, status: int) -> None:
    """An exit status of zero after an abort reads as a success in every pipeline."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle(control, {})
        assert (await subject.handle("close", {}))["exit"] == status
        assert port.word == word

    play(port, scene)


def test_what_is_unknown_or_unasked_is_refused() -> None:
    """A control that is not understood must not be acknowledged."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        for verb, args in (("explode", {}), ("answer", {}), ("pause", {"scope": "turn"})):
            assert (await subject.handle(verb, args))["ok"] is False

    play(port, scene)
    assert port.word == "RUN"


# Recovery: a second coordinator over the same world.


def crash(port: Memory, scene: Callable[[Coordinator], Awaitable[None]]) -> VirtualLoop:
    """Play a scene, then drop the coordinator but keep its world and its loop, in which the workers live
    on.
    """

    async def whole() -> None:
        subject = coordinator(port)
        subject.begin()
        watch = asyncio.create_task(subject.run_watch())
        await subject.handle("start", {})
        await scene(subject)
        watch.cancel()

    loop = VirtualLoop()
    loop.run_until_complete(whole())
    return loop


def takeover(port: Memory, loop: VirtualLoop, seconds: float) -> dict[str, Any]:
    """A new coordinator for `seconds`; its last status."""

    async def whole() -> dict[str, Any]:
        subject = coordinator(port)
        work = [asyncio.create_task(subject.run_watch())] if not subject.begin() else []
        if not work:
            await subject.finish_abort()
        await port.sleep(seconds)
        status = await subject.handle("status", {})
        for task in work:
            task.cancel()
        await port.finish()
        return status

    try:
        return loop.run_until_complete(whole())
    finally:
        loop.close()


def test_recovery_of_a_running_fleet_adopts_the_living_and_restarts_the_dead() -> None:
    """A restart that does not look for survivors makes two workers of one."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await port.sleep(0.3)

    loop = crash(port, scene)
    port.lives[port.lines[2].process].alive = False
    status = takeover(port, loop, 1.0)
    assert status["state"] == "running"
    assert [(a[2], a[3]) for a in port.did("spawn")[4:]] == [("t03", 2)]


def test_recovery_of_a_hold_holds_and_starts_nobody() -> None:
    """A pause that is forgotten by a restart was never durable."""
    port = Memory()

    async def scene(subject: Coordinator) -> None:
        await subject.handle("pause", {})

    loop = crash(port, scene)
    port.lives[port.lines[2].process].alive = False
    assert takeover(port, loop, 2.0)["state"] == "holding"
    assert (port.word, len(port.did("spawn"))) == ("HOLD", 4)


def test_recovery_in_the_middle_of_an_abort_finishes_it_from_its_own_instant() -> None:
    """A grace window that starts anew with each restart never ends."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        subject.declare_abort()
        await port.sleep(0.3)

    loop = crash(port, scene)
    assert takeover(port, loop, 0.5)["state"] == "aborted"
    c = next(a[0] for a in port.acts if a[1:] == ("control", "STOP"))
    assert 0.4 <= port.did("SIGTERM")[0][0] - c <= 0.43
    assert (len(port.did("killed dirty")), len(port.did("spawn"))) == (1, 4)


def test_a_victim_without_its_line_gets_it_after_a_restart() -> None:
    """The coordinator may die between the kill and the line that accounts for it."""
    port = Memory(deaf=frozenset({"t02"}))

    async def scene(subject: Coordinator) -> None:
        subject.declare_abort()
        assert subject.abort_record is not None
        await port.sleep(0.3)
        subject.kill(subject.abort_record, {})

    loop = crash(port, scene)
    assert port.did("killed dirty") == []
    assert takeover(port, loop, 0.1)["state"] == "aborted"
    assert port.did("killed dirty")[0][2:] == ("t02", "agent/r1/t02", ("half.txt",))


def test_a_redirect_cut_short_is_carried_on_with_its_table() -> None:
    """A new table after a restart could decide differently for a worker that has moved already."""
    port = Memory(deaf=frozenset({"t03"}))

    async def scene(subject: Coordinator) -> None:
        task = asyncio.create_task(subject.handle("redirect", INSTRUCTION))
        await port.sleep(0.05)
        task.cancel()

    loop = crash(port, scene)
    port.lives[port.lines[2].process].deaf = False

    async def again() -> dict[str, Any]:
        subject = coordinator(port)
        subject.begin()
        watch = asyncio.create_task(subject.run_watch())
        reply = await subject.handle("redirect", dict(INSTRUCTION))
        await port.sleep(0.1)
        watch.cancel()
        await port.finish()
        return reply

    reply = loop.run_until_complete(again())
    loop.close()
    assert (reply["state"], reply["table"]["n"]) == ("redirected", 1)
    assert (len(port.did("table")), len(port.did("post")), len(port.did("tag"))) == (1, 2, 1)
    assert port.did("spawn")[-1][2] == "t05"
