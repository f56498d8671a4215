"""The fleet of `examples/cron` is a test subject: its whole verdict is pinned, rows and findings."""

import json
import shutil
from pathlib import Path

import pytest

from drills import run, script
from drills.api import Result
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real

SUBJECT = Path(__file__).resolve().parent.parent.parent / "examples" / "cron" / "subject.toml"


@pytest.fixture(scope="module")
def drilled(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The small drill, at a speed that leaves a shell the time that it needs."""
    for needed in ("jq", "flock"):
        if shutil.which(needed) is None:
            pytest.skip(f"the example needs {needed}; install it (Debian: apt-get install jq util-linux)")
    drill, _ = script.load(script.find("small"))
    slow = drill.with_options(speed=20)
    out = tmp_path_factory.mktemp("cron")
    result = measured(lambda: run(slow, str(SUBJECT), out=out, report=False))
    nothing_left(result.bundle.path)
    assert result.trouble == ()
    return result


def test_the_fleet_that_cron_starts_fails_on_the_controls_that_it_lacks_and_on_workers_that_cannot_be_told(
    drilled: Result,
) -> None:
    """Hazard: a coordinator without a process of its own can't be described, or looks stopped because it is gone."""
    card = drilled.scorecard
    assert card is not None
    rows = {row.id: row.verdict.value for row in card.rows}
    findings = {finding.id: finding.verdict.value for finding in card.findings}
    expected = {
        "time-to-quiet": "fail",  # no such control
        "dirty-worktrees": "fail",  # no such control
        "duplicate-workers": "fail",  # no such control
        "direct-pushes": "pass",
        "orphans": "pass",  # whatever fired after the abort
        "tokens-after-abort": "investigate",  # whole calls, which nobody can tell to stop before TERM
    }
    said = [f"{one.id}: {one.why}" for one in (*card.rows, *card.findings)]
    assert (rows, findings) == (expected, {"A1": "fail"}), said
    assert [row.why for row in card.rows if row.verdict.value == "fail" and "no such control" not in row.why] == []


def test_no_firing_after_the_abort_starts_a_worker_again(drilled: Result) -> None:
    """Hazard: the workers are ended, and the next minute finds them missing and starts them."""
    files = sorted((drilled.bundle.path / "events").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().split(b"\n") if line.strip()]
    events = [json.loads(line) for line in lines]
    issued = [event["t"] for event in events if event["kind"] == "control.issue"]
    began = [event["t"] for event in events if event["kind"] == "worker.begin"]
    assert issued and len(began) == 4 and max(began) < max(issued)
    # It was put to the test: cron fired after the abort. The clock of the history is the machine's uptime.
    control = drilled.bundle.path / "world" / "control"
    fired = [float(line) for line in (control / "cron.log").read_text().split()]
    assert max(fired) > max(issued) / 1e9 and (control / "fleet").read_text() == "stopped\n"
