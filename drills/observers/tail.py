"""Live reading of the event files while a drill runs.

Only for steering and for the live view: whether the fleet is at work, whether a call is in flight, what each worker
does. Verdicts never come from here, they come from the whole history afterwards.
"""

import json
import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class WorkerNow:
    """What one task's worker was last seen doing."""

    task: str
    attempt: int = 0
    pid: int = 0
    step: int = 0
    state: str = "starting"  # starting, model, call, boundary, parked, left, gone
    calls: int = 0
    checkpoints: int = 0
    tokens: int = 0
    wip: int | None = None


@dataclass
class FleetNow:
    """The fleet as the events told so far."""

    workers: dict[str, WorkerNow] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)  # call id to worker pid
    processes: dict[int, int] = field(default_factory=dict)  # proc to pid, of the run, living
    tokens: int = 0
    requests_open: set[str] = field(default_factory=set)
    news: deque[str] = field(default_factory=lambda: deque(maxlen=8))
    trouble: list[str] = field(default_factory=list)

    def at_work(self, tasks: tuple[str, ...]) -> bool:
        """Every planned task has a worker that has made a call and has not left."""
        busy = (self.workers.get(task) for task in tasks)
        return all(w is not None and w.calls > 0 and w.state not in ("left", "gone") for w in busy)

    def began(self, tasks: tuple[str, ...]) -> int:
        """How many of the tasks have made at least one call."""
        return sum(1 for task in tasks if (w := self.workers.get(task)) is not None and w.calls > 0)

    def alive(self) -> list[WorkerNow]:
        """Workers that have neither left nor died."""
        return [w for w in self.workers.values() if w.state not in ("left", "gone")]

    def take(self, kind: str, data: dict[str, Any]) -> None:
        """Fold one event in."""
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, data)

    def worker(self, task: str) -> WorkerNow:
        """The record of a task's worker, made when it is new."""
        if task not in self.workers:
            self.workers[task] = WorkerNow(task)
        return self.workers[task]


def _begin(fleet: FleetNow, data: dict[str, Any]) -> None:
    worker = fleet.worker(data["task"])
    worker.attempt, worker.pid, worker.state = data["attempt"], data["pid"], "starting"


def _issue(fleet: FleetNow, data: dict[str, Any]) -> None:
    worker = fleet.worker(data["task"])
    worker.calls, worker.step, worker.state = worker.calls + 1, data["step"], "call"
    fleet.in_flight[data["call"]] = data["pid"]


def _call_end(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.in_flight.pop(data["call"], None)


def _state(name: str) -> Any:
    def handler(fleet: FleetNow, data: dict[str, Any]) -> None:
        fleet.worker(data["task"]).state = name

    return handler


def _checkpoint(fleet: FleetNow, data: dict[str, Any]) -> None:
    worker = fleet.worker(data["task"])
    worker.checkpoints, worker.wip = worker.checkpoints + 1, data["step"]


def _model_open(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.tokens += data["tokens_in"]
    fleet.requests_open.add(data["req"])
    if data["task"]:
        worker = fleet.worker(data["task"])
        worker.tokens += data["tokens_in"]
        worker.state = "model"


def _model_chunk(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.tokens += data["tokens"]


def _model_close(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.requests_open.discard(data["req"])


def _proc_start(fleet: FleetNow, data: dict[str, Any]) -> None:
    if data["role"] != "service":
        fleet.processes[data["proc"]] = data["pid"]


def _proc_end(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.processes.pop(data["proc"], None)
    pid = data["pid"]
    for worker in fleet.workers.values():
        if worker.pid == pid and worker.state != "left":
            worker.state = "gone"
    for call in [call for call, owner in fleet.in_flight.items() if owner == pid]:
        del fleet.in_flight[call]


def _control(word: str) -> Any:
    def handler(fleet: FleetNow, data: dict[str, Any]) -> None:
        state = f": {data['state']}" if "state" in data else ""
        fleet.news.append(f"{data['control']} {word}{state}")

    return handler


def _trouble(fleet: FleetNow, data: dict[str, Any]) -> None:
    fleet.trouble.append(f"{data['what']}: {data['why']}")


_HANDLERS: dict[str, Any] = {
    "worker.begin": _begin,
    "worker.end": _state("left"),
    "worker.parked": _state("parked"),
    "worker.unparked": _state("boundary"),
    "boundary": _state("boundary"),
    "tool.issue": _issue,
    "tool.end": _call_end,
    "checkpoint": _checkpoint,
    "model.open": _model_open,
    "model.chunk": _model_chunk,
    "model.close": _model_close,
    "proc.start": _proc_start,
    "proc.end": _proc_end,
    "control.issue": _control("issued"),
    "control.ack": _control("answered"),
    "control.timeout": _control("not answered in time"),
    "control.error": _control("raised"),
    "control.absent": _control("does not exist here"),
    "harness.trouble": _trouble,
}


class Tail:
    """Follows all files of an events directory; `poll` reads what is new and folds it into `fleet`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fleet = FleetNow()
        self._open: dict[str, tuple[int, bytes]] = {}  # file name to descriptor and unfinished line

    def poll(self) -> int:
        """Read what has been appended since the last call; returns the number of events."""
        for entry in os.scandir(self.directory):
            if entry.name not in self._open and entry.name.endswith(".jsonl"):
                self._open[entry.name] = (os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC), b"")
        found: list[tuple[int, str, dict[str, Any]]] = []
        for name, (descriptor, rest) in list(self._open.items()):
            data = os.read(descriptor, 1 << 20)
            if not data:
                continue
            *lines, rest = (rest + data).split(b"\n")
            self._open[name] = (descriptor, rest)
            found += filter(None, map(_event, lines))
        # Files are read one after another, so events of one instant can come in any order: sort them again.
        found.sort(key=lambda event: event[0])
        for _, kind, event in found:
            self.fleet.take(kind, event)
        return len(found)

    def close(self) -> None:
        """Close all files."""
        for descriptor, _ in self._open.values():
            os.close(descriptor)
        self._open.clear()


def _event(line: bytes) -> tuple[int, str, dict[str, Any]] | None:
    if not line:
        return None
    try:
        data = json.loads(line)
        return data["t"], data["kind"], data
    except (ValueError, KeyError, TypeError):
        return None  # damage is counted by the history; the live view can go on without this line
