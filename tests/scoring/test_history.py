"""The history: what is read, what is damage, and that nothing vanishes."""

import json

import pytest

from scoring.history import Event, from_events, merge, read_source


def line(t: int, kind: str = "worker.note", **data: object) -> bytes:
    return json.dumps({"t": t, "kind": kind, "task": "t01", **data}).encode() + b"\n"


def test_events_of_all_sources_are_in_one_order() -> None:
    """Hazard: two events of one instant change places from one reading to the next."""
    history = merge({"b": line(3) + line(5), "a": line(4) + line(5)})
    assert [(event.t, event.id) for event in history.events] == [
        (3, "b:1"),
        (4, "a:1"),
        (5, "a:2"),
        (5, "b:2"),
    ]
    assert history.lines == {"a": 2, "b": 2}


def test_torn_last_line_is_damage_and_costs_nothing_else() -> None:
    """The mark of a killed writer."""
    events, damage, lines = read_source("w", line(1) + line(2)[:-9])
    assert ([event.t for event in events], lines) == ([1], 2)
    assert [(one.line, one.last) for one in damage] == [(2, True)]


def test_blank_lines_are_counted_and_are_no_damage() -> None:
    """Shared files frame each line with line feeds on both sides."""
    events, damage, lines = read_source("w", b"\n" + line(1) + b"\n" + line(2))
    assert ([event.line for event in events], damage, lines) == ([2, 4], [], 4)


@pytest.mark.parametrize(
    "text",
    [
        b"{}", b"[]", b"7", b"null", b"{", b'{"a":', b"\xff\xfe", b'{"t": 1}', b'{"t": "1", "kind": "x"}',
        b'{"t": true, "kind": "x"}', b'{"t": 1.5, "kind": "x"}', b'{"t": 1, "kind": ["x"]}',
        b'{"t": 1, "kind": "x"} x',
        b'{"t": 1, "kind": "tool.start", "call": "c"}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_line_that_is_no_event_is_damage(text: bytes) -> None:
    """Torn, not JSON, no stamp, or a known kind without its keys: said, and never fatal."""
    events, damage, lines = read_source("w", text + b"\n" + line(9))
    assert ([event.t for event in events], len(damage), lines) == ([9], 1, 2)
    assert not damage[0].last


def test_unknown_kinds_and_extra_keys_are_kept() -> None:
    """Writers may tell more, today or in a later version."""
    events, damage, _ = read_source("w", line(1, "later.kind", extra=[1]))
    assert (events[0].data, damage) == ({"task": "t01", "extra": [1]}, [])


def test_white_space_around_an_event_does_no_harm() -> None:
    """Hazard: a blank or a carriage return around an event turns it into damage."""
    events, damage, _ = read_source("w", b"  " + line(1)[:-1] + b" \r\n")
    assert (len(events), damage) == (1, [])


def test_literal_history_is_ordered_and_counted() -> None:
    """Hazard: events given out of order are judged out of order, or a source's lines are miscounted."""
    history = from_events([Event(2, "a", 2, "x", {}), Event(1, "a", 1, "y", {})])
    assert [event.kind for event in history.events] == ["y", "x"]
    assert (history.lines, [event.t for event in history.of("x")]) == ({"a": 2}, [2])
