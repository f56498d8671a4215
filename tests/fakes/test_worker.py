"""The simulated worker as a process: its loop, what it obeys, and what is left when it is ended."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes import worker as worker_package
from fakes.origin import create_origin, git
from fakes.sample_repo import generate
from scoring.history import Event, merge
from tests.waiting import until

pytestmark = pytest.mark.real

MAIN_FILE = Path(worker_package.__file__).with_name("__main__.py")
TOKEN = "token-of-the-test"
NOBODY_LISTENS = "http://127.0.0.1:9"


class Yard:
    """A run with one task: origin, clone, worktree, control folder, plan, and the processes started in it."""

    def __init__(self, root: Path, **task: object) -> None:
        self.root = root / "a yard"  # a space, because a quoting mistake shows only there
        self.events, self.control = self.root / "events", self.root / "control"
        self.tree, self.origin = self.root / "tree", self.root / "origin.git"
        for folder in (self.events, self.control / "tasks"):
            folder.mkdir(parents=True)
        generate(self.root / "sample", packages=2)
        create_origin(self.origin, self.root / "sample", events=self.events)
        clone = self.root / "clone"
        git("clone", "-q", str(self.origin), str(clone), cwd=self.root)
        git("worktree", "add", "-q", "-b", "agent/r1/t01", str(self.tree), cwd=clone)
        self.file = self.tree / "packages/p01/deps.lock"
        self.provider = NOBODY_LISTENS
        self._told: list[dict[str, object]] = []
        self._started: list[subprocess.Popen[str]] = []
        mine: dict[str, object] = {
            "files": ["packages/p01/deps.lock"],
            "steps": 400,
            "calls": {"distribution": "fixed", "value_s": 0.02},
            "model": {"tokens_in": 400, "tokens_out": 12, "latency_s": 0.0, "stream_s": 0.0, "chunks": 2},
        }
        plan = {
            "run": "r1",
            "seed": 1,
            "base": "main",
            "longest_call_s": 0.1,
            "grace_s": 1.0,
            "kill_after_s": 0.5,
            "objective": {"text": "Move everything to 4.0.0 [[objective-r1]]", "mark": "[[objective-r1]]"},
            "tasks": {"t01": mine | task},
        }
        (self.root / "plan.json").write_text(json.dumps(plan), encoding="utf-8")

    def start(self, attempt: int = 1, shell: str = "", env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the worker; `shell` runs before it in the same process."""
        program = [sys.executable, "-I", "-S", "-E", str(MAIN_FILE), "--run", "r1", "--task", "t01"]
        surroundings = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "RUN_ID": "r1",
            "TASK_ID": "t01",
            "ATTEMPT": str(attempt),
            "STOPDRILL_EVENTS": str(self.events),
            "STOPDRILL_CONTROL": str(self.control),
            "STOPDRILL_PROVIDER": self.provider,
            "STOPDRILL_TOKEN": TOKEN,
            "STOPDRILL_PLAN": str(self.root / "plan.json"),
            "WORKER_API_TOKEN": "fake",
        }
        process = subprocess.Popen(
            ["sh", "-c", shell + ' exec "$@"', "sh", *program],
            cwd=self.tree,
            env=surroundings | (env or {}),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def start_provider(self) -> None:
        """Start the model provider and point the workers at it."""
        port_file = self.root / "provider.json"
        argv = [sys.executable, "-I", "-m", "fakes.provider", "--events", str(self.events)]
        self._started.append(subprocess.Popen([*argv, "--port-file", str(port_file), "--token", TOKEN], text=True))
        until(port_file.exists, what="the provider's port")
        self.provider = f"http://127.0.0.1:{json.loads(port_file.read_text())['port']}"

    def say(self, word: str) -> None:
        """Write the run's word."""
        self._replace(self.control / "run", word)

    def tell(self, kind: str, text: str = "") -> None:
        """Send the worker one more message."""
        self._told.append({"n": len(self._told) + 1, "kind": kind, "text": text})
        lines = "".join(json.dumps(message) + "\n" for message in self._told)
        self._replace(self.control / "tasks" / "t01.jsonl", lines)

    def _replace(self, path: Path, text: str) -> None:
        draft = path.with_suffix(".draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)

    def events_of(self, *kinds: str) -> list[Event]:
        """All events of these kinds so far, in order; all events when no kind is named."""
        found = merge({path.stem: path.read_bytes() for path in self.events.glob("*.jsonl")})
        return found.of(*kinds) if kinds else list(found.events)

    def seen(self, kind: str, count: int = 1) -> list[Event]:
        """Wait for `count` events of a kind."""
        return until(
            lambda: found if len(found := self.events_of(kind)) >= count else None,
            what=f"{count} events {kind}",
        )

    def status(self) -> dict[str, Any]:
        """The worker's status file."""
        found: dict[str, Any] = json.loads((self.control / "status" / "t01.json").read_text())
        return found

    def subjects(self) -> list[str]:
        """Subjects of the branch's commits, newest first."""
        return git("log", "--format=%s", "main..HEAD", cwd=self.tree).decode().split("\n")[:-1]

    def living(self) -> dict[int, str]:
        """Processes that stand in the worktree, by pid, with their command lines. No zombies."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it has ended while we looked
                    if (entry / "cwd").readlink() == self.tree:
                        found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        return found

    def kill(self, pid: int) -> None:
        """Kill a process that stands in the worktree, through a pidfd."""
        with contextlib.suppress(ProcessLookupError):  # gone already is as good
            fd = os.pidfd_open(pid)
            if pid in self.living():
                signal.pidfd_send_signal(fd, signal.SIGKILL)
                select.select([fd], [], [], 5.0)
            os.close(fd)

    def __enter__(self) -> "Yard":
        return self

    def __exit__(self, *why: object) -> None:
        for process in self._started:
            process.kill()
            process.wait(5)
            if process.stderr:
                process.stderr.close()

        def none_left() -> bool:
            for pid in self.living():
                self.kill(pid)
            return not self.living()

        until(none_left, what="the end of every process in the worktree")


def test_a_step_writes_its_events_in_this_order(tmp_path: Path) -> None:
    """Hazard: scoring reads boundaries and checkpoints in the order of the loop."""
    with Yard(tmp_path, steps=2, child_share=0.0) as yard:
        yard.start_provider()
        worker = yard.start()
        assert worker.wait(20) == 0
        mine = [event for event in yard.events_of() if event.source.startswith(("worker", "tools"))]
        step = ["tool.issue", "tool.start", "tool.end", "tool.return", "checkpoint", "boundary"]
        assert [event.kind for event in mine] == ["worker.begin", "message", *step, *step, "worker.end"]
        assert [event.data["call"] for event in yard.events_of("tool.return")] == ["t01.1/1", "t01.1/2"]
        assert yard.subjects() == ["wip: t01 2", "wip: t01 1"]
        assert yard.events_of("worker.end")[0].data["reason"] == "done"
        assert (yard.status()["state"], yard.status()["step"]) == ("ended", 2)
        assert git("status", "--porcelain", cwd=yard.tree) == b""


def test_killed_in_mid_call_it_leaves_half_a_file_and_the_next_attempt_goes_on(tmp_path: Path) -> None:
    """Hazard: a restart that builds on half a file, or that forgets what the checkpoints hold."""
    with Yard(tmp_path, steps=3, calls={"distribution": "list", "values_s": [0.01, 0.01, 1.0]}) as yard:
        before = yard.file.read_text().splitlines()
        worker = yard.start()
        yard.seen("tool.start", 3)
        until(lambda: yard.file.stat().st_size < 100, what="the truncated file")
        worker.kill()
        assert worker.wait(10) == -signal.SIGKILL
        assert not yard.file.read_bytes().rstrip().endswith(b"end")
        assert yard.start(attempt=2).wait(20) == 0
        begins = yard.events_of("worker.begin")
        assert [(event.data["attempt"], event.data["step"]) for event in begins] == [(1, 1), (2, 3)]
        after = yard.file.read_text().splitlines()
        assert len(after) == len(before) + 1
        assert sum(line.endswith("==4.0.0") for line in after) == 3
        assert yard.subjects() == ["wip: t01 3", "wip: t01 2", "wip: t01 1"]


def test_a_hold_parks_at_a_boundary_and_a_release_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Hazard: a call issued during the hold, a step lost or done twice after it."""
    with Yard(tmp_path, child_share=0.5) as yard:
        yard.start()
        yard.seen("tool.return", 2)
        yard.say("HOLD")
        parked = yard.seen("worker.parked")[0]
        until(lambda: yard.status()["state"] == "parked", what="a status that says so")
        assert yard.status()["step"] == parked.data["step"]
        yard.say("RUN")
        unparked = yard.seen("worker.unparked")[0]
        yard.seen("tool.issue", parked.data["step"] + 2)
        issued = yard.events_of("tool.issue")
        assert not [event for event in issued if parked.t < event.t < unparked.t]
        assert [event.data["step"] for event in issued] == list(range(1, len(issued) + 1))


def test_a_hold_of_its_own_parks_it_until_its_own_release(tmp_path: Path) -> None:
    """Hazard: a modify-worker that can't be held alone."""
    with Yard(tmp_path) as yard:
        yard.start()
        yard.seen("boundary")
        yard.tell("hold")
        yard.seen("worker.parked")
        yard.tell("delta", "from here on target=5.0.0 [[delta-1-1]]")
        yard.seen("message", 2)
        assert not yard.events_of("worker.unparked")
        yard.tell("release")
        yard.seen("worker.unparked")


@pytest.mark.parametrize(("how", "reason"), [("STOP", "stop"), ("drop", "drop")])
def test_stop_and_drop_end_it_at_a_boundary(tmp_path: Path, how: str, reason: str) -> None:
    """Hazard: a stop that cuts a call, or leaves its work without a checkpoint."""
    with Yard(tmp_path) as yard:
        worker = yard.start()
        yard.seen("boundary", 2)
        yard.say(how) if how == "STOP" else yard.tell(how)
        assert worker.wait(20) == 0
        assert yard.events_of("worker.end")[0].data["reason"] == reason
        assert yard.status()["state"] == "ended"
        assert len(yard.events_of("tool.issue")) == len(yard.events_of("tool.end"))
        assert git("status", "--porcelain", cwd=yard.tree) == b""


def test_a_stop_ends_it_while_it_is_held(tmp_path: Path) -> None:
    """Hazard: a parked worker that hears only the release."""
    with Yard(tmp_path) as yard:
        yard.say("HOLD")
        worker = yard.start()
        yard.seen("worker.parked")
        yard.say("STOP")
        assert worker.wait(20) == 0
        assert not yard.events_of("tool.issue")


def test_a_delta_is_in_the_next_request_and_changes_the_work(tmp_path: Path) -> None:
    """Hazard: a call for the old goal after the delta was received."""
    with Yard(tmp_path) as yard:
        yard.start_provider()
        yard.start()
        yard.seen("boundary")
        yard.tell("delta", "Now target=5.0.0. [[delta-1-1]]")
        heard = until(
            lambda: [event for event in yard.events_of("message") if event.data["what"] == "delta"],
            what="the delta",
        )[0]
        until(
            lambda: [event for event in yard.events_of("tool.return") if event.t > heard.t],
            what="a call after the delta",
        )
        asked = [event for event in yard.events_of("model.open") if event.t > heard.t]
        issued = [event for event in yard.events_of("tool.issue") if event.t > heard.t]
        assert asked[0].data["marks"] == ["[[objective-r1]]", "[[delta-1-1]]"]
        assert asked[0].t < issued[0].t
        assert any(line.endswith("==5.0.0") for line in yard.file.read_text().splitlines())


def test_a_stop_during_the_models_answer_is_followed_by_no_call(tmp_path: Path) -> None:
    """Hazard: look, then ask, then act: the answer takes long, and the look is stale."""
    slow = {"tokens_in": 1, "tokens_out": 4, "latency_s": 0.3, "stream_s": 0.2, "chunks": 2}
    with Yard(tmp_path, model=slow) as yard:
        yard.start_provider()
        worker = yard.start()
        yard.seen("model.open")
        yard.say("STOP")
        assert worker.wait(20) == 0
        assert not yard.events_of("tool.issue")
        assert [event.data["outcome"] for event in yard.events_of("model.close")] == ["done"]


@pytest.mark.parametrize("child_share", [0.0, 1.0])
def test_sigterm_in_mid_call_ends_it_and_its_tool_at_once(tmp_path: Path, child_share: float) -> None:
    """Hazard: a tool call that goes on when its worker has said goodbye."""
    long = {"distribution": "fixed", "value_s": 30.0}
    with Yard(tmp_path, calls=long, child_share=child_share) as yard:
        worker = yard.start()
        started = yard.seen("tool.start")[0]
        assert (started.data["pid"] != worker.pid) is bool(child_share)
        if child_share:
            comm = Path(f"/proc/{started.data['pid']}/comm").read_text()
            assert comm == "tool-t01\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 128 + signal.SIGTERM
        assert not yard.living()
        assert [event.data["signal"] for event in yard.events_of("worker.signal")] == ["SIGTERM"]
        assert [event.data["reason"] for event in yard.events_of("worker.end")] == ["term"]
        assert not yard.events_of("tool.end", "tool.return")


def test_sigint_ends_it_too_and_tells_so(tmp_path: Path) -> None:
    """Hazard: a traceback of KeyboardInterrupt instead of an end."""
    with Yard(tmp_path, calls={"distribution": "fixed", "value_s": 30.0}) as yard:
        worker = yard.start()
        yard.seen("tool.start")
        worker.send_signal(signal.SIGINT)
        assert worker.wait(10) == 130
        assert yard.events_of("worker.end")[0].data["reason"] == "int"
        assert worker.stderr
        assert worker.stderr.read() == ""


def test_a_killed_tool_call_ends_its_worker_with_an_error(tmp_path: Path) -> None:
    """Hazard: half a file that is committed as if the call had returned."""
    with Yard(tmp_path, calls={"distribution": "fixed", "value_s": 30.0}, child_share=1.0) as yard:
        worker = yard.start()
        yard.kill(yard.seen("tool.start")[0].data["pid"])
        assert worker.wait(10) == 1
        assert yard.events_of("worker.end")[0].data["reason"] == "error"
        assert not yard.subjects()


def test_without_a_provider_it_says_so_and_goes_on(tmp_path: Path) -> None:
    """Hazard: a fleet that stands still because of a meter."""
    with Yard(tmp_path, steps=2) as yard:
        assert yard.start().wait(20) == 0
        assert "could not be reached" in yard.events_of("worker.note")[0].data["text"]
        assert len(yard.events_of("checkpoint")) == 2


def test_new_files_are_created_and_committed_against_ignore_rules(tmp_path: Path) -> None:
    """Hazard: work that no checkpoint holds because git doesn't know the file."""
    with Yard(tmp_path, files=["new/deep/a.txt"], steps=2) as yard:
        (yard.root / "clone/.git/info/exclude").write_text("new/\n")
        assert yard.start().wait(20) == 0
        assert git("show", "HEAD:new/deep/a.txt", cwd=yard.tree) == b"# stopdrill t01 2 end\n"


def test_every_nth_checkpoint_is_pushed_to_its_own_branch(tmp_path: Path) -> None:
    """Hazard: an origin that never sees the branches of the run."""
    with Yard(tmp_path, steps=2, push_every=2) as yard:
        assert yard.start().wait(20) == 0
        updates = [(event.data["outcome"], event.data["ref"]) for event in yard.events_of("ref.update")]
        assert updates == [("attempted", "refs/heads/agent/r1/t01"), ("accepted", "refs/heads/agent/r1/t01")]


def test_readonly_calls_change_nothing(tmp_path: Path) -> None:
    """Hazard: a checkpoint without a change, or a change without one."""
    with Yard(tmp_path, steps=3, readonly_share=1.0) as yard:
        assert yard.start().wait(20) == 0
        assert [event.data["changed"] for event in yard.events_of("tool.return")] == [[], [], []]
        assert not yard.events_of("checkpoint")
