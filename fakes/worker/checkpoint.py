"""Checkpoints: the worker's own git, one short command at a time.

Every command is bounded. Automatic garbage collection is off, because git would detach it and it would be
found as an orphan of the run; signing and hooks are off, because they would start what the user configured
for himself.
"""

import os
import re
import select
import time

from fakes.worker.children import Child

COMMAND_S_MAX = 20.0
COMMIT_TRIES = 3
_CONFIG = ["gc.auto=0", "maintenance.auto=false", "commit.gpgsign=false", "core.hooksPath=/dev/null"]


class GitError(Exception):
    """A git command that the worker depends on failed. The message names it."""


class Git:
    """Git in the current directory, on behalf of one task."""

    def __init__(self, child: Child, task: str) -> None:
        self._child = child
        self._task = task
        self._argv = ["git"]
        for setting in (*_CONFIG, f"user.name={task}", f"user.email={task}@stopdrill.invalid"):
            self._argv += ["-c", setting]

    def run(self, *args: str, within_s: float = COMMAND_S_MAX) -> int:
        """The exit status; 124 when the command was ended because it took longer than `within_s`."""
        self._child.spawn(f"git {args[0]}", [*self._argv, *args])
        return self._status(within_s)

    def output(self, *args: str, within_s: float = COMMAND_S_MAX) -> tuple[int, bytes]:
        """Exit status and standard output."""
        deadline = time.monotonic() + within_s
        reading, writing = os.pipe2(os.O_CLOEXEC)
        self._child.spawn(f"git {args[0]}", [*self._argv, *args], stdout=writing)
        os.close(writing)
        poll, found = select.poll(), b""
        poll.register(reading, select.POLLIN)
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            data = os.read(reading, 65536)
            if not data:
                break
            found += data
        os.close(reading)
        return self._status(deadline - time.monotonic()), found

    def _status(self, within_s: float) -> int:
        status = self._child.wait(within_s)
        if status is None:
            self._child.end(15, 1.0)
            self._child.end(9, 1.0)
            return 124
        return status

    def last_wip(self, base: str) -> int:
        """The step of the last `wip: <task> <step>` commit of this branch; 0 when there is none."""
        grep = f"^wip: {re.escape(self._task)} [0-9]+$"
        args = ("log", "-1", "--format=%s", "-E", f"--grep={grep}", f"{base}..HEAD", "--")
        status, subject = self.output(*args)
        if status:
            raise GitError(f"git log {base}..HEAD failed with status {status} in {os.getcwd()}")
        return int(subject.split()[-1]) if subject.strip() else 0

    def committed(self, path: str) -> bytes | None:
        """The file's text in HEAD, or None when it isn't there."""
        status, text = self.output("cat-file", "blob", f"HEAD:./{path}")
        return None if status else text

    def commit(self, step: int, new_files: list[str]) -> None:
        """`wip: <task> <step>` with every change of a tracked file and these new ones. Raises GitError."""
        # A user's ignore rules must not decide whether a checkpoint is complete, hence --force.
        if new_files and (status := self.run("add", "--force", "--", *new_files)):
            raise GitError(f"git add failed with status {status} in {os.getcwd()}")
        status = 0
        for _ in range(COMMIT_TRIES):
            # Empty ones too: a step that came to the same content again is done all the same.
            status = self.run("commit", "-qam", f"wip: {self._task} {step}", "--no-verify", "--allow-empty")
            if not status:
                return
            time.sleep(0.05)  # another git may hold a lock for a moment
        raise GitError(f"git commit failed {COMMIT_TRIES} times, last status {status}, in {os.getcwd()}")

    def push(self, refspec: str) -> int:
        """Push to the origin; the exit status."""
        return self.run("push", "-q", "origin", refspec)
