"""Three charts: tokens, living processes, and the work that each control cost.

Drawn with matplotlib as SVG and embedded as an image, because an image's document can neither run nor load
anything and its ids cannot meet those of the page. Each chart carries the same numbers as a text table.
Only what is drawn is computed: instants are binned to the width of the picture, so that a thousand workers
cost no more ink than ten.

matplotlib is imported when the first chart is drawn, since it costs most of a second. No pyplot, no global
state.
"""

import base64
import io
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from reports.clock import DrillClock, minutes
from reports.lanes import Picture, sweeps
from reports.material import Material
from reports.text import label
from reports.words import number
from scoring.timeline import Timeline

BINS = 240
BARS_MAX = 48
INK, FAINT, GRID = "#334155", "#64748b", "#e2e8f0"
TONES = {
    "pause": "#b45309",
    "resume": "#0f766e",
    "redirect": "#6d28d9",
    "abort": "#be123c",
    "sweep": "#475569",
}


@dataclass(frozen=True)
class Chart:
    """One chart: where it is linked, what it is called, the picture, and the same in words."""

    anchor: str
    title: str
    how: str
    image: str
    """A `data:` URI, or "" when there was nothing to draw."""
    alt: str
    head: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]


def charts(material: Material, shown: Picture) -> tuple[Chart, ...]:
    """All charts of a run, over the same stretch of time as its lanes; no picture where there is nothing."""
    timeline = material.timeline
    return tokens(timeline, shown), processes(timeline, shown), work_lost(material)


def tokens(timeline: Timeline, shown: Picture) -> Chart:
    """Tokens at the model provider's meter: per drill second, and in total."""
    time = shown.clock
    spent = [(time.drill_s(r.t), r.tokens_in) for r in timeline.requests]
    spent += [(time.drill_s(t), n) for r in timeline.requests for t, n in r.chunks]
    spent.sort()
    table = _phases(timeline, shown, spent)
    image = ""
    if spent:
        low, high = _range(shown, [at for at, _ in spent])
        width = (high - low) / BINS
        bins = [0.0] * BINS
        for at, n in spent:
            bins[min(max(int((at - low) / width), 0), BINS - 1)] += n
        sums = list(accumulate(bins))
        total = sums[-1]
        edges = [low + width * i for i in range(BINS)]

        def paint(axes: Sequence[Any]) -> None:
            axes[0].bar(edges, [n / width for n in bins], width=width, align="edge", color="#3b6fb6", linewidth=0)
            axes[0].set_ylabel("per drill second")
            axes[1].fill_between([*edges, high], [*sums, total], step="post", color="#3b6fb6", alpha=0.18, lw=0)
            axes[1].step([*edges, high], [*sums, total], where="post", color="#3b6fb6", linewidth=1.6)
            axes[1].set_ylabel("in total")

        image = _figure(timeline, shown.clock, (low, high), 2, paint)
    return Chart(
        "tokens",
        "Tokens",
        "Tokens as the model provider metered them. After an abort the upper bars should stop and the lower "
        "line should run flat.",
        image,
        f"Tokens over drill time, {number(sum(n for _, n in spent))} in total",
        ("from", "to", "between", "tokens", "per drill second"),
        table,
    )


def processes(timeline: Timeline, shown: Picture) -> Chart:
    """Processes of the run that were alive, services of the world left out."""
    time = shown.clock
    of_run = [p for p in timeline.processes.values() if p.role != "service"]
    steps = sorted(
        [(p.start, 1) for p in of_run] + [(p.end, -1) for p in of_run if p.end is not None],
    )
    alive, instants, counts = 0, [], []
    for t, change in steps:
        alive += change
        instants.append(t)
        counts.append(alive)

    def at(t: int) -> int:
        i = bisect_right(instants, t)
        return counts[i - 1] if i else 0

    image = ""
    if steps:
        low, high = _range(shown, [])
        edges, peaks, lows = _envelope([time.drill_s(t) for t in instants], counts, low, high)

        def paint(axes: Sequence[Any]) -> None:
            axes[0].fill_between(edges, peaks, step="post", color="#0f766e", alpha=0.16, linewidth=0)
            axes[0].step(edges, peaks, where="post", color="#0f766e", linewidth=1.4)
            axes[0].step(edges, lows, where="post", color="#0f766e", linewidth=0.7, alpha=0.55)
            axes[0].set_ylabel("alive")
            axes[0].yaxis.get_major_locator().set_params(integer=True)

        image = _figure(timeline, shown.clock, (low, high), 1, paint)
    marks = [(c.kind, c.t) for c in timeline.controls] + [("sweep", a.t) for _, a in sweeps(timeline)]
    return Chart(
        "processes",
        "Living processes",
        "Coordinator, workers and tools as the process table had them: the strong line is the most, the thin "
        "one the least in each slice of time. At the sweep only the coordinator should be left.",
        image,
        "Number of living processes over drill time",
        ("at", "what", "alive"),
        tuple((time.label(t), kind, number(at(t))) for kind, t in sorted(marks, key=lambda mark: mark[1])),
    )


def work_lost(material: Material) -> Chart:
    """Work that no checkpoint holds, per control and worker."""
    lost = material.scorecard.work_lost_s
    cells = [(control, task, seconds) for control, tasks in lost.items() for task, seconds in tasks.items()]
    table = tuple(
        (control, task, f"{number(seconds)} s")
        for control, task, seconds in sorted(cells, key=lambda cell: (cell[0], -cell[2], cell[1]))
    )
    image = _bars(lost) if any(seconds > 0 for _, _, seconds in cells) else ""
    return Chart(
        "work-lost",
        "Work lost",
        "Drill seconds of work that each control left without a checkpoint, per worker. A stop at a boundary "
        "loses nothing; a kill loses at most the call that it cut.",
        image,
        "Drill seconds of work lost per control and worker",
        ("control", "task", "lost"),
        table,
    )


