"""The live view: the fleet while a drill runs, on a terminal; plain lines where there is none.

Everything shown comes from event files and may have been written by a subject: it is put into `Text`, never into
markup. Drawing is limited to four times a second, because a view that costs a tenth of a core changes what it shows.
"""

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from drills.conduct import Progress
from drills.observers.tail import FleetNow, WorkerNow
from drills.script import Step

_EVERY_S = 0.25
_SHOWN_MAX = 32
_STYLES = {
    "call": "bold cyan", "model": "blue", "boundary": "white", "parked": "yellow", "left": "dim", "gone": "red",
    "starting": "dim",
}  # fmt: skip


class LiveView:
    """A rich table on a terminal. Use as a context manager; calling it shows progress."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next = 0.0

    def __enter__(self) -> "LiveView":
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Draw, unless the last drawing was less than a quarter of a second ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self._live.update(_screen(progress), refresh=True)


class PlainView:
    """One line for each change of phase and each control; for CI logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._seen = 0
        self._last = ""

    def __enter__(self) -> "PlainView":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        return None

    def __call__(self, progress: Progress) -> None:
        """Print what is new."""
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._say(progress, progress.phase)
        news = list(progress.fleet.news)
        fresh = news[news.index(self._last) + 1 :] if self._last in news else news
        for line in fresh:
            self._say(progress, line)
        if news:
            self._last = news[-1]

    def _say(self, progress: Progress, text: str) -> None:
        line = f"[{clock(progress.clock)}] {text} ({_workers(progress.fleet)})"
        self._console.print(Text(line), soft_wrap=True)


def _workers(fleet: FleetNow) -> str:
    alive = len(fleet.alive())
    return f"{alive} worker{'' if alive == 1 else 's'} alive"


def clock(drill_seconds: float) -> str:
    """Drill time as m:ss."""
    minutes, seconds = divmod(int(drill_seconds), 60)
    return f"{minutes}:{seconds:02d}"


def _screen(progress: Progress) -> Group:
    fleet = progress.fleet
    title = Text.assemble(
        ("stopdrill ", "bold"), progress.drill.name, "  ", (progress.phase, "italic"), "  drill time ",
        (clock(progress.clock), "bold"), f" of {clock(progress.drill.end)}",
    )  # fmt: skip
    numbers = Text(
        f"{_workers(fleet)} · {len(fleet.in_flight)} tool calls in flight · "
        f"{len(fleet.processes)} processes · {fleet.tokens:,} tokens"
    )
    news = Text("   ".join(fleet.news), style="magenta", no_wrap=True, overflow="ellipsis")
    return Group(title, _controls(progress), numbers, _fleet(list(fleet.workers.values())), news)


def _controls(progress: Progress) -> Text:
    text = Text()
    for step in progress.drill.controls:
        done = progress.clock >= step.earliest > 0
        text.append(f" {_label(step)} ", style="bold black on yellow" if done else "dim")
        text.append(" ")
    return text


def _label(step: Step) -> str:
    hold = f" for {clock(step.hold)}" if step.hold is not None else ""
    return f"{step.do} {clock(step.earliest) if step.at is not None else f'when {step.when}'}{hold}"


def _fleet(workers: list[WorkerNow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    columns = 2 if len(workers) > 8 else 1
    for _ in range(columns):
        for name in ("task", "state", "step", "wip", "tokens"):
            table.add_column(name, justify="left" if name in ("task", "state") else "right", min_width=6, style="dim")
    shown = sorted(workers, key=lambda worker: worker.task)[:_SHOWN_MAX]
    half = -(-len(shown) // columns)
    for row in range(half):
        cells: list[Text] = []
        for worker in shown[row::half][:columns]:
            cells += _cells(worker)
        table.add_row(*cells)
    if len(workers) > _SHOWN_MAX:
        table.add_row(Text(f"… and {len(workers) - _SHOWN_MAX} more"))
    return table


def _cells(worker: WorkerNow) -> list[Text]:
    name = worker.task if worker.attempt <= 1 else f"{worker.task}#{worker.attempt}"
    state = worker.state
    wip = "–" if worker.wip is None else str(worker.wip)
    return [
        Text(name[:16]), Text(state, style=_STYLES.get(state, "")), Text(str(worker.step)), Text(wip),
        Text(f"{worker.tokens:,}"),
    ]  # fmt: skip


def view_for(console: Console, *, quiet: bool = False) -> "LiveView | PlainView":
    """The view that fits the console: drawn on a terminal, plain lines elsewhere."""
    return LiveView(console) if console.is_terminal and not quiet else PlainView(console)
