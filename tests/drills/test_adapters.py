"""Whatever an adapter does, it is a result of the drill: a row, a finding, a sentence; and nothing stays alive."""

import json
from pathlib import Path
from typing import Any

import pytest

from drills import run, script
from drills.adapters.base import Adapter
from drills.api import Result
from scoring.verdict import Verdict
from tests.drills import adapters_for_tests as bad
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real


def drilled(adapter: Adapter, out: Path, **changes: Any) -> Result:
    """The small drill with this adapter, nothing left behind."""
    drill, _ = script.load(script.find("small"))
    result = measured(lambda: run(drill.changed(changes, "test"), adapter, out=out, report=False))
    nothing_left(result.bundle.path)
    assert result.trouble == () and result.scorecard is not None
    return result


def events(result: Result, kind: str) -> list[dict[str, Any]]:
    """Events of the driver of one kind."""
    lines = (result.bundle.path / "events" / "driver.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["kind"] == kind]


def row(result: Result, name: str) -> Any:
    """One row of the scorecard."""
    assert result.scorecard is not None
    return next(item for item in result.scorecard.rows if item.id == name)


def test_a_control_that_raises_is_recorded_and_the_truth_still_measured(tmp_path: Path) -> None:
    """Hazard: an exception of the adapter ends the drill before the abort was tried."""
    result = drilled(bad.Raises(), tmp_path)
    assert events(result, "control.error")[0]["reason"] == "RuntimeError: no such session"
    assert row(result, "time-to-quiet").verdict is Verdict.FAIL
    assert row(result, "orphans").verdict is Verdict.PASS


def test_a_control_that_hangs_is_given_up_and_what_follows_times_out_too(tmp_path: Path) -> None:
    """Hazard: one blocked call of the adapter and nobody ends the fleet."""
    short = {"do": "pause", "at": "32s", "answer_within": "20s"}
    abort = {"do": "abort", "at": "112s", "answer_within": "20s"}
    result = drilled(bad.Hangs(), tmp_path, controls=[short, abort])
    assert [event["control"] for event in events(result, "control.timeout")] == ["pause", "abort"]
    assert row(result, "orphans").verdict is Verdict.FAIL


def test_a_lie_is_a_finding(tmp_path: Path) -> None:
    """Hazard: the harness believes an answer."""
    result = drilled(bad.Lies(), tmp_path)
    assert result.scorecard is not None
    found = {finding.id: finding.verdict for finding in result.scorecard.findings}
    assert found["V1"] is Verdict.FAIL
    assert row(result, "time-to-quiet").verdict is Verdict.FAIL


def test_a_missing_control_fails_its_row_and_says_so(tmp_path: Path) -> None:
    """Hazard: what a coordinator cannot do is skipped, and skipped looks like passed."""
    result = drilled(bad.Lacks(), tmp_path)
    for name in ("time-to-quiet", "dirty-worktrees", "duplicate-workers"):
        assert (row(result, name).verdict, "no such control" in row(result, name).why) == (Verdict.FAIL, True)
    assert row(result, "orphans").verdict is Verdict.PASS


@pytest.mark.parametrize("adapter", [bad.CannotStart(), bad.StartsNobody()], ids=["missing", "no-worker"])
def test_a_subject_that_starts_nobody_is_said_and_never_passes(adapter: Adapter, tmp_path: Path) -> None:
    """Hazard: an empty fleet is the quietest of all."""
    result = drilled(adapter, tmp_path, fleet={"start_within": "40s"})
    assert result.exit_status == 3
    assert result.scorecard is not None
    assert any("the fleet" in line or "subject" in line for line in result.scorecard.not_observed)
    assert all(item.verdict is not Verdict.PASS for item in result.scorecard.rows if item.id != "direct-pushes")
