#!/usr/bin/env python3
"""A fleet around a queue: jobs in SQLite, workers in processes of `multiprocessing`, an operator's page on HTTP.

    queue_fleet.py PORT      POST /pause, /resume, /abort and /close, GET /status

A job is one step of one task: `claude -p … --max-turns 1` in the task's worktree, then a commit, then the next step
becomes a job. The worker of a task is the process that takes its jobs, and it alone takes them, so that no two ever
work in one worktree. Whether a job is handed out is asked in the same transaction that takes it.

Reads REPO TREES CONTROL PLAN MANIFEST RUN_ID, and GRACE and KILL_AFTER in seconds. Standard library only.
"""

import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CONTROL = Path(os.environ["CONTROL"])
DATABASE = CONTROL / "queue.sqlite"
BRANCH = "agent/{run}/{task}"
LOOK_S = 0.02
ANSWER_S = 60.0
CONTROLS = ("/pause", "/resume", "/abort", "/close")

TABLES = """
CREATE TABLE queue (state TEXT);
CREATE TABLE jobs (task TEXT, step INTEGER, state TEXT, PRIMARY KEY (task, step));
"""


class Queue:
    """The database, by one connection: SQLite's must not be carried over a fork."""

    def __init__(self):

        self._base = sqlite3.connect(DATABASE, timeout=10, isolation_level=None)

    def create(self, tasks):
        """Empty tables, and the first step of each task as a job."""
        self._base.executescript(TABLES)
        self._base.execute("INSERT INTO queue VALUES ('running')")
        self._base.executemany("INSERT INTO jobs VALUES (?, 1, 'waiting')", [(task,) for task in tasks])

    @property
    def state(self):
        """running, paused, stopping, aborted or completed."""
        return self._base.execute("SELECT state FROM queue").fetchone()[0]

    @state.setter
    def state(self, state):
        self._base.execute("UPDATE queue SET state = ?", (state,))

    def take(self, task):
        """The step of the task's next job, which is running from now on; or None when none is handed out."""
        taken = self._base.execute(
            "UPDATE jobs SET state = 'running' WHERE task = ? AND state = 'waiting' "
            "AND EXISTS (SELECT 1 FROM queue WHERE state = 'running') RETURNING step",
            (task,),
        ).fetchall()
        return taken[0][0] if taken else None

    def finish(self, task, step, last):
        """The job is done, and unless it was the last one the next step is a job."""
        self._base.execute("BEGIN IMMEDIATE")
        self._base.execute("UPDATE jobs SET state = 'done' WHERE task = ? AND step = ?", (task, step))
        if not last:
            self._base.execute("INSERT INTO jobs VALUES (?, ?, 'waiting')", (task, step + 1))
        self._base.execute("COMMIT")

    def running(self):
        """How many jobs are being worked on."""
        return self._base.execute("SELECT count(*) FROM jobs WHERE state = 'running'").fetchone()[0]


def work(task, tree):
    """A worker: job after job of its task, until there is none any more or the queue is stopping."""

    os.setsid()  # its group is then itself and what it started, and nobody else
    queue = Queue()
    while True:
        step = queue.take(task)
        if step is None:
            if queue.state == "stopping":
                return
            time.sleep(LOOK_S)
            continue
        call = ["claude", "-p", f"Do step {step} of {task}.", "--max-turns", "1"]
        said = subprocess.run(call, cwd=tree, env={**os.environ, "TASK_ID": task}, stdout=subprocess.PIPE, text=True)
        if said.returncode:
            sys.exit(1)
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
        subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", f"wip: {task} {step}"], cwd=tree, check=True)
        last = "all steps" in said.stdout
        queue.finish(task, step, last)
        if last:
            return


