"""Calls with `--max-turns`: steps of a worker that is the loop which calls."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.origin import git
from scoring.history import merge
from scoring.timeline import Timeline, build
from tests.fakes.shim_yard import ShimYard

pytestmark = pytest.mark.real

LOOP = """
cd "$1"
for n in 1 2 3; do
    {call} -p "Do step $n of $2." --max-turns 1 >> out.txt || exit 1
    git -c user.name=x -c user.email=x@x.invalid commit -qam "wip: $2 $n" || exit 1
done
"""


BRACKETS = '(work "$1"; true) & echo $!; { work "$2"; true; } & echo $!; wait'


def loop(yard: ShimYard, text: str, task: str = "t02") -> "subprocess.Popen[str]":
    """A bash loop over the task's worktree."""
    return yard.call("bash", "-c", text, "bash", str(yard.worktrees / task), task, cwd=yard.root)


@pytest.mark.parametrize("call", ["claude", "timeout 60 claude", "nice claude"])
def test_the_loop_is_the_worker_and_each_call_a_step_of_it(tmp_path: Path, call: str) -> None:
    """Hazard: each turn of an honest loop counts as a worker that was started anew."""
    with ShimYard(tmp_path, steps=4, child_share=0.5) as yard:
        bash = loop(yard, LOOP.replace("{call}", call))
        assert bash.wait(30) == 0
        assert yard.told("worker.begin", "attempt", "pid", "step") == [(1, bash.pid, 1)]
        assert not yard.events_of("worker.end")
        assert yard.told("message", "what") == [("objective",)]
        issued = yard.events_of("tool.issue")
        assert [event.data["step"] for event in issued] == [1, 2, 3]
        assert {event.data["pid"] for event in issued} == {bash.pid}
        assert len({event.data["call"] for event in issued}) == 3
        assert bash.pid not in {pid for (pid,) in yard.told("tool.start", "pid")}
        assert {event.source for event in issued} == {f"worker-t02-1-{bash.pid}"}
        out = (yard.worktrees / "t02/out.txt").read_text().splitlines()
        assert out == [f"t02: step {n} of 4 is done." for n in (1, 2, 3)]
        assert git("log", "--format=%s", "main..HEAD", cwd=yard.worktrees / "t02").count(b"wip: t02") == 3


@pytest.mark.parametrize(
    "call",
    [
        '(cd "$1" && claude -p "go on" --max-turns 2 > /dev/null)',
        '(cd "$1" && claude -p "go on" --max-turns 2)',
        'said=$(cd "$1"; timeout 60 claude -p "go on" --max-turns 2; echo)',
        '(cd "$1"; claude -p "go on" --max-turns 2 | cat)',
    ],
)
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_brackets_around_each_call_are_no_other_worker(tmp_path: Path, shell: str, call: str) -> None:
    """Hazard: a subshell for each call, the commonest form of a loop, counts as a worker that begins anew."""
    with ShimYard(tmp_path, steps=4) as yard:
        text = f"for n in 1 2; do {call}; done; true"
        bash = yard.call(shell, "-c", text, "sh", str(yard.worktrees / "t02"), cwd=yard.root)
        assert bash.wait(30) == 0
        assert yard.told("worker.begin", "pid") == [(bash.pid,)]
        assert [step for (step,) in yard.told("boundary", "step")] == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ['work "$1" & echo $!; work "$2" & echo $!; wait', BRACKETS])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_loops_in_the_background_of_one_script_are_workers_of_their_own(tmp_path: Path, shell: str, how: str) -> None:
    """Hazard: all workers of a script are taken for the script, and none of them can be seen to end."""
    with ShimYard(tmp_path, steps=2) as yard:
        text = """
        work() { for n in 1 2; do (cd "$1" && claude -p "go on" --max-turns 1 > /dev/null); done; }
        HOW
        """
        trees = [str(yard.worktrees / task) for task in ("t02", "t03")]
        bash = yard.call(shell, "-c", text.replace("HOW", how), "sh", *trees, cwd=yard.root)
        out, _ = bash.communicate(timeout=30)
        assert sorted(yard.told("worker.begin", "task", "pid")) == [
            ("t02", int(out.split()[0])),
            ("t03", int(out.split()[1])),
        ]


def test_a_program_that_forks_its_workers_is_not_mistaken_for_a_shell(tmp_path: Path) -> None:
    """Hazard: the workers of a Python pool are taken for the coordinator."""
    with ShimYard(tmp_path, steps=2) as yard:
        text = (
            "import os, subprocess\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    for n in range(2):\n"
            "        subprocess.run(['claude', '-p', 'x', '--max-turns', '1'], stdout=subprocess.DEVNULL)\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0)\n"
            "print(child)\n"
        )
        said = yard.done(sys.executable, "-c", text)
        assert yard.told("worker.begin", "pid") == [(int(said),)]


