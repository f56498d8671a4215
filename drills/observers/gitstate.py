"""What git says about worktrees and repositories, read without taking a lock or changing a byte.

Everything runs with `--no-optional-locks`, because an ordinary `git status` refreshes the index and would take the
`index.lock` that a worker's commit needs. Content is read through GitPython; processes are bounded by it.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git

_WIP = re.compile(r"^wip: (\S+) (\d+)\b")
_END = re.compile(rb"# stopdrill \S+ \d+ end\s*\Z")
_BOUND_S = 20
_LOCK_SETTLES_S = 0.05


@dataclass(frozen=True)
class Worktree:
    """One worktree at one instant; `None` where it cannot be told. Written to the history as `worktree.state`."""

    task: str
    path: str
    exists: bool
    branch: str | None
    head: str | None
    wip_step: int | None
    wips: tuple[str, ...]
    dirty: tuple[str, ...]
    half_written: tuple[str, ...]
    locks: tuple[dict[str, Any], ...]

    def fields(self) -> dict[str, Any]:
        """As event fields."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def worktree(task: str, path: Path, base: str, planned: tuple[str, ...]) -> Worktree:
    """The state of one worktree; `base` is the sha that its branch began at, `planned` the files of its task."""
    if not (path / ".git").exists():
        return Worktree(task, str(path), path.is_dir(), None, None, None, (), (), (), ())
    try:
        status, log = _steady(path, base)
    except git.GitCommandError as error:
        why = f"git cannot read it: {str(error.stderr).strip()[:200]}"
        return Worktree(task, str(path), True, None, None, None, (), (why,), (), locks(path))
    branch, head, dirty = _parse_status(status)
    wips = [(line.partition(" ")[0], _WIP.match(line.partition(" ")[2])) for line in log.splitlines()]
    steps = [int(match.group(2)) for _, match in wips if match is not None]
    half = tuple(name for name in planned if name in dirty and is_half_written(path / name))
    return Worktree(
        task, str(path), True, branch, head,
        max(steps, default=None), tuple(sha for sha, match in wips if match is not None),
        dirty, half, locks(path),
    )  # fmt: skip


def _steady(path: Path, base: str) -> tuple[str, str]:
    """Status and log as of one instant.

    A commit moves HEAD first and its index a moment later; a status in between shows the files of a checkpoint as
    changes. So what was read while the index was locked, or replaced, is read again, a few times.
    """
    command = _git(path)
    gitdir = _gitdir(path)
    for last in (False, False, False, False, True):
        before = _index_of(gitdir)
        status = command.status("--porcelain=v2", "--branch", "--untracked-files=all", "-z")
        log = command.log("--format=%H %s", f"{base}..HEAD")
        if last or (before is not None and before == _index_of(gitdir)):
            break
        time.sleep(_LOCK_SETTLES_S / 2)
    return status, log


def _index_of(gitdir: Path | None) -> tuple[int, int] | None:
    """Inode and time of the index; None while it is locked, or where there is none."""
    try:
        if gitdir is None or (gitdir / "index.lock").exists():
            return None
        index = (gitdir / "index").stat()
    except OSError:
        return None
    return index.st_ino, index.st_mtime_ns


def _gitdir(path: Path) -> Path | None:
    """The worktree's own git directory."""
    try:
        text = (path / ".git").read_text(encoding="utf-8") if (path / ".git").is_file() else ""
    except (OSError, UnicodeDecodeError):
        return None
    return path / text.removeprefix("gitdir: ").strip() if text else path / ".git"


def _git(path: Path) -> git.Git:
    command = git.Git(path)
    command.set_persistent_git_options(no_optional_locks=True)
    command.update_environment(GIT_TERMINAL_PROMPT="0", GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull)
    return command


def _parse_status(text: str) -> tuple[str | None, str | None, tuple[str, ...]]:
    branch = head = None
    dirty: list[str] = []
    parts = iter(text.split("\0"))
    for part in parts:
        if part.startswith("# branch.oid "):
            head = part.removeprefix("# branch.oid ")
        elif part.startswith("# branch.head "):
            branch = part.removeprefix("# branch.head ")
        elif part.startswith("1 "):
            dirty.append(part.split(" ", 8)[8])
        elif part.startswith("2 "):
            dirty.append(part.split(" ", 9)[9])
            next(parts, None)  # the name before the renaming follows as a part of its own
        elif part.startswith("u "):
            dirty.append(part.split(" ", 10)[10])
        elif part.startswith("? "):
            dirty.append(part[2:])
    return branch, head, tuple(dirty)


def is_half_written(path: Path) -> bool:
    """Whether a changed file lacks the line that every finished tool call ends it with."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 200))
            return _END.search(file.read()) is None
    except OSError:
        return True  # gone or unreadable although git lists it as changed: not a finished write


def locks(path: Path) -> tuple[dict[str, Any], ...]:
    """Lock files in the worktree's own git directory, with the pids that hold them open."""
    gitdir = _gitdir(path)
    try:
        found = sorted(gitdir.glob("*.lock")) if gitdir is not None else []
    except OSError:
        return ()
    if not found:
        return ()
    # git closes a lock file just before it renames it: only what is still there at a second look was left behind.
    time.sleep(_LOCK_SETTLES_S)
    left = []
    for lock in found:
        holder = _holder(lock)
        if lock.exists():
            left.append({"path": str(lock), "pid": holder, "alive": holder is not None})
    return tuple(left)


def _holder(lock: Path) -> int | None:
    """A living process that has the lock file open; git keeps it open while it works."""
    for entry in os.scandir("/proc") if Path("/proc").is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            for descriptor in os.scandir(f"/proc/{entry.name}/fd"):
                if Path(descriptor.path).readlink() == lock:
                    return int(entry.name)
        except OSError:
            continue  # it ended meanwhile, or is not ours to look into
    return None


def refs(path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """All refs of a repository (name to sha) and the messages of its stash entries."""
    command = _git(path)
    listing = command.for_each_ref("--format=%(refname) %(objectname)")
    found = dict(line.split(" ", 1) for line in listing.splitlines())
    stashes = command.stash("list").splitlines() if "refs/stash" in found else []
    return found, tuple(stashes)


def describe(path: Path) -> str:
    """Text for the evidence folder: status, log and refs of a repository or worktree, as git prints them."""
    command = _git(path)
    parts = []
    for title, words in (
        ("git status", ("status", "--short", "--branch")),
        ("git log", ("log", "--oneline", "-n", "30")),
        ("git diff --stat", ("diff", "--stat")),
    ):
        try:
            out = command.execute(["git", "--no-optional-locks", *words], kill_after_timeout=_BOUND_S)
        except git.GitCommandError as error:
            out = f"(failed: {str(error.stderr).strip()})"
        parts.append(f"$ {title}\n{out}\n")
    return "\n".join(parts)
