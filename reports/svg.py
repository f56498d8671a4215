"""The timeline as inline SVG: instants become pixels, and each lane a handful of grouped paths.

Grouped, because a rectangle per tool call would make a page of megabytes; a lane's calls are one path with
one sub-path each. Joins of less than a third of a pixel are drawn as one, so that size is bounded by pixels
and not by calls. Names are in a second drawing to the left, which stays in place while the lanes scroll on
a narrow screen. Colours are classes, so that the page decides them for light, dark and paper. All text
passes the template's escaping.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reports.clock import minutes
from reports.lanes import Lane, Moment, Picture, Span, union
from reports.text import count, label, one_line

WIDTH = 1040.0
"""Width of names and lanes together, in pixels: what the page's column has room for."""
PAD_LEFT, PAD_RIGHT = 8.0, 26.0  # room for half a label of the axis at either end
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
_LETTER = 6.4  # width of a letter of the labels, generous, so that they never overlap


@dataclass(frozen=True)
class Shape:
    """A lane, drawn. Each string is the `d` of one path, empty when there is nothing of its kind."""

    anchor: str
    name: str
    title: str
    y: float
    life: str
    child: str
    own: str
    parked: str
    boundaries: str
    checkpoints: str
    survivors: str
    killed: str
    ended: str


@dataclass(frozen=True)
class Line:
    """A vertical line with its label and the place of that label."""

    x: float
    kind: str
    label: str
    label_x: float
    label_y: float
    width: float


@dataclass(frozen=True)
class Tick:
    """A mark of the axis: drill minutes, and the real seconds beneath."""

    x: float
    drill: str
    real: str


@dataclass(frozen=True)
class Drawing:
    """All that the template needs; heights and places in pixels."""

    width: float
    height: float
    names_width: float
    top: float
    bottom: float
    lane_height: float
    shapes: tuple[Shape, ...]
    holds: tuple[tuple[float, float], ...]
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]
    dense: bool


def draw(picture: Picture) -> Drawing:
    """The drawing of a picture."""
    lanes = picture.lanes
    names = max((len(_name(lane)) for lane in lanes), default=4) * 7.2 + 12
    width = WIDTH - names
    scale = scale_of(picture, width)
    pitch = 24.0 if len(lanes) <= 40 else 14.0 if len(lanes) <= 160 else 7.0
    dense = pitch < 10
    lines, top = _lines(picture.moments, scale, width)
    shapes = tuple(_shape(lane, top + i * pitch, pitch, scale, picture) for i, lane in enumerate(lanes))
    bottom = top + len(lanes) * pitch
    return Drawing(
        width,
        bottom + 40,
        names,
        top,
        bottom,
        pitch,
        shapes,
        tuple((scale(h.start), scale(h.end) - scale(h.start)) for h in picture.holds),
        lines,
        _ticks(picture, scale),
        dense,
    )


def scale_of(picture: Picture, width: float) -> Callable[[int], float]:
    """Nanoseconds to pixels: linear, `first` at the left padding and `last` at the right one."""
    span = picture.last - picture.first

    def x(t: int) -> float:
        part = (t - picture.first) / span
        return PAD_LEFT + min(max(part, 0.0), 1.0) * (width - PAD_LEFT - PAD_RIGHT)

    return x


def _shape(lane: Lane, y: float, pitch: float, x: Callable[[int], float], picture: Picture) -> Shape:
    bar = max(pitch - 10, pitch * 0.55)
    at = y + (pitch - bar) / 2
    middle = at + bar / 2
    ticks = pitch >= 10  # thinner lanes have no room for ticks; the table beneath still counts them
    end_x = x(lane.alive.end) if lane.alive else 0.0
    killed = lane.ended and lane.signal is not None
    r = min(4.5, bar / 2)
    cross = f"M{_n(end_x - r)} {_n(middle - r)}l{_n(2 * r)} {_n(2 * r)}m0 {_n(-2 * r)}l{_n(-2 * r)} {_n(2 * r)}"
    return Shape(
        anchor=lane.anchor,
        name=_name(lane),
        title=_title(lane, picture),
        y=middle + 4,
        life=_bars([lane.alive] if lane.alive else [], middle - 0.5, 1, x, picture),
        child=_bars(lane.child, at, bar, x, picture),
        own=_bars(lane.own, at, bar, x, picture),
        parked=_bars(lane.parked, at + bar * 0.2, bar * 0.6, x, picture),
        boundaries=_marks(lane.boundaries, at - 2.5, 2, x) if ticks else "",
        checkpoints=_marks(lane.checkpoints, at + bar + 0.5, 3, x) if ticks else "",
        survivors=_bars(lane.survivors, at - 1, bar + 2, x, picture),
        killed=cross if killed else "",
        ended=f"M{_n(end_x)} {_n(at)}v{_n(bar)}" if lane.ended and not killed else "",
    )


