"""The git observer tells what is there, takes no lock and changes no byte."""

import hashlib
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from drills.observers import gitstate
from tests.waiting import until


def run_git(where: Path, *words: str) -> str:
    """Run git with an identity of its own."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, str]:
    """A repo with one worktree on branch agent/r1/t01, and the sha that it began at."""
    repo = tmp_path / "repo"
    repo.mkdir()
    run_git(repo, "init", "-q", "-b", "main")
    (repo / "deps.lock").write_text("lib==3.0.0\n")
    run_git(repo, "add", ".")
    run_git(repo, "commit", "-q", "-m", "base")
    base = run_git(repo, "rev-parse", "HEAD")
    run_git(repo, "worktree", "add", "-q", "-b", "agent/r1/t01", str(tmp_path / "t01"))
    return tmp_path / "t01", base


def look(path: Path, base: str) -> gitstate.Worktree:
    """The state of the worktree, with deps.lock as its planned file."""
    return gitstate.worktree("t01", path, base, ("deps.lock",))


def test_a_clean_worktree_with_checkpoints(tree: tuple[Path, str]) -> None:
    """Hazard: a checkpoint that is not recognised makes an honest worker fail."""
    path, base = tree
    for step in (1, 2, 3):
        (path / "deps.lock").write_text(f"lib==4.0.{step}\n# stopdrill t01 {step} end\n")
        run_git(path, "commit", "-qam", f"wip: t01 {step}")
    state = look(path, base)
    assert (state.branch, state.wip_step, len(state.wips), state.dirty) == ("agent/r1/t01", 3, 3, ())
    assert state.head == run_git(path, "rev-parse", "HEAD")


def test_changes_untracked_files_and_half_written_ones_are_told_apart(tree: tuple[Path, str]) -> None:
    """Hazard: a torn file that passes for a finished change."""
    path, base = tree
    (path / "deps.lock").write_text("lib==4.0.1\n# stopdrill t01 1 end\n")
    (path / "new name.txt").write_text("x")
    assert look(path, base).dirty == ("deps.lock", "new name.txt")
    assert look(path, base).half_written == ()
    (path / "deps.lock").write_text("lib==4.0")
    assert look(path, base).half_written == ("deps.lock",)
    run_git(path, "mv", "deps.lock", "moved.lock")
    assert "moved.lock" in look(path, base).dirty


def test_looking_changes_nothing(tree: tuple[Path, str]) -> None:
    """Hazard: a status that refreshes the index takes the lock that a worker's commit needs."""
    path, base = tree
    (path / "deps.lock").write_text("changed\n")

    def everything() -> str:
        digest = hashlib.sha256()
        for file in sorted(path.parent.rglob("*")):
            if file.is_file():
                digest.update(f"{file} {file.stat().st_mtime_ns}".encode() + file.read_bytes())
        return digest.hexdigest()

    before = everything()
    look(path, base)
    gitstate.refs(path.parent / "repo")
    gitstate.describe(path)
    assert everything() == before


def test_a_lock_without_a_holder_and_one_with(tree: tuple[Path, str]) -> None:
    """Hazard: the lock of a running commit reported as the leaving of a dead one."""
    path, base = tree
    lock = path.parent / "repo" / ".git" / "worktrees" / "t01" / "index.lock"
    lock.write_text("")
    (left,) = look(path, base).locks
    assert (left["path"], left["alive"]) == (str(lock), False)
    with lock.open("w"):
        (held,) = look(path, base).locks
        assert held["alive"] is True


def test_a_worktree_that_is_gone_and_one_that_is_broken(tree: tuple[Path, str], tmp_path: Path) -> None:
    """Hazard: deleted evidence that shows as clean."""
    path, base = tree
    assert not look(tmp_path / "nowhere", base).exists
    (path / ".git").write_text("gitdir: /nonexistent\n")
    assert look(path, base).dirty[0].startswith("git cannot read it")


def test_refs_and_stashes(tree: tuple[Path, str]) -> None:
    """Hazard: stashes are shared by all worktrees and seen in none of them."""
    path, _ = tree
    (path / "deps.lock").write_text("to be stashed\n")
    run_git(path, "stash")
    refs, stashes = gitstate.refs(path.parent / "repo")
    assert {"refs/heads/main", "refs/heads/agent/r1/t01", "refs/stash"} <= refs.keys()
    assert len(stashes) == 1


HOLD_COMMIT = """#!/bin/sh
# Stands still after HEAD has moved and before the index has, until it is let go.
[ "$1" = committed ] || exit 0
: > "$TREE/../held"
for i in $(seq 500); do [ -e "$TREE/../go" ] && exit 0; sleep 0.02; done
"""


def test_a_worktree_is_never_read_in_the_middle_of_a_commit(
    tree: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard: between the moving of HEAD and of the index, the files of a checkpoint show as uncommitted changes."""
    path, base = tree
    gitdir = path.parent / "repo" / ".git"
    hook = gitdir / "hooks" / "reference-transaction"
    hook.write_text(HOLD_COMMIT)
    hook.chmod(0o755)
    (path / "deps.lock").write_text("lib==4.0.1\n")
    commit = subprocess.Popen(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-qam", "wip: t01 1"],
        cwd=path, env={**os.environ, "TREE": str(path)},
    )  # fmt: skip
    until((path.parent / "held").exists, 20, "the commit to stand still")

    def let_go(_seconds: float) -> None:
        (path.parent / "go").touch()
        assert commit.wait(20) == 0

    monkeypatch.setattr(gitstate, "time", SimpleNamespace(sleep=let_go))
    state = look(path, base)
    assert commit.returncode == 0, "the look did not wait for the commit"
    assert (state.dirty, state.wip_step) == ((), 1)
