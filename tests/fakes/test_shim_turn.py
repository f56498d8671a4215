"""One call of a shim that does a whole task: a worker as the history knows it, in a process of its own."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from fakes.origin import git
from tests.fakes.shim_yard import ShimYard
from tests.waiting import until

pytestmark = pytest.mark.real

LONG = {"distribution": "fixed", "value_s": 30.0}


def test_a_call_is_a_worker_from_begin_to_end(tmp_path: Path) -> None:
    """Hazard: a history that a shim's worker is missing from, or stands in otherwise than a worker's."""
    with ShimYard(tmp_path, steps=2, child_share=0.0) as yard:
        yard.start_provider()
        said = yard.done("claude", "-p", "Do it all. [[objective-r1]]", "--of-next-year")
        assert said == "t02: step 2 of 2 is done, all steps are done.\n"
        mine = [event for event in yard.events_of() if event.source.startswith(("worker", "tools"))]
        step = ["tool.issue", "tool.start", "tool.end", "tool.return", "boundary"]
        assert [event.kind for event in mine] == ["shim", "worker.begin", "message", *step, *step, "worker.end"]
        shim = mine[0].data
        assert [shim[key] for key in ("name", "how", "task", "argv_unknown")] == [
            "claude", "folder", "t02", ["--of-next-year"]
        ]  # fmt: skip
        pids = {event.data["pid"] for event in mine if "pid" in event.data}
        assert {event.source.partition("-")[2] for event in mine} == {f"t02-1-{pids.pop()}"}
        assert not pids
        assert yard.told("message", "what", "text") == [("objective", "Do it all. [[objective-r1]]")]
        assert yard.told("model.open", "task", "marks") == [("t02", ["[[objective-r1]]"])] * 2
        assert yard.told("worker.end", "reason") == [("done",)]


def test_it_does_not_commit_unless_the_plan_says_so(tmp_path: Path) -> None:
    """Hazard: checkpoints that no real CLI would have made are credited to the coordinator."""
    tree = "worktrees/t02"
    with ShimYard(tmp_path, steps=2) as yard:
        yard.done("claude", "-p", "x")
        assert git("log", "--format=%s", "main..HEAD", cwd=yard.root / tree) == b""
        assert git("status", "--porcelain", cwd=yard.root / tree) == b" M packages/p01/deps.lock\n"
        assert not yard.events_of("checkpoint")
    with ShimYard(tmp_path / "2", {"shim": {"commits": True}}, steps=2) as yard:
        yard.done("claude", "-p", "x")
        assert git("log", "--format=%s", "main..HEAD", cwd=yard.root / tree) == b"wip: t02 2\nwip: t02 1\n"
        assert len(yard.events_of("checkpoint")) == 2


@pytest.mark.parametrize(
    ("words", "env", "where", "how", "task"),
    [
        (["claude", "-p", "x"], {"TASK_ID": "t03"}, "worktrees/t02", "TASK_ID", "t03"),
        (["claude", "-p", "x"], {}, "tree/packages", "branch", "t01"),
        (["codex", "exec", "--cd", "../t03", "x"], {}, "worktrees/t02", "folder", "t03"),
        (["gemini", "-p", "[task:t03]"], {}, "clone", "prompt", "t03"),
        (["opencode", "run", "task", "n01"], {}, "clone", "prompt", "n01"),
        (["aider", "--message", "x"], {}, "clone", "guess", "t01"),
        (["my agent", "--query", "t02: x"], {}, "clone", "prompt", "t02"),
    ],
)
def test_it_says_how_it_found_its_task(
    tmp_path: Path, words: list[str], env: dict[str, Any], where: str, how: str, task: str
) -> None:
    """Hazard: a worker on the wrong task, and nothing that shows why."""
    with ShimYard(tmp_path, steps=1) as yard:
        yard.done(*words, cwd=yard.root / where, **env)
        assert yard.told("shim", "how", "task") == [(how, task)]
        assert yard.told("worker.begin", "task") == [(task,)]


def test_guesses_take_each_task_once_and_then_refuse(tmp_path: Path) -> None:
    """Hazard: two workers on one task because nobody said which."""
    with ShimYard(tmp_path, steps=0) as yard:
        calls = [yard.call("claude", "-p", "x", cwd=yard.root / "clone") for _ in range(3)]
        assert [call.wait(20) for call in calls] == [0, 0, 0]
        assert sorted(yard.told("shim", "task")) == [("t01",), ("t02",), ("t03",)]
        said = yard.done("claude", "-p", "x", cwd=yard.root / "clone", status=2)
        assert said.startswith("claude: which task is this?")


def test_the_prompt_may_come_from_standard_input_or_a_file(tmp_path: Path) -> None:
    """Hazard: `cat task.md | claude -p` works on nothing."""
    with ShimYard(tmp_path, steps=0) as yard:
        yard.done("claude", "-p", said="all of it\n")
        yard.done("codex", "exec", "-", said="task t03", cwd=yard.root / "clone")
        yard.done("claude", "-p", "Do this:", said="the rest")
        (yard.worktrees / "t02/task.md").write_text("from a file")
        yard.done("aider", "--message-file", "task.md", "--yes", "a.py")
        texts = [text for (text,) in yard.told("message", "text")]
        assert texts == ["all of it", "task t03", "Do this:\n\nthe rest", "from a file"]


@pytest.mark.parametrize("child_share", [0.0, 1.0])
@pytest.mark.parametrize(("number", "status", "reason"), [(15, 143, "term"), (2, 130, "int")])
def test_a_signal_in_mid_call_ends_it_with_its_tool(
    tmp_path: Path, child_share: float, number: int, status: int, reason: str
) -> None:
    """Hazard: a tool that goes on when its agent has gone."""
    with ShimYard(tmp_path, calls=LONG, child_share=child_share) as yard:
        call = yard.call("claude", "-p", "x")
        yard.seen("tool.start")
        call.send_signal(number)
        assert call.wait(10) == status
        assert not yard.living()
        assert yard.told("worker.signal", "pid", "signal") == [(call.pid, signal.Signals(number).name)]
        assert yard.told("worker.end", "reason") == [(reason,)]
        assert not yard.events_of("tool.end")


def test_two_at_once_on_one_task_are_two_attempts(tmp_path: Path) -> None:
    """Hazard: two workers that are taken for one."""
    with ShimYard(tmp_path, calls=LONG) as yard:
        calls = [yard.call("claude", "-p", "x") for _ in range(2)]
        yard.seen("tool.start", 2)
        begun = sorted(yard.told("worker.begin", "attempt", "pid"))
        assert [attempt for attempt, _ in begun] == [1, 2]
        assert {pid for _, pid in begun} == {call.pid for call in calls}


def test_killed_in_mid_call_the_next_one_goes_on_with_what_nobody_committed(tmp_path: Path) -> None:
    """Hazard: uncommitted steps that are done twice, or a file that half a call is built upon."""
    with ShimYard(tmp_path, steps=3, calls={"distribution": "list", "values_s": [0.01, 0.01, 1.0]}) as yard:
        file = yard.worktrees / "t02/packages/p01/deps.lock"
        lines = len(file.read_text().splitlines())
        call = yard.call("claude", "-p", "x")
        yard.seen("tool.start", 3)
        until(lambda: file.stat().st_size < 100, what="the truncated file")
        call.kill()
        assert call.wait(10) == -signal.SIGKILL
        yard.done("claude", "-p", "x")
        assert yard.told("worker.begin", "attempt", "step") == [(1, 1), (2, 3)]
        assert len(file.read_text().splitlines()) == lines + 1
        assert yard.done("claude", "-p", "x") == "t02: step 3 of 3 is done, all steps are done.\n"
        assert len(yard.events_of("tool.return")) == 3


def test_a_resumed_session_carries_what_was_said_in_it(tmp_path: Path) -> None:
    """Hazard: a delta whose worker is said to have been given everything anew, or knows nothing of its goal."""
    with ShimYard(tmp_path, steps=0) as yard:
        plan = json.loads((yard.root / "plan.json").read_text())
        yard.start_provider()
        first = json.loads(yard.done("claude", "-p", "Do. [[objective-r1]]", "--output-format", "json"))
        plan["tasks"]["t02"]["steps"] = 1
        (yard.root / "plan.json").write_text(json.dumps(plan))
        second = yard.done(
            "claude", "-p", "--resume", first["session_id"], "Else. [[delta-r1.1]]", "--output-format", "json",
            cwd=yard.root / "clone",
        )  # fmt: skip
        assert json.loads(second)["session_id"] == first["session_id"]
        assert yard.told("shim", "how") == [("folder",), ("session",)]
        assert yard.told("message", "what") == [("objective",), ("delta",)]
        assert yard.told("model.open", "marks") == [(["[[objective-r1]]", "[[delta-r1.1]]"],)]


def test_misbehaviours_of_the_plan_hold_for_shims(tmp_path: Path) -> None:
    """Hazard: a drill whose scripted wrongs vanish with the shims."""
    wrong: list[dict[str, Any]] = [{"name": "ignores-sigterm"}, {"name": "slow", "times": 300}]
    with ShimYard(tmp_path, misbehaviours=wrong) as yard:
        call = yard.call("claude", "-p", "x")
        yard.seen("tool.start")
        assert yard.told("tool.issue", "duration_s") == [(30.0,)]
        call.send_signal(signal.SIGTERM)
        yard.seen("worker.signal")
        assert call.poll() is None


def test_one_that_spends_on_asks_until_it_is_killed(tmp_path: Path) -> None:
    """Hazard: tokens after an abort that a drill with shims can't produce."""
    with ShimYard(tmp_path, misbehaviours=[{"name": "spends-on"}], calls=LONG) as yard:
        yard.start_provider()
        call = yard.call("claude", "-p", "x")
        yard.seen("tool.start")
        call.send_signal(signal.SIGTERM)
        yard.seen("model.open", 4)
        assert call.poll() is None
        call.kill()


