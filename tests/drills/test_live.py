"""The live view shows what a hostile fleet is called as text, and says each thing once where there is no terminal."""

import io
from pathlib import Path

from rich.console import Console

from drills import script
from drills.conduct import Progress
from drills.live import LiveView, PlainView, clock
from drills.observers.tail import FleetNow, WorkerNow
from drills.world import World

DRILL, _ = script.load(script.find("small"))
WORLD = World("r1", Path("/nowhere/r1"), "token", "base", {})


def progress(fleet: FleetNow, phase: str = "drilling", at: float = 75.0) -> Progress:
    """One look at a drill."""
    return Progress(phase, DRILL, WORLD, fleet, at)


def fleet_of(*names: str) -> FleetNow:
    """A fleet of workers in mid-call."""
    return FleetNow(workers={name: WorkerNow(name, 1, 7, step=3, state="call", calls=3, wip=2) for name in names})


def drawn(view: LiveView | PlainView, out: io.StringIO, *looks: Progress) -> str:
    """What is on the screen after these looks."""
    with view:
        for look in looks:
            view(look)
    return out.getvalue()


def terminal() -> tuple[io.StringIO, Console]:
    """A terminal of 100 columns that is a string."""
    out = io.StringIO()
    return out, Console(file=out, force_terminal=True, width=100, legacy_windows=False)


def test_the_fleet_is_drawn_with_controls_and_numbers() -> None:
    """Hazard: an operator who cannot see whether anything is going on."""
    out, console = terminal()
    text = drawn(LiveView(console), out, progress(fleet_of("t01", "t02")))
    for word in ("t01", "t02", "call", "2 workers alive", "pause 0:32", "1:15"):
        assert word in text


def test_a_task_name_in_markup_is_shown_as_text() -> None:
    """Hazard: a worker's name that closes the operator's styles, or crashes the view."""
    out, console = terminal()
    text = drawn(LiveView(console), out, progress(fleet_of("[/bold]", "[red]x")))
    assert "[/bold]" in text and "[red]x" in text


def test_a_large_fleet_is_cut_and_counted() -> None:
    """Hazard: a view of a thousand lines that costs more than the drill."""
    out, console = terminal()
    assert "and 968 more" in drawn(LiveView(console), out, progress(fleet_of(*(f"t{n:04}" for n in range(1000)))))


def test_plain_lines_say_each_change_once() -> None:
    """Hazard: a CI log of ten thousand equal lines."""
    out = io.StringIO()
    fleet = fleet_of("t01")
    fleet.news.append("pause issued")
    again = progress(fleet)
    lines = drawn(PlainView(Console(file=out, width=200)), out, again, again, again).splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        "drilling (1 worker alive)",
        "pause issued (1 worker alive)",
    ]


def test_drill_time_is_minutes_and_seconds() -> None:
    """Hazard: a clock that nobody can hold against the drill file."""
    assert (clock(0), clock(75.9), clock(780)) == ("0:00", "1:15", "13:00")
