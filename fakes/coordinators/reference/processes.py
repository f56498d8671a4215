"""Processes of one run: spawn, adopt, look, signal. Through pidfds, never by name and never by a bare pid.

A pid is a name that the kernel gives away again. So each process is held by a pidfd that was opened when
the process was certainly ours: a child before anybody can reap it; a foreign process before its start time
is compared, because the comparison is only worth something if the pid cannot change hands after it.
"""

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence

from fakes.coordinators.reference.ports import PortError, Process


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat (proc(5)): the start, in clock ticks since boot; None if gone."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


class Processes:
    """The processes that this coordinator holds, by (pid, ticks)."""

    def __init__(self) -> None:
        self._held: dict[Process, int] = {}
        self._children: dict[Process, subprocess.Popen[bytes]] = {}

    def launch(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, log: str) -> Process:
        """Start a program in its own session, its output in a file: it needs nothing of ours to live."""
        try:
            with open(log, "ab") as out:
                child = subprocess.Popen(
                    argv,
                    env=env,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
        except OSError as why:
            raise PortError(f"could not start {argv[:1]} in {cwd}: {why}") from why
        fd = os.pidfd_open(child.pid)
        process = Process(child.pid, start_ticks(child.pid) or 0)
        self._held[process] = fd
        self._children[process] = child
        return process

    def adopt(self, process: Process) -> bool:
        """Hold a process that we did not start; False when it is gone or its pid belongs to another one."""
        if process in self._held:
            return self.alive(process)
        try:
            fd = os.pidfd_open(process.pid)
        except (OSError, ValueError):
            return False
        if start_ticks(process.pid) != process.ticks:
            os.close(fd)
            return False
        self._held[process] = fd
        return self.alive(process)

    def alive(self, process: Process) -> bool:
        """Whether it still runs. A zombie does not."""
        fd = self._held.get(process)
        if fd is None:
            return False
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(0):
            return True
        if process in self._children:
            self._children[process].poll()  # reaps it
        return False

    def signal(self, process: Process, name: str) -> bool:
        """Send a signal through the pidfd; False when nobody receives it."""
        if not self.alive(process):
            return False
        try:
            signal.pidfd_send_signal(self._held[process], signal.Signals[name])
        except ProcessLookupError:
            return False
        return True

    def descendants(self, process: Process) -> tuple[Process, ...]:
        """What lives below a living process, as far as its parents still live; each is held from now on."""
        if not self.alive(process):
            return ()
        below: list[Process] = []
        families = _families()
        parents = [process.pid]
        while parents:
            for pid in families.get(parents.pop(), ()):
                found = Process(pid, start_ticks(pid) or 0)
                if self.adopt(found):
                    below.append(found)
                    parents.append(pid)
        return tuple(below)


def _families() -> dict[int, list[int]]:
    families: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields:
                families.setdefault(int(fields[1]), []).append(int(name))
    return families


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the third on; the second may hold blanks and brackets."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
