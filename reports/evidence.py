"""The evidence behind a row or a finding: the events themselves, processes and git's own words, as text.

A reader who does not believe a verdict gets the id of every event that it rests on, first in its line, and
finds it in the bundle with `sed -n LINEp events/SOURCE.jsonl`. Long lists are cut with the count of what
was cut.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from reports import clock
from reports.material import Material
from reports.text import compact, one_line, visible
from reports.words import GROUPS, group_of, row_words
from scoring.history import Event
from scoring.scorecard import Finding, Row
from scoring.timeline import Audit, Process, Timeline

EVENTS_MAX = 40
PROCESSES_MAX = 40
FILES_MAX = 4
FILE_INLINE_MAX = 1_500
_GIT_ROWS = frozenset({"dirty-worktrees", "direct-pushes"})
_GIT_FINDINGS = frozenset({"P2", "P3", "P6", "D5", "D8", "A5", "A6", "A13"})


class Line(NamedTuple):
    """One event as text: its id, when in drill time, its kind, and its other keys."""

    id: str
    when: str
    kind: str
    text: str


class ProcessLine(NamedTuple):
    """One living process as text."""

    pid: str
    role: str
    task: str
    cmdline: str
    credentials: str


@dataclass(frozen=True)
class Listing:
    """The processes that one enumeration found."""

    title: str
    id: str
    processes: tuple[ProcessLine, ...]
    more: int


@dataclass(frozen=True)
class Evidence:
    """Everything behind one row or finding."""

    lines: tuple[Line, ...]
    more: int
    total: int
    listing: Listing | None
    files: tuple[tuple[str, str], ...]


class Shelf:
    """Finds evidence in a material; built once for a page."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._clock = clock.of(material.timeline)
        self._by_id: Mapping[str, Event] = {event.id: event for event in material.timeline.history.events}

    def of(self, part: Row | Finding) -> Evidence:
        """The evidence of a row or a finding, cut to what a page can hold."""
        shown = part.evidence[:EVENTS_MAX]
        control = self._control(part)
        return Evidence(
            tuple(self._line(event_id) for event_id in shown),
            len(part.evidence) - len(shown),
            len(part.evidence),
            self._listing(control),
            self._files(part, control),
        )

    def listings(self) -> tuple[Listing, ...]:
        """Every enumeration of the run's processes."""
        return tuple(listing(self._material.timeline, audit) for audit in self._material.timeline.audits)

    def _line(self, event_id: str) -> Line:
        event = self._by_id.get(event_id)
        if event is None:
            return Line(one_line(event_id, 120), "–", "not in this history", "")
        keys = " ".join(f"{one_line(key, 40)}={compact(value, 240)}" for key, value in event.data.items())
        return Line(one_line(event_id, 120), self._clock.label(event.t), one_line(event.kind, 40), one_line(keys, 600))

    def _control(self, part: Row | Finding) -> str:
        return GROUPS[group_of(part.id)][1] if isinstance(part, Finding) else row_words(part.id).control

    def _listing(self, control: str) -> Listing | None:
        audit = relevant(self._material.timeline.audits, control)
        return None if audit is None else listing(self._material.timeline, audit)

    def _files(self, part: Row | Finding, control: str) -> tuple[tuple[str, str], ...]:
        if part.id not in _GIT_ROWS | _GIT_FINDINGS:
            return ()
        names = sorted(self._material.git, key=lambda name: (control not in name, name))[:FILES_MAX]
        return tuple((one_line(name, 120), visible(self._material.git[name], FILE_INLINE_MAX)) for name in names)


def relevant(audits: Iterable[Audit], control: str) -> Audit | None:
    """The enumeration that says most about a control: at the sweep, else at quiet, else the last of it."""
    named = [audit for audit in audits if audit.when.partition("@")[0] == control]
    for suffix in (":sweep", ":quiet", ""):
        found = [audit for audit in named if audit.when.endswith(suffix)]
        if found:
            return found[-1]
    return None


def listing(timeline: Timeline, audit: Audit) -> Listing:
    """The processes of one enumeration, those of the run before the coordinator."""
    known = [timeline.processes[proc] for proc in audit.alive if proc in timeline.processes]
    known.sort(key=lambda process: (process.role != "run", process.task or "", process.pid))
    shown = known[:PROCESSES_MAX]
    return Listing(
        one_line(audit.when, 60),
        one_line(audit.id, 120),
        tuple(_process(process) for process in shown),
        len(audit.alive) - len(shown),
    )


def _process(process: Process) -> ProcessLine:
    return ProcessLine(
        str(process.pid),
        one_line(process.role, 20),
        one_line(process.task or "–", 60),
        # Each argument is cut by itself, so that a long one does not hide those that follow.
        one_line(" ".join(one_line(argument, 120) for argument in process.cmdline[:24]), 300),
        one_line(", ".join(process.cred_names) or "–", 120),
    )