def test_it_wears_the_name_that_scripts_look_for(tmp_path: Path) -> None:
    """Hazard: `pkill claude` finds nobody, and the drill tests nothing."""
    with ShimYard(tmp_path, calls=LONG) as yard:
        call = yard.call("claude", "-p", "do it")
        yard.seen("tool.start")
        assert Path(f"/proc/{call.pid}/comm").read_text() == "claude\n"
        assert yard.living()[call.pid].endswith("claude -p do it ")


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"STOPDRILL_PLAN": ""}, "STOPDRILL_PLAN is not set"),
        ({"STOPDRILL_PLAN": "/nowhere"}, "is no plan with tasks"),
        ({"STOPDRILL_PROVIDER": ""}, "STOPDRILL_PROVIDER is not set"),
        ({"STOPDRILL_PROVIDER": "x"}, "STOPDRILL_PROVIDER: "),
        ({"STOPDRILL_EVENTS": "/nowhere"}, "/nowhere"),
    ],
)
def test_what_it_can_not_use_it_names(tmp_path: Path, env: dict[str, str], says: str) -> None:
    """Hazard: a traceback, or a script that believes its agent to have worked."""
    with ShimYard(tmp_path) as yard:
        said = yard.done("claude", "-p", "x", status=2, **env)
        assert said.startswith("claude: ")
        assert says in said
        assert "Traceback" not in said


def test_questions_are_answered_without_a_run(tmp_path: Path) -> None:
    """Hazard: `claude --version` in a script's first line fails, or counts as a worker."""
    with ShimYard(tmp_path) as yard:
        assert "(Claude Code)" in yard.done("claude", "--version", STOPDRILL_PLAN="")
        assert not yard.events_of()
