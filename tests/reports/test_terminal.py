"""The terminal and the plain lines of CI."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from reports import terminal
from scoring.scorecard import Scorecard
from scoring.verdict import Verdict
from tests.reports import literal
from tests.reports.test_page import HOSTILE


def _printed(card: Scorecard, width: int = 140) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(terminal.render(card))
    return out.getvalue()


def test_plain_text_has_a_line_for_each_row_and_finding() -> None:
    """`grep time-to-quiet` in a log of CI finds the verdict, the value and the limits."""
    card = literal.scorecard(findings=(literal.found(),), work_lost_s={"abort": {"t01": 3.5, "t02": 0.0}})
    lines = terminal.plain(card).splitlines()
    for row in card.rows:
        (line,) = [line for line in lines if row.id in line]
        assert line.startswith("PASS") and row.why in line
    assert [line for line in lines if line.startswith("FAIL ") and "A9 said stopped" in line]
    assert "work lost at abort: 3.5 drill s in 1 worker, most in t01 (3.5 s)" in lines
    assert "27.4 s (pass ≤ 30 s, investigate ≤ 60 s)" in terminal.plain(card)


def test_the_table_shows_rows_findings_and_what_was_not_observed() -> None:
    """The terminal says all that decides the exit status."""
    rows = (replace(literal.ROWS[0], value=None, verdict=Verdict.FAIL), *literal.ROWS[1:])
    shown = _printed(
        literal.scorecard(
            rows=rows, findings=(literal.found(),), not_observed=("netlink",), complete=False, trouble=("x",)
        )
    )
    for words in (
        "BROKEN",
        "Time to quiet",
        "never",
        "A9",
        "not observed: netlink",
        "incomplete",
        "harness: x",
    ):
        assert words in shown


@pytest.mark.parametrize("text", [*HOSTILE, "[red]markup[/red]", "x" * 1_000_000])
def test_hostile_text_cannot_drive_the_terminal(text: str) -> None:
    """An escape sequence in a task's name could retitle the window or hide a failure."""
    card = literal.scorecard(
        drill=text, subject=text, findings=(literal.found(why=text, kind=text),), not_observed=(text,)
    )
    for shown in (terminal.plain(card), _printed(card)):
        assert not set(shown) & set("\x00\x1b\u202e\u200f\ud800")
        assert len(shown) < 20_000
    if text.startswith("[red]"):
        assert "[red]" in _printed(card)


def test_a_narrow_terminal_keeps_every_row() -> None:
    """Eighty columns are still the default of many."""
    shown = _printed(literal.scorecard(), width=80)
    for row in ("Time to quiet", "Orphans after abort", "Tokens after abort"):
        assert row in shown
