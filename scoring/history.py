"""The history: everything that the world saw, merged from one file per source into one order.

Design. Each source appends to its own file and stamps its own events with CLOCK_MONOTONIC; the history is
the merge of all files sorted on that stamp (ties keep file and line order, so the result is the same on any
machine). Nothing is dropped silently: a line that cannot be read becomes `Damage`, and whether that matters
is decided by a check (V4). A torn last line is the normal mark of a killed writer.

An event's id is `source:line`; `sed -n LINEp events/SOURCE.jsonl` prints it. Not done here: meaning. See
`scoring.timeline` for intervals and `scoring.rows`, `scoring.findings` for verdicts.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from scoring.vocabulary import KINDS

_REQUIRED = {name: kind.required for name, kind in KINDS.items()}
_NOTHING: frozenset[str] = frozenset()


class Event(NamedTuple):
    """One thing that one source saw. `t` is CLOCK_MONOTONIC nanoseconds, `data` the event's other keys."""

    t: int
    source: str
    line: int
    kind: str
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Where to find it: `source:line`."""
        return f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Damage:
    """A line that is no event: torn, not JSON, or without its required keys."""

    source: str
    line: int
    what: str
    last: bool
    """True when it is the file's last line without a line feed: a writer was killed, or is still writing."""


@dataclass(frozen=True)
class History:
    """All events in order, what was damaged, and how many lines each source had."""

    events: tuple[Event, ...]
    damage: tuple[Damage, ...]
    lines: Mapping[str, int]

    def of(self, *kinds: str) -> list[Event]:
        """All events of these kinds, in order."""
        wanted = frozenset(kinds)
        return [event for event in self.events if event.kind in wanted]


_raw_decode = json.JSONDecoder().raw_decode


def _parse(line: bytes) -> Any:
    """`json.loads(line)`, faster for a line that is one value and nothing around it.

    Looking for encodings and white space costs as much as the value, and half of a scoring's time is spent
    here.
    """
    try:
        text = line.decode("utf-8")
        data, end = _raw_decode(text)
        if end == len(text):
            return data
    except ValueError:
        pass  # the slow way accepts a little more, and otherwise raises the error that says where
    return json.loads(line)


def read_source(source: str, text: bytes) -> tuple[list[Event], list[Damage], int]:
    """Events and damage of one source's file, and its number of lines (blank ones included)."""
    events: list[Event] = []
    damage: list[Damage] = []
    raw = text.split(b"\n")
    torn_tail = bool(raw[-1])
    lines = raw if torn_tail else raw[:-1]
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            data = _parse(line)
            t, kind = data.pop("t"), data.pop("kind")
            required = _REQUIRED.get(kind, _NOTHING)
            if not data.keys() >= required or type(t) is not int:
                raise KeyError(*sorted(required - data.keys()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            last = torn_tail and number == len(lines)
            damage.append(Damage(source, number, f"{type(error).__name__}: {error}", last))
            continue
        events.append(Event(t, source, number, kind, data))
    return events, damage, len(lines)


def merge(sources: Mapping[str, bytes]) -> History:
    """Merge the files of a bundle, given as source name to file content."""
    events: list[Event] = []
    damage: list[Damage] = []
    lines: dict[str, int] = {}
    for source in sorted(sources):
        found, broken, count = read_source(source, sources[source])
        events += found
        damage += broken
        lines[source] = count
    # A stable sort on the stamp alone: files are sorted runs, which timsort merges in nearly linear time.
    events.sort(key=itemgetter(0))
    return History(tuple(events), tuple(damage), lines)


def from_events(events: Iterable[Event]) -> History:
    """A history from literal events, for tests and simulated worlds."""
    ordered = sorted(events, key=lambda event: event.t)
    lines: dict[str, int] = {}
    for event in ordered:
        lines[event.source] = max(lines.get(event.source, 0), event.line)
    return History(tuple(ordered), (), lines)
