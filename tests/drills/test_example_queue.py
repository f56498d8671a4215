"""The queue of `examples/queue-worker` is a test subject: its whole verdict is pinned, rows and findings."""

import shutil
import socket
from pathlib import Path

import pytest

from drills import run, script
from scoring.verdict import Verdict
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "queue-worker"
PORT = "8017"
"""The one in the subject file, which on this machine may be somebody else's."""


def on_a_free_port(folder: Path) -> Path:
    """The example's subject file, as its user would write it who has something else on that port."""
    shutil.copytree(EXAMPLE, folder)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    subject = folder / "subject.toml"
    text = subject.read_text()
    assert PORT in text
    subject.write_text(text.replace(PORT, port))
    return subject


def test_the_queue_fails_on_the_control_that_it_lacks_and_on_nothing_else(tmp_path: Path) -> None:
    """Hazard: only fleets that are driven by commands can be drilled, not those behind a page whose jobs wait in a
    database.
    """
    drill, _ = script.load(script.find("small"))
    slow = drill.with_options(speed=20)
    subject = on_a_free_port(tmp_path / "example")
    result = measured(lambda: run(slow, str(subject), out=tmp_path / "out", report=False))
    nothing_left(result.bundle.path)
    card = result.scorecard
    assert card is not None and result.trouble == ()
    rows = {row.id: row.verdict.value for row in card.rows}
    findings = {finding.id: finding.verdict.value for finding in card.findings}
    expected = {
        "time-to-quiet": "pass",
        "dirty-worktrees": "pass",
        "duplicate-workers": "fail",  # no such control
        "direct-pushes": "pass",
        "orphans": "pass",
        "tokens-after-abort": "pass",
    }
    said = [f"{one.id}: {one.why}" for one in (*card.rows, *card.findings)]
    assert (rows, findings) == (expected, {}), said
    lacking = next(row for row in card.rows if row.id == "duplicate-workers")
    assert "no such control" in lacking.why and card.verdict is Verdict.FAIL
