"""Faults that the drill injects: a killed coordinator comes back over its own state, a dead observer is named."""

from pathlib import Path
from typing import Any

import pytest

from drills import run, script
from drills.api import Result
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real


def drilled(out: Path, **changes: Any) -> Result:
    """The small drill, changed."""
    drill, _ = script.load(script.find("small"))
    result = measured(lambda: run(drill.changed(changes, "test"), out=out, report=False))
    nothing_left(result.bundle.path)
    assert result.scorecard is not None and result.trouble == ()
    return result


@pytest.mark.parametrize("at", ["10s", "60s", "120s"], ids=["at-work", "in-the-hold", "after-the-redirect"])
def test_a_killed_coordinator_restarts_and_the_fleet_is_still_its_own(tmp_path: Path, at: str) -> None:
    """Hazard: a restart that doubles living workers, forgets the hold, or loses sight of the fleet."""
    result = drilled(tmp_path, faults=[{"kill": "coordinator", "at": at, "restart_after": "4s"}])
    assert result.scorecard is not None
    failed = [part.why for part in (*result.scorecard.rows, *result.scorecard.findings) if part.verdict is Verdict.FAIL]
    assert failed == []


def test_a_coordinator_that_stays_dead_cannot_abort(tmp_path: Path) -> None:
    """Hazard: nobody answers, and nobody notices."""
    steps = [{"do": "abort", "at": "60s", "answer_within": "20s"}]
    result = drilled(tmp_path, controls=steps, faults=[{"kill": "coordinator", "at": "20s"}])
    assert result.scorecard is not None
    rows = {row.id: row.verdict for row in result.scorecard.rows}
    assert rows["orphans"] is Verdict.FAIL
    assert result.exit_status == 1


def test_a_dead_provider_makes_spending_unknown_and_says_so(tmp_path: Path) -> None:
    """Hazard: no meter, no tokens, pass."""
    result = drilled(tmp_path, faults=[{"kill": "provider", "at": "20s"}])
    assert result.scorecard is not None
    tokens = next(row for row in result.scorecard.rows if row.id == "tokens-after-abort")
    assert tokens.verdict is Verdict.INVESTIGATE
    assert any("provider" in line for line in result.scorecard.not_observed)
