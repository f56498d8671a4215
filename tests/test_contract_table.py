"""docs/contract.md tells the truth: each clause has its check where the page says, and a twin that trips it."""

import re
from pathlib import Path

import pytest

from drills.twins import twins
from scoring.findings import FINDINGS
from scoring.rows import ROWS

ROOT = Path(__file__).resolve().parent.parent
LINES = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8").splitlines()
TABLE = [
    [cell.strip().strip("`") for cell in line.strip("|").split("|")]
    for line in LINES
    if re.match(r"\| (`[a-z-]+`|[PDAVLCS]\d+) \|", line)
]
CHECKS = {**ROWS, **FINDINGS}


def test_the_page_lists_exactly_the_checks_that_exist() -> None:
    """Hazard: a clause of the contract that is only promised."""
    assert [row[0] for row in TABLE] == list(CHECKS)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_each_clause_has_its_check_and_its_twin(row: list[str]) -> None:
    """Hazard: a check that has moved, and a check that nothing has ever tripped."""
    identity, where, twin = row[0], row[-2], row[-1]
    assert identity in (ROOT / where).read_text(encoding="utf-8")
    assert identity in twins()[twin].must
