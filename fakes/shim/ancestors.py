"""Which process runs the loop that calls a shim once for each step: the nearest ancestor that isn't made for one call.

Made for one call are programs that wrap one (`timeout`), and the subshells that a shell forks for brackets around it,
`(cd tree && claude …)`. A subshell may as well be the loop itself, `work() { while …; }; work &`; but shells let those
that run beside them ignore the signals of the keyboard, and those that they wait for not.
"""

import posix

from fakes.shim.identity import read

WRAPPERS = ("timeout", "time", "flock", "setsid", "script")
SHELLS = ("bash", "sh", "dash", "ash", "zsh", "ksh", "mksh", "busybox")
DEPTH_MAX = 16
_PPID, _FLAGS, _START = 1, 6, 19  # counted from the state, which follows the name
_FORKED = 0x40  # PF_FORKNOEXEC
_INT, _QUIT = 0x2, 0x4  # SIGINT and SIGQUIT in a mask of signals


def loop_above() -> int:
    """The pid of the process that runs the loop."""
    pid = posix.getppid()
    for _ in range(DEPTH_MAX):
        name, fields = _stat(pid)
        if len(fields) <= _START:
            break
        parent = int(fields[_PPID])
        if name not in WRAPPERS and not (int(fields[_FLAGS]) & _FORKED and _brackets(pid, parent)):
            break
        pid = parent
    return pid


def start_of(pid: int) -> str:
    """The tick at which a process started, which tells it from another one with its pid."""
    fields = _stat(pid)[1]
    return fields[_START] if len(fields) > _START else "?"


def _brackets(pid: int, parent: int) -> bool:
    """Whether this child of a shell is one that the shell waits for."""
    try:
        program = posix.readlink(f"/proc/{pid}/exe").rpartition("/")[2]
    except OSError:
        return False
    # A program that forks its workers, as Python's multiprocessing does, has the same look otherwise.
    if program == "bash":
        # Bash itself ignores SIGQUIT, and whom it waits for gets back what bash was started with. SIGINT tells
        # less: a function in the background catches it.
        return not _ignored(pid) & _QUIT
    # Others let a subshell inherit what its parent ignores.
    return program in SHELLS and _ignored(pid) & _INT == _ignored(parent) & _INT


def _ignored(pid: int) -> int:
    mask = read(f"/proc/{pid}/status").partition("SigIgn:")[2].split(None, 1)
    return int(mask[0], 16) if mask else 0


def _stat(pid: int) -> tuple[str, list[str]]:
    name, _, rest = read(f"/proc/{pid}/stat").partition("(")[2].rpartition(")")
    return name, rest.split()
