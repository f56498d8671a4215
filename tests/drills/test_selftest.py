"""The selftest: every twin is seen, nobody is accused, and a surprise is called one."""

from dataclasses import replace
from pathlib import Path

import pytest

from drills.selftest import Checked, Outcome, compare, matrix, selftest_all
from drills.twins import Twin, twins
from scoring.findings import FINDINGS
from scoring.rows import ROWS
from scoring.verdict import Verdict
from tests.scoring.story import healthy

CLEAN = healthy().judge()


def twin(must: str = "", may: str = "", look: str = "") -> Twin:
    """A twin with these expectations."""
    return Twin("t", "reference", *(frozenset(words.split()) for words in (must, may, look)))


def with_row(name: str, verdict: Verdict) -> "Checked":
    """What the clean twin's comparison says of a scorecard with one row changed."""
    rows = tuple(replace(row, verdict=verdict) if row.id == name else row for row in CLEAN.rows)
    return compare(twin(), replace(CLEAN, rows=rows), "b", ())


def test_a_clean_scorecard_is_neither_missed_nor_accused() -> None:
    """Hazard: a matrix that is red for no reason is not looked at."""
    checked = compare(twin(), CLEAN, "b", ())
    assert (checked.ok, checked.found, checked.missed, checked.accused) == (True, (), (), ())


def test_what_must_be_found_and_is_not_is_missed() -> None:
    """Hazard: a check that stopped seeing."""
    assert compare(twin("orphans A7"), CLEAN, "b", ()).missed == ("A7", "orphans")
    assert compare(twin(look="dirty-worktrees"), CLEAN, "b", ()).missed == ("dirty-worktrees",)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.INVESTIGATE])
def test_an_innocent_row_that_does_not_pass_is_accused(verdict: Verdict) -> None:
    """Hazard: the clean reference is merely "investigate" and the matrix stays green."""
    checked = with_row("orphans", verdict)
    assert checked.accused == ("orphans",) and not checked.ok


def test_trouble_of_the_harness_is_never_ok() -> None:
    """Hazard: a drill that could not be run counts as a twin that was seen."""
    assert not compare(twin(), CLEAN, "b", ("keeper: died",)).ok
    assert Outcome(()).exit_status == 1


def test_the_outcome_names_each_miss_and_each_accusation() -> None:
    """Hazard: exit 1 without saying of what."""
    outcome = Outcome((compare(replace(twin("A7"), name="clean"), CLEAN, "b", ()),))
    said = outcome.to_json()
    assert (said["missed"], said["accused"], said["twins"]) == (["clean: A7"], [], 1)
    assert outcome.exit_status == 1
    assert matrix(outcome).row_count == 1


def test_every_row_and_every_finding_has_a_twin() -> None:
    """Hazard: a check that nothing has ever tripped."""
    covered = frozenset[str]().union(*(item.must for item in twins().values()))
    assert covered >= ROWS.keys() | FINDINGS.keys()


def test_each_row_has_a_twin_that_fails_it_and_no_other_row() -> None:
    """Hazard: rows that are only ever tripped together, so that nobody knows which of them works."""
    for name in ROWS:
        alone = [item for item in twins().values() if item.must & ROWS.keys() == {name} and not item.may & ROWS.keys()]
        assert alone, name


@pytest.mark.real
@pytest.mark.selftest
@pytest.mark.timeout(900)
def test_the_whole_matrix_comes_out(tmp_path: Path) -> None:
    """Hazard: a false accusation or a missed orphan costs this project its name."""
    lines: list[str] = []
    outcome = selftest_all((), 2, tmp_path, lines.append)
    said = outcome.to_json()
    assert (said["missed"], said["accused"], said["trouble"]) == ([], [], []), "\n".join(lines)
    assert said["twins"] == len(twins()) > 40
