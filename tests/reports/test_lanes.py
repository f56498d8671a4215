"""The timeline: spans, survivors, and where bars are drawn."""

import re
from dataclasses import replace

from reports import svg
from reports.lanes import Span, picture, union
from scoring.history import from_events
from scoring.timeline import Audit, Process
from tests.reports import literal
from tests.reports.literal import at


def _places(path: str) -> list[tuple[float, float]]:
    """Left edge and width of every bar in a path."""
    return [(float(x), float(w)) for x, w in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)v", path)]


def test_bars_are_proportional_to_time() -> None:
    """A picture whose bars do not keep the scale lies about how long a stop took."""
    calls = (
        literal.call("t01", 1, 0, 10, child=True),
        literal.call("t01", 2, 20, 40, child=True),
        literal.call("t01", 3, 60, 100, child=False),
    )
    drawing = svg.draw(picture(literal.timeline(calls=calls)))
    (first, second), (third,) = _places(drawing.shapes[0].child), _places(drawing.shapes[0].own)
    per_second = (drawing.width - svg.PAD_LEFT - svg.PAD_RIGHT) / 100
    for (x, width), (start, length) in zip((first, second, third), ((0, 10), (20, 20), (60, 40)), strict=True):
        assert abs(x - (svg.PAD_LEFT + start * per_second)) < 0.2
        assert abs(width - length * per_second) < 0.2


def test_a_survivor_is_drawn_from_the_abort_to_the_sweep() -> None:
    """What an abort left alive is the one thing that must be seen at once."""
    shown = picture(literal.fleet(4, survivors=1))
    lane = shown.lanes[0]
    assert union(lane.survivors) == [Span(at(720), at(780))]
    assert not shown.lanes[1].survivors
    assert svg.draw(shown).shapes[0].survivors
    assert svg.ending(lane) == "still alive at the sweep"


def test_a_helper_without_a_mark_is_drawn_at_the_task_of_its_ancestor() -> None:
    """A ghost has cleared its environment; its parent's task is all that is known."""
    time = literal.fleet(2)
    ghost = Process(77, 7777, 1000, "run", None, ("mcp",), (), at(100), None, None, None, ())
    shown = picture(
        replace(
            time,
            processes={**time.processes, 77: ghost},
            audits=(Audit("abort@4:sweep", at(780), (77,), "k:1"),),
        )
    )
    assert shown.lanes[0].task == "t01"
    assert shown.lanes[0].survivors == [Span(at(720), at(780))]


def test_a_survivor_of_no_task_gets_a_lane_of_its_own() -> None:
    """It must not be lost because nobody claims it."""
    time = literal.fleet(2)
    stray = Process(77, 7777, 1, "run", None, ("sleep",), (), at(700), None, None, None, ())
    shown = picture(
        replace(
            time,
            processes={**time.processes, 77: stray},
            audits=(Audit("abort@4:sweep", at(780), (77,), "k:1"),),
        )
    )
    assert [lane.task for lane in shown.lanes] == ["t01", "t02", None]
    assert shown.lanes[2].survivors


def test_killed_workers_are_marked_and_clean_ones_are_not() -> None:
    """A kill is the loudest way to stop, and the picture says where it was needed."""
    shapes = svg.draw(picture(literal.fleet(4, killed=1))).shapes
    assert [bool(shape.killed) for shape in shapes] == [False, False, False, True]
    assert [bool(shape.ended) for shape in shapes] == [True, True, True, False]


def test_two_workers_of_one_task_have_two_lanes_and_two_anchors() -> None:
    """Duplicates drawn over each other would look like one worker."""
    time = literal.fleet(1)
    second = replace(time.workers[0], attempt=2, pid=2000, begin=at(400))
    shown = picture(replace(time, workers=(*time.workers, second)))
    assert [(lane.task, lane.attempt) for lane in shown.lanes] == [("t01", 1), ("t01", 2)]
    assert len({lane.anchor for lane in shown.lanes}) == 2


def test_lanes_are_in_the_order_of_their_numbers() -> None:
    """t10 belongs after t9."""
    calls = tuple(literal.call(task, 1, 0, 1, child=True) for task in ("t10", "t9", "t1"))
    assert [lane.task for lane in picture(literal.timeline(calls=calls)).lanes] == ["t1", "t9", "t10"]


def test_the_hold_runs_from_pause_to_resume_and_parking_is_seen() -> None:
    """The shaded stretch is the time in which nothing should run."""
    shown = picture(literal.fleet(2))
    assert shown.holds == (Span(at(300), at(360)),)
    assert all(lane.parked for lane in shown.lanes)
    assert svg.draw(shown).shapes[0].parked


def test_labels_of_controls_never_cover_each_other() -> None:
    """A second abort comes seconds after the first."""
    controls = tuple(literal.control("abort", n, 100 + n) for n in range(1, 5))
    lines = svg.draw(picture(literal.timeline(controls=controls))).lines
    boxes = [(line.label_x, line.label_x + line.width, line.label_y) for line in lines]
    for i, one in enumerate(boxes):
        assert all(one[2] != two[2] or one[1] <= two[0] or two[1] <= one[0] for two in boxes[i + 1 :])


def test_the_axis_counts_drill_minutes_with_real_seconds_beneath() -> None:
    """Five drill minutes at speed 40 are seven and a half seconds."""
    ticks = {tick.drill: tick.real for tick in svg.draw(picture(literal.fleet(2))).ticks}
    assert ticks["5:00"] == "7.5 s"
    assert ticks["0:00"] == "0 s"


def test_a_call_still_in_flight_reaches_the_end_of_the_picture() -> None:
    """An open end is no reason to draw nothing."""
    calls = (literal.call("t01", 1, 0, None, child=False), literal.call("t02", 1, 0, 50, child=False))
    shown = picture(literal.timeline(calls=calls))
    assert shown.lanes[0].own == [Span(at(0), at(50))]


def test_an_empty_history_gives_a_picture_without_lanes() -> None:
    """A drill that died at once still has a report."""
    shown = picture(literal.timeline())
    assert shown.lanes == ()
    assert svg.draw(shown).shapes == ()
    assert picture(literal.timeline(from_events([literal.event("driver", 1, 0, "run.begin")]))).lanes == ()
