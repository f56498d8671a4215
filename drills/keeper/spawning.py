"""Starting a program as a child of the keeper, with nothing inherited that it was not given.

An own session, so that neither a terminal's Ctrl-C nor the death of a process group reaches it; every signal
at its default, because a background job inherits an ignored SIGINT and Python ignores SIGPIPE; only the three
standard descriptors; the cgroup entered before exec, so that not one of its children is born outside.
"""

import os
import resource
import select
import signal
from dataclasses import dataclass
from typing import NoReturn

from . import pidfd
from .cgroup import Cgroup

HEAR_S = 3.0  # for fork, setsid, opening three files and exec


class SpawnError(Exception):
    """The program could not be started; the text says why."""


@dataclass(frozen=True)
class Command:
    """What to start. `stdout` and `stderr` are files to append to."""

    name: str
    role: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdout: str
    stderr: str


def start(command: Command, cgroup: Cgroup | None, files_limit: tuple[int, int]) -> int:
    """Fork and execute; the pid once the program runs. Raises SpawnError, and then nothing is left of it."""
    hear, tell = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(hear)
        os.close(tell)
        raise SpawnError(f"cannot start {command.name}: fork: {error.strerror}") from error
    if pid == 0:
        _become(command, cgroup, files_limit, tell)
    os.close(tell)
    problem = _hear(hear)
    os.close(hear)
    if problem:
        # Our own child, not waited for yet: its pid cannot belong to anybody else.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise SpawnError(f"cannot start {command.name}: {problem}")
    return pid


def _hear(fd: int) -> str:
    """What went wrong; empty when the pipe was closed by exec."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(HEAR_S * 1000):
        return f"it did not get as far as exec within {HEAR_S:g} s"
    return os.read(fd, 4096).decode("utf-8", "replace")


def _become(
    command: Command, cgroup: Cgroup | None, files_limit: tuple[int, int], tell: int
) -> NoReturn:  # pragma: no cover (runs in the child)
    doing = "setsid"
    try:
        os.setsid()
        doing = "enter the cgroup"
        if cgroup is not None:
            cgroup.enter()
        if command.role == "service":
            pidfd.die_with_parent()  # the last resort, because a service is in no cgroup of ours
        doing = "give it its signals"
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        resource.setrlimit(resource.RLIMIT_NOFILE, files_limit)
        for fd, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, command.stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (2, command.stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ):
            doing = f"open {path}"
            os.dup2(os.open(path, flags, 0o644), fd)
        doing = f"enter the folder {command.cwd}"
        os.chdir(command.cwd)
        doing = f"execute {command.argv[0]}"
        os.execvpe(command.argv[0], command.argv, command.env)
    except BaseException as error:
        why = getattr(error, "strerror", None) or repr(error)
        os.write(tell, f"{doing}: {why}".encode()[:4096])
    finally:
        os._exit(127)
