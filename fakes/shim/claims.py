"""Who is which attempt at which task: one small file for each attempt, made atomically and never changed.

`shim/TASK@ATTEMPT` holds the worker's pid and the tick at which it started, so that a recycled pid is not taken for
it. A claim comes into being as a whole, by a hard link, so that two shims that start at once get two attempts
without waiting for each other: a lock could be held by a shim that somebody froze.
"""

import posix

from fakes.shim.identity import read


class Claim:
    """One attempt at one task. `new`: it was made just now, not by an earlier shim of the same worker."""

    __slots__ = ("attempt", "new", "task")

    def __init__(self, task: str, attempt: int, new: bool) -> None:
        self.task = task
        self.attempt = attempt
        self.new = new


class Claims:
    """The claims in one folder, on behalf of one worker: `me` is its pid and the tick of its start."""

    def __init__(self, folder: str, me: str) -> None:
        self._folder, self._me = folder, me
        self._draft = f"{folder}/.{posix.getpid()}"

    def take(self, task: str, at_least: int, again: bool) -> Claim:
        """The next attempt at this task, `at_least` this one; with `again` the one that this worker has already."""
        taken = self._attempts().get(task, [])
        if again and taken and self._holds(task, taken[-1]):
            return Claim(task, taken[-1], False)
        attempt = max([at_least - 1, *taken]) + 1
        while not self._make(task, attempt):
            if again and self._holds(task, attempt):
                return Claim(task, attempt, False)
            attempt += 1
        return Claim(task, attempt, True)

    def guess(self, tasks: list[str], again: bool) -> Claim | None:
        """The first task that nobody has taken; with `again` the one that this worker has already."""
        taken = self._attempts()
        if again:
            for task in tasks:
                if task in taken and self._holds(task, taken[task][-1]):
                    return Claim(task, taken[task][-1], False)
        for task in tasks:
            if task not in taken and self._make(task, 1):
                return Claim(task, 1, True)
        return None

    def _attempts(self) -> dict[str, list[int]]:
        try:
            names = posix.listdir(self._folder)
        except FileNotFoundError:
            return {}
        found: dict[str, list[int]] = {}
        for name in names:
            task, at, attempt = name.rpartition("@")
            if at and attempt.isdigit():
                found.setdefault(task, []).append(int(attempt))
        for attempts in found.values():
            attempts.sort()
        return found

    def _holds(self, task: str, attempt: int) -> bool:
        return read(f"{self._folder}/{task}@{attempt}") == self._me

    def _make(self, task: str, attempt: int) -> bool:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC
        try:
            file = posix.open(self._draft, flags, 0o644)
        except FileNotFoundError:
            _make_folder(self._folder)
            file = posix.open(self._draft, flags, 0o644)
        posix.write(file, self._me.encode())
        posix.close(file)
        try:
            posix.link(self._draft, f"{self._folder}/{task}@{attempt}")
            return True
        except FileExistsError:
            return False
        finally:
            posix.unlink(self._draft)


def _make_folder(folder: str) -> None:
    try:
        posix.mkdir(folder, 0o755)
    except FileExistsError:
        pass  # another shim was first
