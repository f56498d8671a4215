"""Git for the coordinator: branches, worktrees, tags, squashes, pushes. Nothing here deletes, resets or
stashes.

What changes the repository happens one command after another: `git worktree add` in parallel fails now and
then, and refs have locks. Looking at worktrees takes no locks, so that it disturbs neither a worker nor the
evidence.
"""

import asyncio
import os
import subprocess

from fakes.coordinators.reference.ports import PortError

WITHIN_S = 30.0
TRIES = 3

# Used where the environment names nobody; git's own GIT_AUTHOR_* variables are stronger.
_WHO = ("-c", "user.name=coordinator", "-c", "user.email=coordinator@stopdrill.invalid")


class Git:
    """The coordinator's clone at `repo`, its `base` branch, and the origin that it pushes to."""

    def __init__(self, repo: str, origin: str, base: str) -> None:
        self._repo, self._origin, self._base = repo, origin, base
        self._one_at_a_time = asyncio.Lock()

    async def add_worktree(self, branch: str, worktree: str) -> None:
        """Make the branch and its worktree where they are missing. Raises PortError after three tries."""
        for attempt in range(1, TRIES + 1):
            if _is_worktree(worktree):
                return
            known = await self._exists(f"refs/heads/{branch}")
            what = [worktree, branch] if known else ["-b", branch, worktree, self._base]
            try:
                await self.git("worktree", "add", "--quiet", *what)
            except PortError:
                if attempt == TRIES:
                    raise

    async def tag(self, name: str, branch: str) -> None:
        """Tag the head of a branch; a tag that exists is left where it is."""
        if not await self._exists(f"refs/tags/{name}"):
            await self.git("tag", name, f"refs/heads/{branch}")

    async def squash(self, branch: str, onto: str, message: str) -> str:
        """The branch's tree as one commit on the commit that the branch came from; returns its sha."""
        parent = await self.git("merge-base", self._base, f"refs/heads/{branch}")
        tree = await self.git("rev-parse", f"refs/heads/{branch}^{{tree}}")
        head = await self.git("commit-tree", tree, "-p", parent, "-m", message)
        await self.git("update-ref", f"refs/heads/{onto}", head)
        return head

    async def push(self, ref: str) -> None:
        """Push `ref`, or `from:to`, to the origin."""
        await self.git("push", "--quiet", self._origin, ref if ":" in ref else f"{ref}:{ref}")

    async def dirty_files(self, worktree: str) -> list[str] | None:
        """Paths that differ from HEAD or are untracked; [] for a worktree never made; None if git fails."""
        if not _is_worktree(worktree):
            return []
        try:
            out = await _run(worktree, "--no-optional-locks", "status", "--porcelain", "-z", "--no-renames")
        except PortError:
            return None
        return [line[3:] for line in out.split("\0") if line]

    async def _exists(self, ref: str) -> bool:
        return bool(await self.git("for-each-ref", "--format=%(refname)", ref))

    async def git(self, *args: str) -> str:
        """One git command in the clone, after those before it; its output without the last line feed."""
        async with self._one_at_a_time:
            return (await _run(self._repo, *_WHO, *args)).rstrip("\n")


def _is_worktree(path: str) -> bool:
    return os.path.exists(os.path.join(path, ".git"))


async def _run(where: str, *args: str) -> str:
    """Raises PortError with git's own words when it fails or takes more than 30 s."""
    return await asyncio.to_thread(_run_blocking, where, args)


def _run_blocking(where: str, args: tuple[str, ...]) -> str:
    argv = ["git", "-C", where, *args]
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise PortError(f"{' '.join(argv)}: {why}") from why
    if done.returncode:
        raise PortError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout
