"""The files of the run that the coordinator writes or reads: control directory, manifest, durable state,
logs.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fakes.coordinators.files import append_line, read_lines, read_object, write_json, write_whole
from fakes.coordinators.reference.config import Config
from fakes.coordinators.reference.ports import Process, Status, Worker


class Store:
    """The control directory and the manifest of one run."""

    def __init__(self, config: Config) -> None:
        self._config = config
        for folder in (self._path("tasks"), self._path("status"), self._path("pr"), config.logs):
            os.makedirs(folder, exist_ok=True)

    def _path(self, *parts: str) -> str:
        return os.path.join(self._config.control, *parts)

    def control(self, word: str) -> None:
        """RUN, HOLD or STOP for every worker."""
        write_whole(self._path("run"), word + "\n")

    def post(self, task: str, kind: str, text: str, key: str) -> None:
        """Add a message to a worker's file, unless one with this key is there."""
        path = self._path("tasks", f"{task}.jsonl")
        messages = read_lines(path)
        if any(message.get("key") == key for message in messages):
            return
        messages.append({"n": len(messages) + 1, "kind": kind, "text": text, "key": key})
        write_whole(path, "".join(json.dumps(message) + "\n" for message in messages))

    def status(self, task: str) -> Status | None:
        """The worker's last word; None when it has said nothing, or nothing that can be read."""
        try:
            raw = read_object(self._path("status", f"{task}.json"))
            return _status(raw) if raw else None
        except (KeyError, TypeError, ValueError):
            return None

    def log_worker(self, worker: Worker) -> None:
        """The manifest line."""
        append_line(
            self._config.manifest,
            {
                "run_id": self._config.run,
                "task_id": worker.task,
                "attempt": worker.attempt,
                "pid": worker.process.pid,
                "host": socket.gethostname(),
                "branch": worker.branch,
                "worktree": worker.worktree,
                "started_at": datetime.now(UTC).isoformat(),
                "started_ticks": worker.process.ticks,
            },
        )

    def manifest(self) -> list[Worker]:
        """The workers of this run; a line without a start time can never be matched to a process."""
        return [
            Worker(
                line["task_id"],
                line["attempt"],
                Process(line["pid"], line.get("started_ticks", -1)),
                line["branch"],
                line["worktree"],
            )
            for line in read_lines(self._config.manifest)
            if line.get("run_id") == self._config.run and line.get("pid")
        ]

    def save_state(self, state: Mapping[str, Any]) -> None:
        write_json(self._path("state.json"), state)

    def load_state(self) -> dict[str, Any] | None:
        return read_object(self._path("state.json"))

    def save_table(self, n: int, tasks: Mapping[str, str], new: tuple[str, ...]) -> None:
        write_json(self._path(f"table-{n}.json"), {"n": n, "tasks": dict(tasks), "new": list(new)})

    def save_plan(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """The plan with the added tasks, in our own file: the operator's plan is not ours to change."""
        plan = read_object(self._config.plan) or {}
        write_json(self._path("plan.json"), {**plan, "tasks": {**plan.get("tasks", {}), **added}})

    def plan_file(self) -> str:
        """What workers are to read: the extended plan where there is one."""
        extended = self._path("plan.json")
        return extended if os.path.exists(extended) else self._config.plan

    def log_killed(self, worker: Worker, process: Process, files: list[str]) -> None:
        line: dict[str, Any] = {
            "what": "killed dirty",
            "run_id": self._config.run,
            "pid": process.pid,
            "task": worker.task,
            "branch": worker.branch,
            "files": files,
            "t": time.monotonic_ns(),
        }
        if process != worker.process:
            line["below"] = worker.process.pid
        append_line(self._config.killed_log, line)

    def killed(self) -> list[int]:
        return [line["pid"] for line in read_lines(self._config.killed_log) if "pid" in line]

    def log_stalled(self, worker: Worker, last_step: int) -> None:
        append_line(
            self._path("stalled.jsonl"),
            {
                "task": worker.task,
                "pid": worker.process.pid,
                "last_step": last_step,
                "t": time.monotonic_ns(),
            },
        )

    def save_pr(self, task: str, record: Mapping[str, str]) -> None:
        write_json(self._path("pr", f"{task}.json"), dict(record))


def _status(raw: Mapping[str, Any]) -> Status:
    tokens = raw.get("tokens")
    return Status(
        attempt=int(raw["attempt"]),
        pid=int(raw["pid"]),
        state=str(raw["state"]),
        step=int(raw.get("step") or 0),
        reason=str(raw.get("reason") or ""),
        t=int(raw["t"]) / 1e9,
        tokens=int(tokens) if tokens is not None else None,
    )