class Fleet:
    """The workers, and what the operator may ask for."""

    def __init__(self, run, grace_s, kill_after_s):
        self.run, self.grace_s, self.kill_after_s = run, grace_s, kill_after_s
        self.workers, self.closed = {}, threading.Event()

    def start(self, tasks, repo, trees, manifest):
        """Worktree, branch, process and manifest line for each task. Forks, so no thread may run yet."""
        fork = multiprocessing.get_context("fork")
        for task in tasks:
            branch, tree = BRANCH.format(run=self.run, task=task), trees / task
            subprocess.run(["git", "worktree", "add", "-q", "-b", branch, tree, "main"], cwd=repo, check=True)
            worker = self.workers[task] = fork.Process(target=work, args=(task, tree))
            worker.start()
            line = {
                "run_id": self.run, "task_id": task, "attempt": 1, "pid": worker.pid, "host": socket.gethostname(),
                "branch": branch, "worktree": str(tree), "started_at": time.strftime("%FT%TZ", time.gmtime()),
            }  # fmt: skip
            append(manifest, line)

    def alive(self):
        """Task and pid of each worker that lives, or of which something lives on in its group."""
        return {task: worker.pid for task, worker in self.workers.items() if worker.is_alive() or group(worker.pid)}

    def pause(self):
        """No job is handed out any more; said when none is being worked on."""
        queue = Queue()
        queue.state = "paused"
        return {"state": "paused" if wait_for(lambda: not queue.running(), ANSWER_S) else "pausing"}

    def resume(self):
        """Jobs are handed out again; said when everybody has one."""
        queue = Queue()
        queue.state = "running"
        return {"state": "running" if wait_for(lambda: queue.running() >= len(self.alive()), ANSWER_S) else "resuming"}

    def abort(self):
        """No job is handed out, running ones may end within the grace window; then TERM, KILL and a line, the sweep."""
        queue = Queue()
        queue.state = "stopping"
        if not wait_for(lambda: not self.alive(), self.grace_s):
            for pid in self.alive().values():
                group(pid, signal.SIGTERM)
            if not wait_for(lambda: not self.alive(), self.kill_after_s):
                for task, pid in self.alive().items():
                    group(pid, signal.SIGKILL)
                    branch = BRANCH.format(run=self.run, task=task)
                    append(CONTROL / "killed.jsonl", {"run_id": self.run, "pid": pid, "task": task, "branch": branch})
                wait_for(lambda: not self.alive(), 5)
        left = [{"pid": pid, "task": task} for task, pid in self.alive().items()]
        if not left:
            queue.state = "aborted"
        return {"state": queue.state, "sweep": {"alive": left, "dirty": dirty(os.environ["TREES"])}}

    def close(self):
        """The coordinator may end. Workers are not its to end here: that is an abort."""
        self.closed.set()
        return {"state": Queue().state}


def group(pid, number=0):
    """Signal a worker's group; whether there was anybody in it."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    return True


def dirty(trees):
    """Worktrees with something that nobody committed."""
    status = ["git", "status", "--porcelain"]
    return [str(tree) for tree in sorted(Path(trees).iterdir()) if subprocess.check_output(status, cwd=tree)]


def append(path, line):
    """One line of JSON, in one write."""
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def wait_for(condition, seconds):
    """Whether the condition held within so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_S)
    return True


class Page(BaseHTTPRequestHandler):
    """Each control is answered when it has come true, or when it is known that it did not."""

    def do_POST(self):
        control = getattr(self.server.fleet, self.path.removeprefix("/"), None) if self.path in CONTROLS else None
        self._answer(200 if control else 404, control() if control else {"error": f"no {self.path} here"})

    def do_GET(self):
        self._answer(200, {"state": Queue().state})

    def _answer(self, status, said):
        text = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(ThreadingHTTPServer):
    """The page of one fleet."""

    daemon_threads = False  # an answer that is being written is written to its end

    def __init__(self, port, fleet):
        self.fleet = fleet
        super().__init__(("127.0.0.1", port), Page)


def main(port):
    """The coordinator, until it is closed or all is done. Exit status: 0 all done, 3 aborted, 4 neither."""
    tasks = list(json.loads(Path(os.environ["PLAN"]).read_text())["tasks"])
    queue = Queue()
    queue.create(tasks)
    fleet = Fleet(os.environ["RUN_ID"], float(os.environ["GRACE"]), float(os.environ["KILL_AFTER"]))
    fleet.start(tasks, os.environ["REPO"], Path(os.environ["TREES"]), os.environ["MANIFEST"])
    server = Server(port, fleet)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    print("listening", flush=True)
    # After an abort it stays, because it has to answer.
    while not fleet.closed.wait(0.1) and (fleet.alive() or queue.state != "running"):
        pass
    server.shutdown()
    server.server_close()
    if queue.state == "running" and not fleet.alive():
        queue.state = "failed" if any(worker.exitcode for worker in fleet.workers.values()) else "completed"
    return {"completed": 0, "aborted": 3}.get(queue.state, 4)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
