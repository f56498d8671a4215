"""A control can wait for a condition of the fleet; one that never comes true is said, and proves nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from drills import run, script
from drills.api import Result
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real

FIXED = {"workers": 3, "calls": {"distribution": "fixed", "value": "10s", "longest": "10s"}}


def drilled(out: Path, *controls: dict[str, Any], **more: Any) -> Result:
    """A small fleet with calls of one length, and these controls."""
    drill, _ = script.load(script.find("small"))
    changes = {"fleet": FIXED, "controls": list(controls), **more}
    result = measured(lambda: run(drill.changed(changes, "test"), out=out, report=False))
    nothing_left(result.bundle.path)
    assert result.scorecard is not None and result.trouble == ()
    return result


def driver_events(result: Result) -> list[dict[str, Any]]:
    """The driver's journal."""
    lines = (result.bundle.path / "events" / "driver.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_pause_that_waits_for_everybody_in_mid_call_and_resumes_by_itself(tmp_path: Path) -> None:
    """Hazard: a pause that happens to find everybody between two calls measures nothing."""
    pause = {"do": "pause", "when": "all-mid-call", "after": "20s", "within": "80s", "hold": "40s"}
    result = drilled(tmp_path, pause, {"do": "abort", "at": "150s"})
    events = driver_events(result)
    assert [e["control"] for e in events if e["kind"] == "condition.met"] == ["pause"]
    issued = [(e["control"], e["n"]) for e in events if e["kind"] == "control.issue"]
    assert issued == [("pause", 1), ("resume", 2), ("abort", 3)]
    assert result.scorecard is not None
    rows = {row.id: row for row in result.scorecard.rows}
    assert rows["time-to-quiet"].verdict is Verdict.PASS
    assert (rows["time-to-quiet"].value or 0) > 0
    assert not [finding.why for finding in result.scorecard.findings if finding.verdict is Verdict.FAIL]


def test_a_condition_that_never_comes_true_is_said(tmp_path: Path) -> None:
    """Hazard: a control that was never issued counts as one that worked."""
    never = {"do": "pause", "when": "all-mid-call", "after": "30s", "within": "20s"}
    stalled = [{"task": "t03", "name": "stops-heartbeat", "at_step": 2}]
    result = drilled(tmp_path, never, {"do": "abort", "at": "60s"}, misbehaviours=stalled)
    assert [event["control"] for event in driver_events(result) if event["kind"] == "condition.expired"] == ["pause"]
    assert result.scorecard is not None
    row = result.scorecard.rows[0]
    assert row.verdict is Verdict.INVESTIGATE
    assert "its condition did not come true in time: all-mid-call" in row.why
