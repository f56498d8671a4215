"""A simulated worker works only inside its run's directory: it would edit and commit the user's own files elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fakes
from fakes.worker.fence import outside

PROGRAMS = Path(fakes.__file__).parent


def test_inside_and_outside_are_told_by_the_folder_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: a symbolic link, or a name that begins alike, counts as inside."""
    (tmp_path / "run" / "events").mkdir(parents=True)
    (tmp_path / "run" / "world" / "repo").mkdir(parents=True)
    (tmp_path / "run-of-another").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run" / "world")
    events = str(tmp_path / "run" / "events")
    for place, inside in (("run/world/repo", True), ("run", True), ("link/repo", True), ("run-of-another", False)):
        monkeypatch.chdir(tmp_path / place)
        assert (outside(events) is None) == inside, place
    monkeypatch.chdir("/")
    assert "is outside of the run" in str(outside(events))


@pytest.mark.parametrize("program", ["worker/__main__.py --run r1 --task t01", "shim/__main__.py claude -p t01"])
def test_a_worker_in_the_users_own_folder_refuses_and_touches_nothing(tmp_path: Path, program: str) -> None:
    """Hazard: a subject started in the user's repository lets sixteen simulated workers loose on it."""
    mine = tmp_path / "my-project"
    for folder in (mine, tmp_path / "run" / "events", tmp_path / "run" / "control"):
        folder.mkdir(parents=True)
    (mine / "precious.txt").write_text("mine\n")
    plan = tmp_path / "run" / "plan.json"
    plan.write_text('{"tasks": {"t01": {"files": ["precious.txt"]}}}')
    env = {
        **os.environ, "STOPDRILL_EVENTS": str(tmp_path / "run" / "events"), "STOPDRILL_PLAN": str(plan),
        "STOPDRILL_CONTROL": str(tmp_path / "run" / "control"), "STOPDRILL_TOKEN": "x", "RUN_ID": "r1",
        "STOPDRILL_PROVIDER": "http://127.0.0.1:1",
    }  # fmt: skip
    script, *words = program.split()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", str(PROGRAMS / script), *words],
        cwd=mine, env=env, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{mine} is outside of the run" in done.stderr
    assert {path.name: path.read_text() for path in mine.iterdir()} == {"precious.txt": "mine\n"}
