"""Each misbehaviour does what its name says, and says once that it set in."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fakes import helper_server
from fakes.behaviours import BEHAVIOURS, make
from fakes.behaviours.helpers import RESPAWNS_MAX
from fakes.origin import git
from tests.fakes.test_worker import Yard
from tests.waiting import until

pytestmark = pytest.mark.real

LONG = {"distribution": "fixed", "value_s": 30.0}


def _yard(tmp_path: Path, name: str, params: dict[str, object] | None = None, **task: object) -> Yard:
    return Yard(tmp_path, misbehaviours=[{"name": name, **(params or {})}], **task)


def _helper(yard: Yard) -> int:
    """The pid of the helper server, once it runs its own program."""
    return until(
        lambda: next((pid for pid, line in yard.living().items() if "helper_server" in line), None),
        what="the helper server",
    )


def _set_in(yard: Yard, name: str) -> None:
    yard.seen("misbehaves")
    assert [event.data["name"] for event in yard.events_of("misbehaves")] == [name]


def test_every_behaviour_can_be_made_from_its_defaults() -> None:
    """Hazard: a registry whose records don't fit their classes."""
    for name, behaviour in BEHAVIOURS.items():
        assert make({"name": name, **behaviour.params}).name == name
        assert behaviour.summary


def test_parameters_of_the_wrong_kind_are_refused() -> None:
    """Hazard: a misbehaviour that quietly doesn't."""
    with pytest.raises(ValueError, match="slow: times must be like"):
        make({"name": "slow", "times": "3"})
    with pytest.raises(ValueError, match="how must be one of setsid"):
        make({"name": "detaches", "how": "by magic"})


def test_never_looks_goes_on_through_hold_and_stop(tmp_path: Path) -> None:
    """Hazard: a twin that obeys after all."""
    with _yard(tmp_path, "never-looks", steps=4) as yard:
        yard.say("STOP")
        yard.tell("drop")
        assert yard.start().wait(20) == 0
        assert len(yard.events_of("tool.return")) == 4
        assert yard.events_of("worker.end")[0].data["reason"] == "done"
        _set_in(yard, "never-looks")


def test_ignores_sigterm_logs_it_and_works_on_with_its_tool(tmp_path: Path) -> None:
    """Hazard: a history in which SIGTERM was never sent, and so no escalation."""
    slow = {"distribution": "fixed", "value_s": 0.3}
    with _yard(tmp_path, "ignores-sigterm", calls=slow, child_share=1.0) as yard:
        worker = yard.start()
        yard.seen("tool.start")
        os.killpg(worker.pid, signal.SIGTERM)
        os.killpg(worker.pid, signal.SIGINT)
        yard.seen("checkpoint", 2)
        assert {event.data["signal"] for event in yard.events_of("worker.signal")} == {"SIGTERM", "SIGINT"}
        assert worker.poll() is None


@pytest.mark.parametrize("how", ["setsid", "double-fork", "clear-env", "all"])
def test_detaches_leaves_a_server_behind(tmp_path: Path, how: str) -> None:
    """Hazard: an escape that is none, so that its detector is never tested."""
    with _yard(tmp_path, "detaches", {"how": how}, calls=LONG) as yard:
        worker = yard.start()
        yard.seen("tool.start")
        helper = _helper(yard)
        stat = Path(f"/proc/{helper}/stat").read_text().rpartition(")")[2].split()
        environment = Path(f"/proc/{helper}/environ").read_bytes()
        assert (os.getsid(helper) != os.getsid(worker.pid)) is (how in ("setsid", "all"))
        assert (int(stat[1]) != worker.pid) is (how in ("double-fork", "all"))
        assert (b"RUN_ID" not in environment) is (how in ("clear-env", "all"))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 143
        assert helper in yard.living()


def test_ignores_eof_keeps_the_credential_when_its_worker_is_gone(tmp_path: Path) -> None:
    """Hazard: a ghost that leaves politely."""
    with _yard(tmp_path, "ignores-eof", calls=LONG) as yard:
        worker = yard.start()
        yard.seen("tool.start")
        helper = _helper(yard)
        ignored = ("SIGTERM", "SIGINT", "SIGHUP")

        def deaf() -> bool:
            status = Path(f"/proc/{helper}/status").read_text()
            mask = int(status.partition("SigIgn:\t")[2].split()[0], 16)
            return all(mask >> (signal.Signals[name] - 1) & 1 for name in ignored)

        until(deaf, what="a server that ignores the polite signals")
        worker.kill()
        worker.wait(10)
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:  # the end of its input must not end it a moment later, either
            assert helper in yard.living()
        assert b"WORKER_API_TOKEN" in Path(f"/proc/{helper}/environ").read_bytes()


def test_respawned_comes_back_as_the_next_attempt(tmp_path: Path) -> None:
    """Hazard: a supervisor that dies with its worker."""
    with _yard(tmp_path, "respawned", calls=LONG) as yard:
        worker = yard.start()
        yard.seen("tool.start")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 143
        second = yard.seen("worker.begin", 2)[1].data
        yard.kill(second["pid"])
        third = yard.seen("worker.begin", 3)[2].data
        assert (second["attempt"], third["attempt"]) == (2, 3)
        assert os.getsid(third["pid"]) != os.getsid(0)


