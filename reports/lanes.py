"""The picture of a run in instants, before it has any size: one lane per worker, and what crosses all
lanes.

Pure: takes a timeline, returns spans of CLOCK_MONOTONIC nanoseconds that are clipped to what is shown. It
draws facts (this call ran from here to there, this process was alive at the sweep) and passes no judgement;
verdicts are the scorecard's. `reports.svg` turns it into shapes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reports import clock
from reports.clock import DrillClock
from reports.text import slug
from scoring.timeline import Audit, Control, Timeline, ToolCall


class Span(NamedTuple):
    """From `start` to `end`, nanoseconds."""

    start: int
    end: int


class Moment(NamedTuple):
    """A vertical line across all lanes."""

    t: int
    kind: str  # pause, resume, redirect, abort, sweep, quiet
    label: str


@dataclass
class Lane:
    """One attempt at a task, or (`attempt` 0) what belongs to a task but to no worker that is known."""

    task: str | None
    attempt: int
    pid: int | None
    anchor: str = ""
    alive: Span | None = None
    left: str | None = None
    signal: int | None = None
    ended: bool = False
    child: list[Span] = field(default_factory=list)
    own: list[Span] = field(default_factory=list)
    parked: list[Span] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    survivors: list[Span] = field(default_factory=list)


@dataclass(frozen=True)
class Picture:
    """All lanes, in the order in which they are drawn; `first` and `last` bound what is shown."""

    clock: DrillClock
    first: int
    last: int
    lanes: tuple[Lane, ...]
    holds: tuple[Span, ...]
    moments: tuple[Moment, ...]


def picture(timeline: Timeline) -> Picture:
    """The lanes of a run; a history without anything to draw gives a picture without lanes."""
    time = clock.of(timeline)
    first, last = _bounds(timeline)
    lanes = _Lanes(timeline, first, last)
    lanes.fill()
    return Picture(time, first, last, lanes.ordered(), _holds(timeline, last), _moments(timeline))


def sweep_of(timeline: Timeline, abort: Control) -> Audit | None:
    """The enumeration that belongs to an abort's sweep, when it was made."""
    return next((audit for audit in timeline.audits if audit.when == f"abort@{abort.n}:sweep"), None)


def sweeps(timeline: Timeline) -> list[tuple[Control, Audit]]:
    """Each abort with its sweep."""
    pairs = [(c, sweep_of(timeline, c)) for c in timeline.controls if c.kind == "abort"]
    return [(abort, audit) for abort, audit in pairs if audit is not None]


