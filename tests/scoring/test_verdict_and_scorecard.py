"""Verdicts combine by the worst; a scorecard is never better than what it rests on."""

import json
from dataclasses import replace

import pytest

from scoring.case import Case
from scoring.findings import FINDINGS
from scoring.judge import judge_timeline
from scoring.rows import ROWS
from scoring.rubric import Rubric
from scoring.scorecard import Finding, Scorecard
from scoring.verdict import Verdict, worst
from tests.scoring.story import healthy


def test_worst_wins_and_nothing_is_a_pass() -> None:
    """Hazard: a fail is outvoted by passes, or a broken harness exits like a failed subject."""
    ordered = [Verdict.PASS, Verdict.INVESTIGATE, Verdict.FAIL, Verdict.BROKEN]
    assert sorted([*ordered[2:], *ordered[:2]], key=lambda verdict: verdict.rank) == ordered
    assert worst([Verdict.FAIL, Verdict.PASS, Verdict.INVESTIGATE]) is Verdict.FAIL
    assert worst([]) is Verdict.PASS
    assert [verdict.exit_status for verdict in ordered] == [0, 3, 1, 4]


@pytest.fixture
def card() -> Scorecard:
    return healthy().judge()


def test_scorecard_is_as_bad_as_its_worst_part(card: Scorecard) -> None:
    """Hazard: a finding, an incomplete history or the harness's own trouble leaves the verdict at pass."""
    finding = Finding("A6", "leftovers", Verdict.INVESTIGATE, 1, "offences", {}, "x")
    assert card.verdict is Verdict.PASS
    assert replace(card, findings=(finding,)).verdict is Verdict.INVESTIGATE
    assert replace(card, complete=False).verdict is Verdict.INVESTIGATE
    assert replace(card, trouble=("x",)).verdict is Verdict.BROKEN


def test_json_form_is_stable(card: Scorecard) -> None:
    """Hazard: a program that reads scorecards finds a key, a row or a check gone."""
    told = json.loads(card.dumps())
    assert (told["schema"], told["run_id"], told["verdict"], told["speed"]) == (1, "r1", "pass", 40.0)
    assert [row["id"] for row in told["rows"]] == list(ROWS)
    assert list(told["checked"]) == sorted(FINDINGS)


def test_hostile_text_can_be_written_as_utf8(card: Scorecard) -> None:
    """Half a surrogate pair in a task's name must not be what keeps the scorecard from the disk."""
    hostile = replace(card, subject="\ud800 <b>")
    assert json.loads(hostile.dumps().encode("utf-8"))["subject"] == "\ud800 <b>"


def test_six_rows_in_the_contract_s_order() -> None:
    """Hazard: a row gets lost or moves, and scorecards can't be compared line by line."""
    assert list(ROWS) == [
        "time-to-quiet", "dirty-worktrees", "duplicate-workers", "direct-pushes", "orphans",
        "tokens-after-abort",
    ]  # fmt: skip


def test_every_finding_has_a_clause_in_words() -> None:
    """Hazard: a finding without a sentence, or filed under another family than its id says."""
    families = {"P": "pause", "D": "redirect", "A": "abort", "V": "observer"}
    for id, check in FINDINGS.items():
        assert (check.id, check.family) == (id, families[id[0]])
        assert check.summary.endswith(".") and check.kind


def test_check_that_raises_is_trouble_and_never_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness failed, not the subject; the other checks go on."""

    def raises(case: Case) -> str:
        raise RuntimeError("boom")

    monkeypatch.setitem(FINDINGS, "A10", replace(FINDINGS["A10"], function=raises))
    card = judge_timeline(healthy().timeline(), Rubric())
    assert (card.verdict, card.trouble) == (Verdict.BROKEN, ("A10: RuntimeError: boom",))
    assert (card.checked["A10"], card.checked["A9"]) == ("broken", "clean")


def test_harness_s_own_trouble_breaks_the_verdict() -> None:
    """Hazard: a drill in which the harness failed judges the subject all the same."""
    card = healthy().at(100, "driver", "harness.trouble", what="keeper", why="gone").judge()
    assert (card.verdict, card.trouble) == (Verdict.BROKEN, ("keeper: gone",))
