"""A small real world for coordinators: an origin, a clone, a plan, a configuration, and a stand-in worker.

The stand-in keeps the control directory's protocol and nothing else: it sleeps instead of calling tools,
and commits one line per step. `ORDERS` in its environment make it deaf or slow.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fakes
from fakes.coordinators.files import read_lines
from fakes.coordinators.mailbox import Mailbox
from fakes.coordinators.reference.config import Config, load
from tests.waiting import until

STAND_IN = r"""
import json, os, signal, subprocess, sys, time
control, task = os.environ["STOPDRILL_CONTROL"], os.environ["TASK_ID"]
orders = json.loads(os.environ.get("ORDERS", "{}")).get(task, "")
plan = json.load(open(os.environ["STOPDRILL_PLAN"]))["tasks"][task]
def term(number, frame):
    if "deaf" not in orders:
        say("ended", "term"); os._exit(143)
signal.signal(signal.SIGTERM, term)
if "child" in orders:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
step = 0
def say(state, reason):
    path = f"{control}/status/{task}.json"
    with open(f"{control}/status/.{task}.{os.getpid()}", "w") as f:
        json.dump({"attempt": int(os.environ["ATTEMPT"]), "pid": os.getpid(), "state": state, "step": step,
                   "reason": reason, "t": time.monotonic_ns(), "tokens": step}, f)
    os.replace(f.name, path)
def look():
    word = open(f"{control}/run").read().strip()
    kinds = set()
    if os.path.exists(f"{control}/tasks/{task}.jsonl"):
        kinds = {json.loads(line)["kind"] for line in open(f"{control}/tasks/{task}.jsonl")}
    if "deaf" in orders: return "RUN"
    if word == "STOP" or "drop" in kinds:
        say("ended", "stop" if word == "STOP" else "drop"); sys.exit(0)
    return "HOLD" if "hold" in kinds and "release" not in kinds else word
while step < plan["steps"]:
    look()
    time.sleep(0.05)
    step += 1
    with open("work.txt", "a") as f: f.write(f"{task} {step}\n")
    if "deaf" not in orders:
        subprocess.run(["git", "add", "work.txt"], check=True)
        subprocess.run(["git", "commit", "-qm", f"wip: {task} {step}"], check=True)
    say("working", "boundary")
    while look() == "HOLD":
        say("parked", "hold"); time.sleep(0.01)
    say("working", "on")