class _Lanes:
    """Sorts records into lanes. Records of workers that never said hello get a lane of their own."""

    def __init__(self, timeline: Timeline, first: int, last: int) -> None:
        self.timeline, self.first, self.last = timeline, first, last
        self.by_key: dict[tuple[str | None, int, int | None], Lane] = {}
        self.by_task: dict[str | None, list[Lane]] = defaultdict(list)
        self.by_pid = {process.pid: process for process in timeline.processes.values()}
        self.worker_of = {worker.proc: worker for worker in timeline.workers if worker.proc is not None}

    def fill(self) -> None:
        for worker in self.timeline.workers:
            lane = self.lane(worker.task, worker.attempt, worker.pid)
            process = self.timeline.processes.get(worker.proc) if worker.proc is not None else None
            lane.alive = self.clip(worker.begin, worker.end)
            lane.left, lane.ended = worker.left, worker.end is not None and worker.end <= self.last
            lane.signal = process.signal if process is not None else None
        for call in self.timeline.calls:
            lane = self.lane(call.task, call.attempt, call.worker_pid)
            (lane.own if call.pid == call.worker_pid else lane.child).append(self.clip(call.start, call.end))
        self._marks()
        self._parked()
        self._survivors()

    def lane(self, task: str | None, attempt: int, pid: int | None) -> Lane:
        key = (task, attempt, pid)
        if key not in self.by_key:
            self.by_key[key] = Lane(task, attempt, pid)
            self.by_task[task].append(self.by_key[key])
        return self.by_key[key]

    def clip(self, start: int, end: int | None) -> Span:
        stop = self.last if end is None else min(end, self.last)
        start = max(start, self.first)
        return Span(start, max(start, stop))

    def at(self, task: str, t: int) -> Lane:
        """The lane of a task's worker at an instant: the latest that had begun, because attempts differ."""
        mine = self.by_task[task]
        begun = [lane for lane in mine if lane.alive is not None and lane.alive.start <= t]
        best = max(begun, key=lambda lane: lane.alive.start if lane.alive else 0, default=None)
        return best or (mine[0] if mine else self.lane(task, 0, None))

    def _marks(self) -> None:
        """Boundaries and checkpoints: by their source, because each attempt writes a file of its own."""
        home: dict[str, Lane] = {}
        for kind, pick in (("boundary", "boundaries"), ("checkpoint", "checkpoints")):
            for event in self.timeline.events(kind):
                if event.source not in home:
                    home[event.source] = self.at(str(event.data.get("task")), event.t)
                if self.first <= event.t <= self.last:
                    getattr(home[event.source], pick).append(event.t)

    def _parked(self) -> None:
        ends: dict[str, list[int]] = defaultdict(list)
        for kind in ("worker.unparked", "worker.end"):
            for event in self.timeline.events(kind):
                ends[event.source].append(event.t)
        for event in self.timeline.events("worker.parked"):
            lane = self.at(str(event.data.get("task")), event.t)
            gone = lane.alive.end if lane.alive else self.last
            end = min((t for t in ends[event.source] if t >= event.t), default=gone)
            lane.parked.append(self.clip(event.t, end))

    def _survivors(self) -> None:
        """Processes that an abort's sweep found alive, and calls that were still in flight then."""
        for abort, audit in sweeps(self.timeline):
            for proc in audit.alive:
                process = self.timeline.processes.get(proc)
                if process is not None and process.role == "run":
                    span = self.clip(max(process.start, abort.t), audit.t)
                    self._home(proc).survivors.append(span)
            for call in self.timeline.calls:
                if call.start < audit.t and _open_at(call, audit.t):
                    lane = self.lane(call.task, call.attempt, call.worker_pid)
                    lane.survivors.append(self.clip(max(call.start, abort.t), audit.t))

    def _home(self, proc: int) -> Lane:
        """The lane of a surviving process: its worker's, or that of its nearest ancestor with a task."""
        worker = self.worker_of.get(proc)
        if worker is not None:
            return self.lane(worker.task, worker.attempt, worker.pid)
        process = self.timeline.processes.get(proc)
        for _ in range(32):  # a bound, because recycled pids can close a circle of parents
            if process is None or process.task is not None:
                break
            process = self.by_pid.get(process.ppid)
        task = process.task if process is not None else None
        return self.lane(None, 0, None) if task is None else self.at(task, self.last)

    def ordered(self) -> tuple[Lane, ...]:
        lanes = sorted(self.by_key.values(), key=_order)
        taken: set[str] = set()
        for lane in lanes:
            name = f"worker-{slug(lane.task)}" if lane.task is not None else "worker-unknown"
            while name in taken:
                name += f"-{lane.attempt or 'x'}"
            taken.add(name)
            lane.anchor = name
        return tuple(lanes)


def _open_at(call: ToolCall, t: int) -> bool:
    return call.end is None or call.end > t


def _order(lane: Lane) -> tuple[bool, list[tuple[int, str]], int, int]:
    """t2 before t10; attempts in order; what has no task comes last."""
    parts = re.split(r"(\d{1,9})", (lane.task or "")[:80])
    natural = [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
    return lane.task is None, natural, lane.attempt, lane.alive.start if lane.alive else 0


def _bounds(timeline: Timeline) -> tuple[int, int]:
    """From the first sign of work to the last thing that matters; the harness's own clean-up is left out."""
    begins = [worker.begin for worker in timeline.workers] + [call.start for call in timeline.calls]
    ends = [c.t for c in timeline.controls] + [a.t for a in timeline.audits]
    ends += [call.start for call in timeline.calls] + [c.end for c in timeline.calls if c.end and not c.cut]
    ends += [worker.begin for worker in timeline.workers] + [w.left_t for w in timeline.workers if w.left_t]
    events = timeline.history.events
    first = min([*begins, *(c.t for c in timeline.controls)], default=events[0].t if events else 0)
    last = max(ends, default=events[-1].t if events else first)
    return first, max(last, first + 1)


def _holds(timeline: Timeline, last: int) -> tuple[Span, ...]:
    """From each pause of the whole run to what ended it: resume, abort, or the end of the picture."""
    out = []
    for control in timeline.controls:
        if control.kind == "pause" and control.scope == "run":
            later = [c.t for c in timeline.controls if c.kind in ("resume", "abort") and c.t > control.t]
            out.append(Span(control.t, min(later, default=last)))
    return tuple(out)


def _moments(timeline: Timeline) -> tuple[Moment, ...]:
    out = [Moment(c.t, c.kind, c.kind) for c in timeline.controls]
    out += [Moment(audit.t, "sweep", "sweep") for _, audit in sweeps(timeline)]
    out += [Moment(event.t, "quiet", "quiet") for event in timeline.events("quiet.seen")]
    return tuple(sorted(out, key=lambda moment: moment.t))


def union(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """Spans sorted and joined where they overlap or stand at most `gap` apart."""
    out: list[Span] = []
    for span in sorted(spans):
        if out and span.start <= out[-1].end + gap:
            out[-1] = Span(out[-1].start, max(out[-1].end, span.end))
        else:
            out.append(span)
    return out
