"""The command line: exit statuses, one JSON object, sentences instead of tracebacks."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.drills.harness import STOPDRILL, nothing_left

pytestmark = pytest.mark.real


def stopdrill(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    return subprocess.run([*STOPDRILL, *words], capture_output=True, text=True, timeout=90, cwd=cwd)


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    """Hazard: progress mixed into what a program reads."""
    done = stopdrill("run", "small", "--json", "--out", str(tmp_path))
    said = json.loads(done.stdout)
    # On a machine that was too busy for a moment, "investigate" is the right answer.
    assert (said["scorecard"]["verdict"], done.returncode) in (("pass", 0), ("investigate", 3))
    assert said["trouble"] == []
    assert done.stderr == ""
    nothing_left(Path(said["bundle"]))
    assert (Path(said["bundle"]) / "report.html").stat().st_size < 1_000_000


def test_a_broken_coordinator_exits_1_and_names_the_orphan(tmp_path: Path) -> None:
    """Hazard: CI that stays green with sixteen workers left alive."""
    done = stopdrill("run", "small", "--subject", "broken:ctrl-c-only", "--out", str(tmp_path))
    assert done.returncode == 1
    orphans = next(line for line in done.stdout.splitlines() if "orphans" in line and "FAIL" in line)
    assert "pid " in orphans and "worker" in orphans
    nothing_left(next(tmp_path.glob("r*")))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "tabeltop"], "did you mean tabletop?"),
        (["run", "--subject", "broken:ctrl-c"], "did you mean broken:ctrl-c-only?"),
        (["run", "missing.toml"], "missing.toml: cannot be read"),
        (["run", "bad.toml"], "bad.toml:2: fleet.unknown: unknown key"),
        (["run", "small", "--workers", "0"], "0 is not in the range"),
        (["run", "small", "--repo", "."], "not a git repository"),
        (["run", "small", "--rubric", "bad.toml"], "bad.toml"),
        (["score", "nowhere"], "nowhere: no such directory"),
        (["report", "nowhere"], "nowhere: no such directory"),
        (["selftest", "--only", "nobody"], "no twin named nobody"),
        (["catalogue", "rowz"], "no topic 'rowz'"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_2(words: list[str], says: str, tmp_path: Path) -> None:
    """Hazard: a traceback where a word was misspelt."""
    (tmp_path / "bad.toml").write_text('name = "x"\nfleet.unknown = 3\n')
    done = stopdrill(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr + done.stdout
    assert not list(tmp_path.glob("stopdrill-runs/*"))


def test_the_catalogue_is_printed_from_the_code() -> None:
    """Hazard: documentation of a row that does not exist any more."""
    said = json.loads(stopdrill("catalogue", "--json").stdout)
    assert {"drills", "rows", "findings", "behaviours", "subjects", "events"} == said.keys()
    assert said["rows"][0]["name"] == "time-to-quiet"
    assert len(said["findings"]) == 28
    assert {"tabletop", "small"} <= {entry["name"] for entry in said["drills"]}


def test_a_file_of_the_users_in_front_of_ours_is_named(tmp_path: Path) -> None:
    """Hazard: a user's own fakes.py is imported in place of ours, and fails far away."""
    (tmp_path / "fakes.py").write_text("")
    done = stopdrill("catalogue", cwd=tmp_path)
    assert done.returncode != 0
    assert f"{tmp_path / 'fakes.py'} stands in front" in done.stderr