say("ended", "done")
"""

ROOT = str(Path(fakes.__path__[0]).parent)


def git(where: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(where), *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class World:
    """A world below `root` with `tasks` tasks; `coordinators` that it started are killed by `end`, workers
    too.
    """

    def __init__(self, root: Path, tasks: int = 3, worker: list[str] | None = None, **plan: Any) -> None:
        self.root, self.run = root, f"rt-{os.getpid()}-{time.monotonic_ns()}"
        self.origin, self.repo, self.control = root / "origin.git", root / "repo", root / "control"
        self.stand_in = root / "worker.py"
        self.coordinators: list[subprocess.Popen[bytes]] = []
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "w",
            "GIT_AUTHOR_EMAIL": "w@x.invalid",
            "GIT_COMMITTER_NAME": "w",
            "GIT_COMMITTER_EMAIL": "w@x.invalid",
        }
        self._repositories()
        self.stand_in.write_text(STAND_IN)
        self.plan = self._plan(tasks, plan)
        self.worker = worker or [sys.executable, "-I", "-S", "-E", str(self.stand_in)]
        self.config = self.configure({})

    def _repositories(self) -> None:
        git(self.root, "init", "-q", "--bare", "-b", "main", str(self.origin))
        git(self.root, "init", "-q", "-b", "main", str(self.repo))
        for name, value in (("user.name", "o"), ("user.email", "o@x.invalid")):
            git(self.repo, "config", name, value)
        for i in range(1, 10):
            path = self.repo / "packages" / f"p0{i}" / "deps.lock"
            path.parent.mkdir(parents=True)
            path.write_text("version: 1\n")
        git(self.repo, "add", ".")
        git(self.repo, "commit", "-qm", "base")
        git(self.repo, "remote", "add", "origin", str(self.origin))
        git(self.repo, "push", "-q", "origin", "main")

    def _plan(self, tasks: int, more: dict[str, Any]) -> dict[str, Any]:
        spec = {
            "steps": 400,
            "calls": {"distribution": "fixed", "value_s": 0.05},
            "child_share": 0.5,
            "readonly_share": 0.0,
            "model": {"tokens_in": 4, "tokens_out": 1, "latency_s": 0.001, "stream_s": 0.001, "chunks": 1},
        }
        names = [f"t0{i}" for i in range(1, tasks + 1)]
        return {
            "run": self.run,
            "seed": 1,
            "base": "main",
            "longest_call_s": 0.4,
            "grace_s": 0.6,
            "kill_after_s": 0.2,
            "poll_s": 0.01,
            "objective": {"text": "do it [[objective-1]]", "mark": "[[objective-1]]"},
            "tasks": {n: {**spec, "title": n, "files": [f"packages/p{n[1:]}/deps.lock"]} for n in names},
            **more,
        }

    def configure(self, env: dict[str, str]) -> Path:
        (self.root / "plan.json").write_text(json.dumps(self.plan))
        (self.root / "events").mkdir(exist_ok=True)
        path = self.root / "config.json"
        body = {
            "run": self.run,
            "repo": str(self.repo),
            "origin": str(self.origin),
            "worktrees": str(self.root / "worktrees"),
            "control": str(self.control),
            "manifest": str(self.root / "manifest.jsonl"),
            "events": str(self.root / "events"),
            "plan": str(self.root / "plan.json"),
            "worker": self.worker,
            "env": {"STOPDRILL_PROVIDER": "http://127.0.0.1:9", "STOPDRILL_TOKEN": "none", **env},
            "base": "main",
            "grace_s": self.plan["grace_s"],
            "kill_after_s": self.plan["kill_after_s"],
        }
        path.write_text(json.dumps(body))
        return path

    def order(self, **orders: str) -> None:
        """What the stand-ins of some tasks are to do wrong."""
        self.config = self.configure({"ORDERS": json.dumps(orders)})

    def loaded(self) -> Config:
        return load(str(self.config))

    def serve(self, *program: str) -> subprocess.Popen[bytes]:
        """Start a coordinator, the reference one by default."""
        argv = [sys.executable, "-I", "-m", *(program or ("fakes.coordinators.reference",))]
        with (self.root / "coordinator.txt").open("ab") as log:
            started = subprocess.Popen(
                [*argv, "serve", "--config", str(self.config)],
                env=self.env,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.coordinators.append(started)
        return started

    def ask(self, verb: str, within_s: float = 20.0, **args: Any) -> dict[str, Any]:
        box = Mailbox(str(self.control))
        return asyncio.run(box.reply(box.send(verb, args), within_s))

    def at_work(self) -> None:
        """Wait until every worker has done two steps."""
        until(lambda: all(self.step(task) >= 2 for task in self.plan["tasks"]), 20, "all workers at step 2")

    def step(self, task: str) -> int:
        path = self.control / "status" / f"{task}.json"
        return int(json.loads(path.read_text())["step"]) if path.exists() else 0

    def manifest(self) -> list[dict[str, Any]]:
        return read_lines(str(self.root / "manifest.jsonl"))

    def alive(self, task: str = "") -> list[int]:
        """The pids of living workers of this run, by their command line, which names the run."""
        found = []
        for pid in [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]:
            argv = command_line(pid)
            if "--run" in argv and self.run in argv and (not task or task in argv):
                found.append(pid)
        return found

    def end(self) -> None:
        for started in self.coordinators:
            if started.poll() is None:
                started.kill()
            started.wait(10)
        for pid in self.alive():
            fd = os.pidfd_open(pid)
            if self.run in command_line(pid):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