def _bars(spans: Iterable[Span], y: float, h: float, x: Callable[[int], float], picture: Picture) -> str:
    third = int((picture.last - picture.first) / WIDTH * 0.3)
    out = []
    for start, end in union(spans, gap=third):
        left = x(start)
        wide = max(x(end) - left, 0.6)  # the shortest call can still be seen
        out.append(f"M{_n(left)} {_n(y)}h{_n(wide)}v{_n(h)}h{_n(-wide)}z")
    return "".join(out)


def _marks(instants: Sequence[int], y: float, h: float, x: Callable[[int], float]) -> str:
    places = sorted({round(x(t), 1) for t in instants})
    return "".join(f"M{_n(place)} {_n(y)}v{_n(h)}" for place in places)


def _lines(moments: Sequence[Moment], x: Callable[[int], float], width: float) -> tuple[tuple[Line, ...], float]:
    """Lines whose labels never cover each other: a label goes to the first row in which it has room."""
    ends: list[float] = []
    placed: list[tuple[Moment, float, float, int]] = []
    for moment in moments:
        if moment.kind == "quiet":  # drawn without a label, explained in the legend
            continue
        wide = len(moment.label) * _LETTER + 10
        left = min(max(x(moment.t) - wide / 2, 0.0), width - wide)
        row = next((i for i, end in enumerate(ends) if end + 3 <= left), len(ends))
        ends[row : row + 1] = [left + wide]
        placed.append((moment, left, wide, row))
    lines = [Line(x(m.t), m.kind, m.label, left, 4 + row * 20.0, wide) for m, left, wide, row in placed]
    lines += [Line(x(m.t), m.kind, "", 0, 0, 0) for m in moments if m.kind == "quiet"]
    return tuple(lines), 8 + len(ends) * 20.0


def _ticks(picture: Picture, x: Callable[[int], float]) -> tuple[Tick, ...]:
    """At most about a dozen marks at round drill times."""
    time = picture.clock
    low, high = time.drill_s(picture.first), time.drill_s(picture.last)
    step = next((s for s in _STEPS_S if (high - low) / s <= 14), 86400 * (int((high - low) / 86400 / 14) + 1))
    out = []
    for k in range(-int(-low // step), int(high // step) + 1):
        t = time.zero + int(k * step / time.speed * 1e9)
        real_s = k * step / time.speed
        out.append(Tick(x(t), minutes(k * step), f"{real_s:.3g} s".replace("-", "−")))
    return tuple(out)


def _name(lane: Lane) -> str:
    name = "no task" if lane.task is None else label(lane.task)
    return f"{name} ·{lane.attempt}" if lane.attempt > 1 else name


def _title(lane: Lane, picture: Picture) -> str:
    calls = count(len(lane.child) + len(lane.own), "tool call")
    parts = [f"{one_line(lane.task or 'no task', 60)}, attempt {lane.attempt}: {calls}"]
    if lane.alive:
        parts.append(f"alive {picture.clock.label(lane.alive.start)} to {picture.clock.label(lane.alive.end)}")
    parts.append(ending(lane))
    return ", ".join(parts)


def ending(lane: Lane) -> str:
    """How a worker left, in a few words."""
    if lane.survivors:
        return "still alive at the sweep"
    if lane.ended and lane.signal is not None:
        return f"killed by signal {lane.signal}"
    if lane.left is not None:
        return f"left: {one_line(lane.left, 40)}"
    return "ended without a word" if lane.ended else "end not seen"


def _n(value: float) -> str:
    """A coordinate with at most one decimal, as short as it can be."""
    return f"{value:.1f}".removesuffix(".0")
