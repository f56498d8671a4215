"""A stranger with an unchanged fan-out script gets from nothing to a scored report with two commands."""

import subprocess
from pathlib import Path

import pytest

from tests.drills.harness import STOPDRILL, nothing_left

pytestmark = pytest.mark.real

FAN_OUT = """\
#!/bin/bash
for t in t01 t02 t03 t04; do
    claude -p "Please do task $t." --output-format json > "out-$t.json" &
done
wait
"""


def test_an_unchanged_script_around_an_agent_cli_is_drilled_without_writing_a_line(tmp_path: Path) -> None:
    """Hazard: plugging a coordinator in takes a day, so that nobody drills it; or it works on the user's own files."""
    script = tmp_path / "fan.sh"
    script.write_text(FAN_OUT)
    script.chmod(0o755)
    done = subprocess.run([*STOPDRILL, "init"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert "fan.sh calls claude" in done.stdout
    drilled = subprocess.run(
        [*STOPDRILL, "run", "small", "--subject", "subject.toml"],
        cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert drilled.returncode == 1, drilled.stderr
    orphans = next(line for line in drilled.stdout.splitlines() if line.startswith("FAIL") and "orphans" in line)
    assert "t0" in orphans and "claude -p" in orphans and "pid " in orphans
    nothing_left(next((tmp_path / "stopdrill-runs").iterdir()))
    assert {path.name for path in tmp_path.iterdir()} == {
        "fan.sh", "subject.toml", "stopdrill-ci.yml", "stopdrill-runs",
    }  # fmt: skip
    assert script.read_text() == FAN_OUT