def _bars(lost: Any) -> str:
    controls = [(name, tasks) for name, tasks in lost.items() if any(s > 0 for s in tasks.values())][:6]
    figure, axes = _axes(len(controls), 1.5, sharex=False)
    room = max(16, *(min(len(tasks), BARS_MAX) for _, tasks in controls))  # bars of one width in every panel
    for axis, (name, tasks) in zip(axes, controls, strict=True):
        worst = sorted(tasks.items(), key=lambda item: (-item[1], item[0]))
        shown = worst[:BARS_MAX]
        kind = name.partition("#")[0].partition("@")[0]
        axis.bar(range(len(shown)), [s for _, s in shown], width=0.62, color=TONES.get(kind, FAINT))
        axis.set_xticks(range(len(shown)), [label(task, 10) for task, _ in shown])
        axis.set_xlim(-0.6, room - 0.4)
        if len(shown) > 16:
            axis.tick_params(axis="x", rotation=90, labelsize=7)
        for text in axis.get_xticklabels():
            text.set_parse_math(False)  # a task's name is data, and `$` in it no formula
        rest = len(worst) - len(shown)
        title = f"{label(name, 20)}, drill seconds" + (f", the worst {len(shown)}; {rest} more" if rest else "")
        axis.set_title(title, loc="left", fontsize=9, color=INK, parse_math=False)
    return _uri(figure)


def _figure(
    timeline: Timeline,
    time: DrillClock,
    span: tuple[float, float],
    rows: int,
    paint: Callable[[Sequence[Any]], None],
) -> str:
    figure, axes = _axes(rows, 1.35 if rows > 1 else 1.9, sharex=True)
    paint(axes)
    for i, axis in enumerate(axes):
        axis.set_xlim(*span)
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter(lambda value, _: number(value) if value < 1e4 else f"{value / 1e3:,.4g}k")
        for control in timeline.controls:
            tone, at = TONES.get(control.kind, FAINT), time.drill_s(control.t)
            axis.axvline(at, color=tone, linewidth=1.1)
            if i == 0:
                last = at > span[0] + 0.94 * (span[1] - span[0])  # otherwise its name would leave the picture
                axis.annotate(
                    label(control.kind, 12),
                    (at, 1.0),
                    (0, 3),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    color=tone,
                    fontsize=8,
                    ha="right" if last else "left",
                )
    axes[-1].xaxis.set_major_formatter(lambda value, _: minutes(value))
    axes[-1].xaxis.set_major_locator(_locator(span))
    axes[-1].set_xlabel("drill minutes", fontsize=8, color=FAINT)
    return _uri(figure)


def _axes(rows: int, height: float, sharex: bool) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.5 + height * rows), layout="constrained")
    axes = list(figure.subplots(rows, 1, sharex=sharex, squeeze=False)[:, 0])
    for axis in axes:
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.spines["bottom"].set_color("#94a3b8")
        axis.grid(axis="y", color=GRID, linewidth=0.8)
        axis.set_axisbelow(True)
        axis.tick_params(colors=FAINT, labelsize=8, length=0)
        axis.yaxis.label.set(color=FAINT, fontsize=8)
    return figure, axes


def _locator(span: tuple[float, float]) -> Any:
    from matplotlib.ticker import MultipleLocator

    width = span[1] - span[0]
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
    return MultipleLocator(next((step for step in steps if width / step <= 16), width / 10))


def _uri(figure: Any) -> str:
    """The figure as a `data:` URI, the same bytes each time."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "stopdrill", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a glyph that its own font lacks is drawn by the browser's
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    # Text stays text, in the reader's own font, because outlines would double the size.
    svg = out.getvalue().replace("'DejaVu Sans'", "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans'")
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")


def _range(shown: Picture, extra: Sequence[float]) -> tuple[float, float]:
    ends = [shown.clock.drill_s(shown.first), shown.clock.drill_s(shown.last), *extra]
    return min(ends), max(max(ends), min(ends) + 1.0)


def _envelope(
    at: Sequence[float], values: Sequence[int], low: float, high: float
) -> tuple[list[float], list[int], list[int]]:
    """Largest and smallest value within each of the bins, the value carried in from before included."""
    width = (high - low) / BINS
    edges = [low + width * i for i in range(BINS + 1)]
    peaks, lows, i, now = [], [], 0, 0
    for edge in edges:
        most = least = now
        while i < len(at) and at[i] < edge + width:
            now = values[i]
            # What happened before the picture starts only sets the value that it starts with.
            most, least = (now, now) if at[i] < low else (max(most, now), min(least, now))
            i += 1
        peaks.append(most)
        lows.append(least)
    return edges, peaks, lows


def _phases(timeline: Timeline, shown: Picture, spent: Sequence[tuple[float, int]]) -> tuple[tuple[str, ...], ...]:
    """Tokens between one control and the next."""
    if not spent:
        return ()
    time = shown.clock
    low, high = _range(shown, [at for at, _ in spent])
    cuts = [(low, "start"), *((time.drill_s(c.t), c.kind) for c in timeline.controls), (high, "end")]
    out = []
    for (start, name), (end, following) in pairwise(cuts):
        last = following == "end"
        n = sum(tokens for at, tokens in spent if start <= at < end or (last and at == end))
        rate = n / (end - start) if end > start else 0.0
        row = (minutes(start, True), minutes(end, True), f"{name} to {following}", number(n), number(rate))
        out.append(row)
    return tuple(out)
