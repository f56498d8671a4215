"""Process file descriptors: the only handle on a process that a recycled pid cannot fool.

What the kernel offers and Python 3.11 does not wrap is done here: the exit status of a process that somebody
else reaps (`PIDFD_GET_INFO`, Linux 6.15 and later; see ioctl_pidfd(2)) and becoming a child subreaper
(prctl(2)). Where the kernel is too old, the answer is "unknown", never a guess.
"""

import ctypes
import errno
import fcntl
import os
import select
import signal
import struct
from typing import NamedTuple

from . import procfs

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_INFO_SIZE = 64
_GET_INFO = 3 << 30 | _INFO_SIZE << 16 | 0xFF << 8 | 11  # _IOWR(0xFF, 11, struct pidfd_info)
_INFO_PID, _INFO_EXIT = 1 << 0, 1 << 3


class Exit(NamedTuple):
    """How a process ended; both None where the kernel does not tell."""

    status: int | None
    signal: int | None


UNKNOWN = Exit(None, None)


def become_subreaper() -> bool:
    """Make orphans among our descendants our children; False where the kernel refuses."""
    return bool(_LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def die_with_parent() -> None:
    """Have the kernel SIGKILL the caller when its parent dies. Survives exec; children do not inherit it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def open_pid(pid: int) -> int | None:
    """A pidfd; None when there is no such process. Raises OSError when descriptors ran out."""
    try:
        return os.pidfd_open(pid)
    except (ProcessLookupError, ValueError):
        return None
    except OSError as error:
        # The pid is a thread's, not a process's: not ours to watch. EINVAL on older kernels, ENOENT on newer.
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def send(fd: int, number: int) -> bool:
    """Send a signal through a pidfd; False when the process is gone or may not be signalled."""
    try:
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_reaped(fd: int) -> bool:
    """True once the process has been waited for, so that its pid may belong to another one."""
    try:
        signal.pidfd_send_signal(fd, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # alive or a zombie, of another user
    return False


def is_dead(fd: int) -> bool:
    """True when the whole process has ended, reaped or not; a leader that left its threads has not."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def reap(fd: int, pid: int) -> tuple[Exit, bool]:
    """How a dead process ended, and whether it is reaped. Waits for it when it is a child of ours."""
    try:
        result = os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return exit_of_other(fd, pid), is_reaped(fd)
    if result is None:
        return UNKNOWN, False
    if result.si_code == os.CLD_EXITED:
        return Exit(result.si_status, None), True
    return Exit(None, result.si_status), True


def let_go(fd: int) -> bool:
    """Whether a dead process is reaped by now; does it, when the death of its parent made it our child."""
    try:
        return os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG) is not None
    except ChildProcessError:
        return is_reaped(fd)


def exit_of_other(fd: int, pid: int) -> Exit:
    """How somebody else's child ended: from its pidfd once it is reaped, from its stat line before."""
    code = _info_code(fd)
    if code is None:
        stat = procfs.read_stat(pid)
        if stat is not None and stat.state in "ZX" and not is_reaped(fd):
            code = stat.exit_code
        else:
            code = _info_code(fd)  # because its parent may have reaped it between the two looks
    return UNKNOWN if code is None else _decode(code)


def _info_code(fd: int) -> int | None:
    info = bytearray(_INFO_SIZE)
    struct.pack_into("Q", info, 0, _INFO_PID | _INFO_EXIT)
    try:
        fcntl.ioctl(fd, _GET_INFO, info)
    except OSError:
        return None  # an old kernel, or not reaped yet
    if not struct.unpack_from("Q", info)[0] & _INFO_EXIT:
        return None
    return int(struct.unpack_from("i", info, _INFO_SIZE - 4)[0])


def _decode(code: int) -> Exit:
    if os.WIFSIGNALED(code):
        return Exit(None, os.WTERMSIG(code))
    return Exit(os.WEXITSTATUS(code), None)


def tells_exit() -> bool:
    """Whether this kernel tells how a reaped process ended; tried on a child of our own."""
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    fd = os.pidfd_open(pid)
    try:
        os.waitpid(pid, 0)
        return _info_code(fd) == 3 << 8
    finally:
        os.close(fd)