def test_what_outlives_a_worker_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: a harness that died, and helpers of it that hurt the machine."""
    monkeypatch.setattr(helper_server, "LIFE_S", 0.01)
    assert helper_server.main(["--name", "dev-server"]) == 0
    with _yard(tmp_path, "respawned", {"delay_s": 0}, steps=0) as yard:
        yard.start().wait(10)
        yard.seen("worker.begin", 1 + RESPAWNS_MAX)
        until(lambda: not yard.living(), what="the supervisor's end")
        assert len(yard.events_of("worker.begin")) == 1 + RESPAWNS_MAX


def test_no_wip_leaves_its_work_uncommitted(tmp_path: Path) -> None:
    """Hazard: a dirty worktree that is clean."""
    with _yard(tmp_path, "no-wip", steps=2) as yard:
        assert yard.start().wait(20) == 0
        assert not yard.events_of("checkpoint")
        assert git("status", "--porcelain", cwd=yard.tree) == b" M packages/p01/deps.lock\n"
        _set_in(yard, "no-wip")


def test_dirty_at_boundary_has_a_checkpoint_and_a_change_but_no_half_file(tmp_path: Path) -> None:
    """Hazard: the twin of `investigate` that trips `fail`."""
    with _yard(tmp_path, "dirty-at-boundary", {"at_step": 2}, steps=2) as yard:
        assert yard.start().wait(20) == 0
        assert yard.subjects()[0] == "wip: t01 2"
        assert git("status", "--porcelain", cwd=yard.tree) == b" M packages/p01/deps.lock\n"
        assert yard.file.read_bytes().endswith(b"# stopdrill t01 2 end\n")


def test_stashes_keeps_the_work_on_no_branch(tmp_path: Path) -> None:
    """Hazard: a stash that nobody looks for."""
    with _yard(tmp_path, "stashes", steps=2) as yard:
        assert yard.start().wait(20) == 0
        assert git("stash", "list", cwd=yard.tree).count(b"wip: t01") == 2
        assert git("status", "--porcelain", cwd=yard.tree) == b""
        assert not yard.subjects()


def test_pushes_to_main_is_refused_and_goes_on(tmp_path: Path) -> None:
    """Hazard: a push that the origin doesn't see, or that ends the worker."""
    with _yard(tmp_path, "pushes-to-main", {"at_step": 2}, steps=3) as yard:
        main = git("rev-parse", "main", cwd=yard.origin)
        assert yard.start().wait(20) == 0
        updates = yard.events_of("ref.update")
        assert [event.data["outcome"] for event in updates] == ["attempted", "refused"]
        assert {event.data["ref"] for event in updates} == {"refs/heads/main"}
        assert updates[0].data["pusher"]["task"] == "t01"
        assert git("rev-parse", "main", cwd=yard.origin) == main
        assert len(yard.events_of("checkpoint")) == 3


@pytest.mark.parametrize("how", ["STOP", "drop"])
def test_spends_on_asks_until_it_is_killed_and_calls_no_tool(tmp_path: Path, how: str) -> None:
    """Hazard: tokens after an abort that no tool call gives away."""
    with _yard(tmp_path, "spends-on", {"tokens_in": 9000}) as yard:
        yard.start_provider()
        worker = yard.start()
        yard.seen("boundary")
        if how == "STOP":
            yard.say("STOP")
        else:
            yard.tell("drop")
        since = yard.seen("misbehaves")[0].t
        until(
            lambda: len([e for e in yard.events_of("model.open") if e.data["tokens_in"] == 9000]) >= 3,
            what="three expensive requests",
        )
        assert not [event for event in yard.events_of("tool.issue", "worker.end") if event.t > since]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 143


def test_stops_heartbeat_says_nothing_more_but_hears_sigterm(tmp_path: Path) -> None:
    """Hazard: a stalled worker that a stop still reaches at a boundary."""
    with _yard(tmp_path, "stops-heartbeat", {"at_step": 2}) as yard:
        worker = yard.start()
        yard.seen("misbehaves")
        yard.say("STOP")
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.3)
        last = yard.events_of()[-1]
        assert last.kind == "misbehaves"
        assert yard.status()["step"] == 1
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 143


def test_slow_takes_a_multiple_of_the_longest_call_from_its_step_on(tmp_path: Path) -> None:
    """Hazard: an overrun that is within the limit."""
    with _yard(tmp_path, "slow", {"times": 3, "at_step": 2}, steps=2) as yard:
        assert yard.start().wait(20) == 0
        issued, ended = yard.events_of("tool.issue"), yard.events_of("tool.end")
        took_s = [(end.t - issue.t) / 1e9 for issue, end in zip(issued, ended, strict=True)]
        assert took_s[0] < 0.3 <= took_s[1]


@pytest.mark.parametrize(("name", "shift"), [("repeats-on-resume", 0), ("skips-on-resume", 2)])
def test_after_a_hold_it_goes_on_at_the_wrong_step(tmp_path: Path, name: str, shift: int) -> None:
    """Hazard: a resume that looks right because only the count of calls is compared."""
    with _yard(tmp_path, name) as yard:
        yard.start()
        yard.seen("boundary", 2)
        yard.say("HOLD")
        parked = yard.seen("worker.parked")[0]
        yard.say("RUN")
        yard.seen("worker.unparked")
        after = until(
            lambda: [event for event in yard.events_of("tool.issue") if event.t > parked.t],
            what="a call after the hold",
        )[0]
        assert after.data["step"] == parked.data["step"] + shift
        _set_in(yard, name)
