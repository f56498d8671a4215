"""The examples are test subjects: each has its whole verdict pinned, rows and findings."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from drills import run, script
from drills.api import Result
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
ROWS = ("time-to-quiet", "dirty-worktrees", "duplicate-workers", "direct-pushes", "orphans", "tokens-after-abort")


def drilled(name: str, out: Path) -> Result:
    """The small drill against an example, at a speed that leaves a shell the time that it needs."""
    if shutil.which("jq") is None:
        pytest.skip("the examples in bash need jq; install it (Debian: apt-get install jq)")
    drill, _ = script.load(script.find("small"))
    subject = str(EXAMPLES / name / "subject.toml")
    slow = drill.with_options(speed=20)
    result = measured(lambda: run(slow, subject, out=out, report=False))
    nothing_left(result.bundle.path)
    assert result.scorecard is not None and result.trouble == ()
    return result


def verdicts(result: Result) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Rows and findings, each with its verdict."""
    assert result.scorecard is not None
    rows = {row.id: row.verdict.value for row in result.scorecard.rows}
    return rows, {finding.id: finding.verdict.value for finding in result.scorecard.findings}


def test_the_careful_bash_fleet_passes(tmp_path: Path) -> None:
    """Hazard: only coordinators that are built on our own library can pass."""
    result = drilled("home-built", tmp_path)
    rows, findings = verdicts(result)
    assert result.scorecard is not None
    assert (rows, findings) == (dict.fromkeys(ROWS, "pass"), {}), result.scorecard.dumps()
    assert result.scorecard.verdict is Verdict.PASS


def test_the_sloppy_bash_fleet_fails_on_the_right_rows(tmp_path: Path) -> None:
    """Hazard: background jobs in one checkout and a Ctrl-C look like a coordinator."""
    rows, findings = verdicts(drilled("home-built-sloppy", tmp_path))
    assert rows == {
        "time-to-quiet": "fail",  # no such control
        "dirty-worktrees": "fail",  # no such control
        "duplicate-workers": "fail",  # no such control
        "direct-pushes": "pass",
        "orphans": "pass",  # for once everybody was in its process group
        "tokens-after-abort": "pass",
    }
    # Signalled at once in mid-call, nobody knows who there was, nobody looked what is left.
    assert findings == {"A2": "fail", "A8": "fail", "V1": "fail"}
