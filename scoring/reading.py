"""Reading events one kind at a time, and taking values out of them: the right type, or a TypeError that
names the key.

Events come from many programs, and some of what they carry is a subject's own words: nothing is trusted to
have the type that the vocabulary suggests. Numbers that no drill can mean (beyond 10^15 s, not a number)
are refused too, since they would overflow later, far from the line that carries them. An event that has its
keys but no sense in them is set aside in `malformed`, so that one hostile line can neither stop the scoring
nor vanish.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from scoring.history import Event, History

T = TypeVar("T")
SENSELESS = (TypeError, ValueError, KeyError, AttributeError, OverflowError)
_HUGE = 10**24


def text(data: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A string; `default` when the key is missing, TypeError when it is something else or there is no
    default.
    """
    value = data.get(key, default)
    if type(value) is not str:
        raise TypeError(f"{key} is no string")
    return value


def optional_text(data: Mapping[str, Any], key: str) -> str | None:
    """A string or None."""
    return None if data.get(key) is None else text(data, key)


def integer(data: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """An integer of a size that can be meant; `default` when the key is missing."""
    value = data.get(key, default)
    if type(value) is not int or not -_HUGE < value < _HUGE:
        raise TypeError(f"{key} is no integer")
    return value


def optional_integer(data: Mapping[str, Any], key: str) -> int | None:
    """An integer or None."""
    return None if data.get(key) is None else integer(data, key)


def number(data: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """A finite number, not negative; `default` when the key is missing."""
    value = data.get(key, default)
    if type(value) not in (int, float) or not 0 <= value < 1e15 or not math.isfinite(value):
        raise TypeError(f"{key} is no number")
    return float(value)


def flag(data: Mapping[str, Any], key: str) -> bool:
    """True or false; false when the key is missing."""
    value = data.get(key, False)
    if type(value) is not bool:
        raise TypeError(f"{key} is neither true nor false")
    return value


def strings(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A tuple of strings; a lone string is one, a missing key or null none."""
    value = data.get(key)
    if value is None:
        return ()
    if type(value) is str:
        return (value,)
    if type(value) not in (list, tuple) or any(type(item) is not str for item in value):
        raise TypeError(f"{key} is no list of strings")
    return tuple(value)


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping; empty when the key is missing or null."""
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{key} is no mapping")
    return value


_READ_RAW: dict[str, dict[str, type]] = {
    "message": {"task": str, "what": str},
    "checkpoint": {"task": str, "step": int},
    "worker.signal": {"task": str},
    "worker.parked": {"task": str},
    "worker.unparked": {"task": str},
    "proc.state": {"proc": int, "state": str},
    "keeper.begin": {"pid": int},
    "observe.missing": {"what": str, "why": str},
    "claim.stalled": {"task": str},
    "fault.inject": {"target": str},
    "ref.update": {"ref": str, "outcome": str},
}
"""Kinds that checks read as events, and the types that they rely on there."""


class Reader:
    """One history being read: its events by kind, and what made no sense so far."""

    def __init__(self, history: History) -> None:
        by_kind: defaultdict[str, list[Event]] = defaultdict(list)
        by_source: defaultdict[str, list[Event]] = defaultdict(list)
        for event in history.events:
            by_kind[event.kind].append(event)
            by_source[event.source].append(event)
        self.by_kind = {kind: tuple(events) for kind, events in by_kind.items()}
        self.by_source = {source: tuple(events) for source, events in by_source.items()}
        self.malformed: list[tuple[str, str]] = []
        for kind, types in _READ_RAW.items():
            self._set_aside(kind, types)

    def _set_aside(self, kind: str, types: Mapping[str, type]) -> None:
        """Take out the events of one kind that a check could not read."""
        for key, wanted in types.items():
            for event in [e for e in self.by_kind.get(kind, ()) if type(e.data.get(key)) is not wanted]:
                self.malformed.append((event.id, f"{kind}: {key} is no {wanted.__name__}"))
                self.by_kind[kind] = tuple(e for e in self.by_kind[kind] if e is not event)
                self.by_source[event.source] = tuple(e for e in self.by_source[event.source] if e is not event)

    def of(self, kind: str) -> tuple[Event, ...]:
        return self.by_kind.get(kind, ())

    def each(self, kind: str, make: Callable[[Event], T]) -> list[T]:
        """What `make` makes of every event of one kind; where it finds no sense, the event is set aside."""
        made: list[T] = []
        for event in self.by_kind.get(kind, ()):
            try:
                made.append(make(event))
            except SENSELESS as error:
                self.malformed.append((event.id, f"{kind}: {error}"))
        return made
