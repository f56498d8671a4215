"""The world of a run: the user's repository is only read, nothing of it is shared, every remote is the run's."""

import hashlib
import subprocess
from pathlib import Path

import git
import pytest

from drills import UsageProblem, run, script, world
from tests.drills.harness import measured, nothing_left

pytestmark = pytest.mark.real


def repo_at(path: Path) -> Path:
    """A user's repository: own remote, hook, dirty file, packed and loose objects."""
    path.mkdir()
    identity = ["-c", "user.name=u", "-c", "user.email=u@u.invalid", "-c", "commit.gpgsign=false"]

    def words(*args: str) -> None:
        subprocess.run(["git", *identity, *args], cwd=path, check=True, capture_output=True, timeout=30)

    words("init", "-q", "-b", "trunk")
    for number in range(9):
        (path / f"module{number}.py").write_text(f"value = {number}\n" * 20)
    words("add", ".")
    words("commit", "-q", "-m", "first")
    words("gc", "-q")
    words("remote", "add", "upstream", "https://example.invalid/theirs.git")
    hook = path / ".git" / "hooks" / "post-commit"
    hook.write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    (path / "module0.py").write_text("not committed\n")
    return path


def every_byte(path: Path) -> dict[str, tuple[int, str]]:
    """Modification time and content of every file below."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {str(file): (file.stat().st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files}


def test_a_drill_on_the_users_repo_changes_no_byte_of_it(tmp_path: Path) -> None:
    """Hazard: a drill in a "throwaway clone" that pushes to the user's remote or prunes their worktrees."""
    theirs = repo_at(tmp_path / "my project")
    before = every_byte(theirs)
    result = measured(lambda: run("small", out=tmp_path / "runs", repo=theirs, report=False))
    nothing_left(result.bundle.path)
    assert every_byte(theirs) == before
    assert (result.exit_status, result.trouble) == (0, ())
    root = result.bundle.path / "world"
    for place in (root / "repo", root / "origin.git"):
        repo = git.Repo(place)
        assert not (Path(repo.common_dir) / "objects" / "info" / "alternates").exists()
        assert {remote.url for remote in repo.remotes} <= {(root / "origin.git").as_uri()}
    shared = {path.stat().st_ino for path in (theirs / ".git" / "objects").rglob("*") if path.is_file()}
    ours = {path.stat().st_ino for path in root.rglob("*") if path.is_file()}
    assert not shared & ours


def test_an_empty_repo_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """Hazard: a half-built world for a repo without a commit."""
    empty = tmp_path / "empty"
    git.Repo.init(empty)
    drill, _ = script.load(script.find("small"))
    with pytest.raises(UsageProblem, match="commit something first"):
        world.create(drill, tmp_path / "runs", empty)


def test_the_subjects_environment_is_scrubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: a user's key reaches a worker, a history or a report."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-real")
    monkeypatch.setenv("GIT_DIR", "/somewhere/else")
    drill, _ = script.load(script.find("small"))
    made = world.create(drill, tmp_path)
    environment = made.environment()
    assert not {"ANTHROPIC_API_KEY", "GIT_DIR", "SSH_AUTH_SOCK", "USER"} & environment.keys()
    assert environment["HOME"].startswith(str(made.run_dir))


def test_the_plan_is_in_real_seconds_and_marks_are_the_runs_own(tmp_path: Path) -> None:
    """Hazard: a worker that takes drill minutes for real ones."""
    drill, _ = script.load(script.find("small"))
    made = world.create(drill, tmp_path)
    plan = world.plan(made, drill, ({"task": "t02", "name": "slow", "times": 3},))
    assert plan["longest_call_s"] == pytest.approx(12 / 40)
    assert plan["tasks"]["t02"]["misbehaviours"] == [{"name": "slow", "times": 3}]
    assert plan["tasks"]["t01"]["misbehaviours"] == []
    assert made.run_id in plan["objective"]["mark"]