def test_another_loop_is_another_attempt_and_goes_on(tmp_path: Path) -> None:
    """Hazard: a loop that was started again is taken for the one that died; uncommitted steps are done again."""
    with ShimYard(tmp_path, steps=4) as yard:
        text = 'cd "$1"; claude -p "go on" --max-turns 1; true'
        for _ in range(2):
            assert loop(yard, text).wait(30) == 0
        assert yard.told("worker.begin", "attempt", "step") == [(1, 1), (2, 2)]


def test_when_nothing_is_left_it_says_so_and_does_nothing(tmp_path: Path) -> None:
    """Hazard: a loop that can't know when to stop."""
    with ShimYard(tmp_path, steps=1) as yard:
        text = 'cd "$1"; until claude -p "go on" --max-turns 1 | grep -q "all steps"; do :; done; claude --max-turns 1'
        assert loop(yard, text).wait(30) == 0
        assert len(yard.events_of("tool.issue")) == 1


def test_a_delta_in_a_later_prompt_is_a_message_and_reaches_the_model(tmp_path: Path) -> None:
    """Hazard: a redirect by prompt that the history doesn't show."""
    with ShimYard(tmp_path, steps=4) as yard:
        yard.start_provider()
        text = """
        cd "$1"; note=
        for n in 1 2 3; do
            claude -p "Do step $n.$note" --max-turns 1 > /dev/null
            note=" Now target=5.0.0. [[delta-r1.2]]"
        done
        """
        assert loop(yard, text).wait(30) == 0
        assert yard.told("message", "what") == [("objective",), ("delta",)]
        assert yard.told("model.open", "marks") == [([],), (["[[delta-r1.2]]"],), (["[[delta-r1.2]]"],)]
        assert "==5.0.0" in (yard.worktrees / "t02/packages/p01/deps.lock").read_text()


def test_a_signal_to_the_turn_is_not_the_loops_end(tmp_path: Path) -> None:
    """Hazard: a loop that is called ended because one of its turns was stopped."""
    with ShimYard(tmp_path, calls={"distribution": "fixed", "value_s": 30.0}, child_share=1.0) as yard:
        text = 'cd "$1"; claude -p "go on" --max-turns 1; echo $? > status; claude -p "go on" --max-turns 1; true'
        bash = loop(yard, text)
        started = yard.seen("tool.start")[0].data["pid"]
        shim = yard.events_of("shim")[0].data["pid"]
        subprocess.run(["kill", "-TERM", str(shim)], check=True, timeout=10)
        yard.seen("tool.start", 2)
        assert (yard.worktrees / "t02/status").read_text() == "143\n"
        assert started not in yard.living()
        assert yard.told("worker.signal", "pid", "signal") == [(shim, "SIGTERM")]
        assert not yard.events_of("worker.end")
        assert yard.told("worker.begin", "pid") == [(bash.pid,)]
        # The stopped call and its repetition are two calls, although both are of step 1.
        history = build_of(yard)
        assert [(call.step, call.worker_pid) for call in history.calls] == [(1, bash.pid)] * 2
        bash.send_signal(signal.SIGKILL)


def test_the_timeline_has_one_worker_with_all_calls(tmp_path: Path) -> None:
    """Hazard: calls that no worker made, because several processes wrote them."""
    with ShimYard(tmp_path, steps=4, child_share=0.5) as yard:
        assert loop(yard, LOOP.replace("{call}", "claude")).wait(30) == 0
        timeline = build_of(yard)
        (worker,) = timeline.workers
        assert len(timeline.calls_by(worker)) == 3
        assert all(call.end is not None and not call.cut for call in timeline.calls)
        assert not timeline.history.damage
        assert not timeline.malformed


def test_the_state_of_a_task_survives_garbage(tmp_path: Path) -> None:
    """Hazard: a torn note of a killed shim ends all that come after it."""
    with ShimYard(tmp_path, steps=2) as yard:
        (yard.root / "shim").mkdir()
        (yard.root / "shim/t02.json").write_text('{"step": ')
        assert json.loads(yard.done("claude", "-p", "x", "--output-format", "json"))["num_turns"] == 2


def build_of(yard: ShimYard) -> Timeline:
    """The timeline of what was written so far."""
    return build(merge({path.stem: path.read_bytes() for path in yard.events.glob("*.jsonl")}))
