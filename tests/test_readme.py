"""README tells the truth: its example runs as it stands there, and comes out as it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from drills import Bundle
from scoring.rubric import Rubric
from scoring.verdict import Verdict
from tests.drills.harness import nothing_left

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, holds: str) -> str:
    """The code block of a language that holds a text."""
    return next(code for code in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if holds in code)


@pytest.mark.real
def test_the_example_of_ones_own_coordinator_runs_as_it_stands(tmp_path: Path) -> None:
    """Hazard: the first thing that a new user types does not work."""
    (tmp_path / "fleet.sh").write_text(block("bash", "fleet.sh REPO"))
    (tmp_path / "drill.py").write_text(block("python", "class Mine"))
    done = subprocess.run(
        [sys.executable, "drill.py"], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fail ")
    bundle = next((tmp_path / "stopdrill-runs").iterdir())
    nothing_left(bundle)
    card = Bundle.open(bundle).judge(Rubric())
    rows = {row.id: row for row in card.rows}
    assert rows["orphans"].verdict is Verdict.PASS and "no such control" in rows["time-to-quiet"].why
    assert {finding.id for finding in card.findings} == {"A8", "A15", "V1"}, card.findings


def test_linked_pages_and_pictures_exist() -> None:
    """Hazard: a front page with dead links."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_drill_file_in_the_readme_is_valid(tmp_path: Path) -> None:
    """Hazard: an example that is refused."""
    from drills import script

    path = tmp_path / "ours.toml"
    path.write_text(block("toml", 'name = "ours"'))
    assert script.load(path)[0].fleet.workers == 8
