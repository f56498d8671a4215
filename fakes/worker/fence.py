"""The fence: a simulated worker edits, commits and half-writes files, so it works only inside its run's directory.

Without it, an adapter or a script that starts its workers in the wrong folder would let them loose on the user's own
files. Nothing is imported but what is built into the interpreter, because shims ask too.
"""

import posix

_DEPTH_MAX = 64


def outside(events: str) -> str | None:
    """Why the current folder is no place to work in; None when it is below the run that `events` belongs to."""
    run = events.rstrip("/").rpartition("/")[0] or "/"
    try:
        wanted, here = _place(run), _place(".")
        path = "."
        for _ in range(_DEPTH_MAX):
            if here == wanted:
                return None
            path += "/.."
            above = _place(path)
            if above == here:  # the root is its own parent
                break
            here = above
    except OSError as error:
        return f"this folder can't be told from others: {error}"
    return (
        f"{posix.getcwd()} is outside of the run ({run}). A simulated worker changes files, so it works only in the"
        " run's own clone and worktrees: start it there (in a subject file: cwd, {repo} or {worktrees})"
    )


def _place(path: str) -> tuple[int, int]:
    found = posix.stat(path)
    return found.st_dev, found.st_ino
