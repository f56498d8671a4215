"""The sample repository, and a user's own, which is read and never touched."""

import hashlib
from pathlib import Path

import pytest

from fakes.origin import RepoError, git
from fakes.sample_repo import clone_user_repo, generate, tasks, tasks_for_repo

pytestmark = pytest.mark.real

WHO = {f"GIT_{who}_{what}": "u@v" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def _commit(repo: Path, message: str = "work") -> str:
    git("add", "-A", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", message, cwd=repo, env=WHO)
    return git("rev-parse", "HEAD", cwd=repo).decode().strip()


def _user_repo(path: Path) -> Path:
    path.mkdir(parents=True)
    git("init", "-q", "-b", "trunk", ".", cwd=path)
    return path


def _fingerprint(top: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, modification time and content of everything below, .git included."""
    found = {}
    for path in sorted([top, *top.rglob("*")]):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, hashlib.sha256(content).hexdigest())
    return found


def test_the_sample_has_the_same_commit_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: bundles of two machines that can't be compared."""
    first = generate(tmp_path / "one")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "someone else")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert generate(tmp_path / "two") == first
    assert first == "e164a3265adeb6812c5e5a847bc239600e2c3ab7"
    lock = (tmp_path / "one/packages/p16/deps.lock").read_text().splitlines()
    assert len(lock) == 24
    assert all("==3." in line for line in lock)


def test_the_samples_tasks_are_one_for_each_package() -> None:
    """Hazard: two workers on one file."""
    made = tasks(16, 3)
    assert [task.id for task in made] == ["t01", "t02", "t03"]
    assert made[2].files == ("packages/p03/deps.lock",)
    with pytest.raises(ValueError, match="17 tasks need 17 packages"):
        tasks(16, 17)


def test_a_users_repository_is_only_read_and_nothing_of_it_runs(tmp_path: Path) -> None:
    """Hazard: a drill that changes the repository it was shown, or executes what it finds there."""
    user = _user_repo(tmp_path / "my own repo 100%")
    (user / "a.txt").write_text("one\n")
    commit = _commit(user)
    ran = tmp_path / "ran"
    trap = user / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    trap.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        (user / ".git/hooks" / hook).symlink_to(trap)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "core.pager"):
        git("config", key, str(trap), cwd=user)
    git("config", "core.hooksPath", str(user / ".git/hooks"), cwd=user)
    (user / "a.txt").write_text("changed and not committed\n")
    (user / "untracked").write_text("x")
    ran.unlink(missing_ok=True)
    before = _fingerprint(user)
    assert clone_user_repo(user, tmp_path / "clone.git") == commit
    tasks_for_repo(tmp_path / "clone.git", 2)
    assert _fingerprint(user) == before
    assert not ran.exists()
    clone = tmp_path / "clone.git"
    assert git("show", "main:a.txt", cwd=clone) == b"one\n"
    assert git("for-each-ref", "--format=%(refname)", cwd=clone) == b"refs/heads/main\n"
    assert not (clone / "objects/info/alternates").exists()
    assert {path.stat().st_nlink for path in (clone / "objects").rglob("*") if path.is_file()} == {1}


@pytest.mark.parametrize("kind", ["bare", "shallow", "detached", "linked worktree"])
def test_unusual_repositories_are_copied_too(tmp_path: Path, kind: str) -> None:
    """Hazard: a CI checkout, which is shallow and detached, can't be drilled."""
    user = _user_repo(tmp_path / "user")
    first = _commit(user, "first")
    last = _commit(user, "last")
    other = tmp_path / "other"
    if kind == "bare":
        git("clone", "-q", "--bare", str(user), str(other), cwd=tmp_path)
    elif kind == "shallow":
        git("clone", "-q", "--depth=1", "file://" + str(user), str(other), cwd=tmp_path)
    elif kind == "detached":
        git("clone", "-q", str(user), str(other), cwd=tmp_path)
        git("checkout", "-q", first, cwd=other)
    else:
        git("worktree", "add", "-q", str(other), "-b", "side", first, cwd=user)
    expected = last if kind in ("bare", "shallow") else first
    assert clone_user_repo(other, tmp_path / "clone.git") == expected
    git("clone", "-q", str(tmp_path / "clone.git"), str(tmp_path / "checkout"), cwd=tmp_path)


def test_what_is_no_repository_is_named_with_a_remedy(tmp_path: Path) -> None:
    """Hazard: git's own words, which name neither the path nor a way out."""
    with pytest.raises(RepoError, match=r"nowhere is not a folder"):
        clone_user_repo(tmp_path / "nowhere", tmp_path / "a.git")
    (tmp_path / "plain").mkdir()
    with pytest.raises(RepoError, match=r"plain is not a git repository: name the folder that holds \.git"):
        clone_user_repo(tmp_path / "plain", tmp_path / "b.git")
    empty = _user_repo(tmp_path / "empty")
    with pytest.raises(RepoError, match=r"empty has no commit on its current branch: commit something first"):
        clone_user_repo(empty, tmp_path / "c.git")


def test_tasks_share_out_the_small_text_files(tmp_path: Path) -> None:
    """Hazard: a worker that edits an image, a link to elsewhere, or git's own settings."""
    user = _user_repo(tmp_path / "user")
    for name in ("a.txt", "b c.txt", "d.py"):
        (user / name).write_text("text\n")
    (user / "image").write_bytes(b"\x89PNG\0")
    (user / "big").write_text("x" * 100_000)
    (user / ".gitattributes").write_text("* text\n")
    (user / "link").symlink_to("a.txt")
    _commit(user)
    clone_user_repo(user, tmp_path / "clone.git")
    made = tasks_for_repo(tmp_path / "clone.git", 2)
    assert [task.files for task in made] == [("a.txt", "d.py"), ("b c.txt",)]
    few = tasks_for_repo(tmp_path / "clone.git", 5)
    assert few[4].files == ("stopdrill/t05.txt",)
    assert few[4].title == "Add a file"
