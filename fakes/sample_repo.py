"""What the workers work on: a sample repository, or a throwaway copy of a user's own.

The sample is a dependency migration: packages with pinned versions that all have to move. Its content, author
and date are fixed, so that its commit has the same id on every machine.
A user's repository is only ever read, through git's own transport, and nothing of it is executed.
Runs in the driver's process, not in the subject's tree.
"""

from dataclasses import dataclass
from pathlib import Path

from fakes.origin import MAIN, RepoError, copy_head, git

FILE_BYTES_MAX = 64 * 1024
FILES_PER_TASK_MAX = 8

_NAMES = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "juniper",
    "kestrel",
    "larch",
    "maple",
    "nectar",
    "otter",
    "poplar",
    "quartz",
    "raven",
    "sorrel",
    "tundra",
    "umber",
    "violet",
    "willow",
    "yarrow",
]
_NOBODY = {
    "GIT_AUTHOR_NAME": "stopdrill",
    "GIT_AUTHOR_EMAIL": "sample@stopdrill.invalid",
    "GIT_AUTHOR_DATE": "2026-01-05T09:00:00+0000",
    "GIT_COMMITTER_NAME": "stopdrill",
    "GIT_COMMITTER_EMAIL": "sample@stopdrill.invalid",
    "GIT_COMMITTER_DATE": "2026-01-05T09:00:00+0000",
}


@dataclass(frozen=True)
class Task:
    """A task of the plan: its id (t01 …), a title, and the files that its worker edits."""

    id: str
    title: str
    files: tuple[str, ...]


def task_id(number: int) -> str:
    """The id of the n-th task, counted from 1: t01, t02 …, t100."""
    return f"t{number:02d}"


def generate(path: Path, packages: int = 16) -> str:
    """Make the sample repository at `path`, which must not exist yet; returns its only commit's id."""
    path.mkdir(parents=True)
    for number in range(1, packages + 1):
        package = path / "packages" / f"p{number:02d}"
        package.mkdir(parents=True)
        (package / "deps.lock").write_text(_lock(number), encoding="ascii")
        (package / "pyproject.toml").write_text(_manifest(number), encoding="ascii")
    (path / "README.md").write_text(_readme(packages), encoding="ascii")
    git("init", "-q", "--template=", "--object-format=sha1", "-b", "main", ".", cwd=path)
    git("add", "-A", cwd=path)
    git("commit", "-q", "--no-verify", "-m", f"{packages} packages on 3.x", cwd=path, env=_NOBODY)
    return git("rev-parse", "HEAD", cwd=path).decode().strip()


def _lock(number: int) -> str:
    pins = [f"{name}=={3}.{(number + place) % 10}.{place % 7}" for place, name in enumerate(_NAMES)]
    return "\n".join(pins) + "\n"


def _manifest(number: int) -> str:
    needed = ", ".join(f'"{name}>=3,<4"' for name in _NAMES[number % 6 :: 6])
    return f'[project]\nname = "p{number:02d}"\nversion = "1.{number}.0"\ndependencies = [{needed}]\n'


def _readme(packages: int) -> str:
    return (
        "# Sample workspace\n\n"
        f"{packages} packages that still depend on 3.x releases. The task: move every pin in every\n"
        "`deps.lock` to 4.0.0, one package at a time. Generated for a drill; nobody depends on it.\n"
    )


def tasks(packages: int, n: int) -> list[Task]:
    """The first `n` tasks of the sample, one for each package. ValueError when there are fewer packages."""
    if not 1 <= n <= packages:
        raise ValueError(f"{n} tasks need {n} packages, and the sample has {packages}: ask for 1 to {packages}")
    return [
        Task(task_id(number), f"Move packages/p{number:02d} to 4.0.0", (f"packages/p{number:02d}/deps.lock",))
        for number in range(1, n + 1)
    ]


def clone_user_repo(path: Path, origin_path: Path) -> str:
    """Copy the HEAD of the user's repository `path` to the new bare repository `origin_path`, as main.

    Returns the commit. `path` may be bare, shallow, dirty or a linked worktree; only what is committed is
    copied. Raises RepoError when it is no repository or has no commit yet.
    """
    if not path.is_dir():
        raise RepoError(f"{path} is not a folder: name the top folder of a git repository")
    if not ((path / ".git").exists() or (path / "HEAD").is_file()):
        raise RepoError(f"{path} is not a git repository: name the folder that holds .git, or a bare repository")
    try:
        return copy_head(origin_path, path)
    except RepoError as error:
        if "couldn't find remote ref HEAD" in str(error):
            raise RepoError(f"{path} has no commit on its current branch: commit something first") from error
        raise RepoError(f"{path} can't be copied: {error}. Does `git log` work there?") from error


def tasks_for_repo(clone: Path, n: int) -> list[Task]:
    """Deal the small tracked text files of `clone` to `n` tasks, round robin.

    Where there are fewer files than tasks, a task gets a new file of its own, stopdrill/<task>.txt.
    """
    files = _text_files(clone, n * FILES_PER_TASK_MAX)
    dealt = [tuple(files[number::n]) for number in range(n)]
    return [Task(task_id(k), _title(mine), mine or (_new(k),)) for k, mine in enumerate(dealt, 1)]


def _title(files: tuple[str, ...]) -> str:
    if not files:
        return "Add a file"
    return f"Edit {files[0]}" if len(files) == 1 else f"Edit {files[0]} and {len(files) - 1} more"


def _new(number: int) -> str:
    return f"stopdrill/{task_id(number)}.txt"


def _text_files(clone: Path, enough: int) -> list[str]:
    """Up to `enough` paths. Links and submodules are left out, and files that steer git itself."""
    found: list[str] = []
    for entry in git("ls-tree", "-r", "-l", "-z", MAIN, cwd=clone).split(b"\0")[:-1]:
        about, _, raw = entry.partition(b"\t")
        mode, _, blob, size = about.decode().split()
        if mode not in ("100644", "100755") or int(size) > FILE_BYTES_MAX:
            continue
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            continue  # the plan is JSON, which could not carry this name
        if name.rpartition("/")[2].startswith(".git"):
            continue
        if b"\0" not in git("cat-file", "blob", blob, cwd=clone):
            found.append(name)
        if len(found) == enough:
            break
    return found
