"""Reading /proc: the few facts about a process that the keeper needs, each None when the process is gone.

A pid read from here is only a hint until a pidfd is held (see `watch`). Environments are read for
names and for three ids of the run; the value of a credential is never kept.
"""

import os
from typing import NamedTuple

PF_FORKNOEXEC = 0x40  # sched.h: forked, and has not called exec since

_ENVIRON_MAX = 1 << 20
_CMDLINE_MAX = 2_048
_CRED_WORDS = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL")
_CRED_OURS = "STOPDRILL_TOKEN"  # the harness put it there itself
_CRED_NAMES_MAX, _NAME_MAX = 50, 100


class Stat(NamedTuple):
    """What matters of proc_pid_stat(5): `start_ticks` is field 22, `start_stack` 28, `exit_code` 52."""

    comm: str
    state: str
    ppid: int
    pgid: int
    sid: int
    flags: int
    start_ticks: int
    start_stack: int
    exit_code: int


class Environment(NamedTuple):
    """What an environment says about the run, and the names in it that look like credentials."""

    run: str | None = None
    task: str | None = None
    attempt: int | None = None
    cred_names: tuple[str, ...] = ()


def read_file(path: str, limit: int = 65_536) -> bytes | None:
    """A whole small file, or None when it cannot be read (gone, or not permitted)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []
        while limit > 0 and (part := os.read(fd, limit)):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    except OSError:
        return None  # ESRCH: the process ended between open and read
    finally:
        os.close(fd)


def read_stat(pid: int | str) -> Stat | None:
    """The stat line of a process."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(fd, 4_096)  # one read: the line is made in one piece
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name may hold blanks and brackets, because a process chooses it itself: the last bracket ends it.
    name, _, rest = line.partition(b"(")[2].rpartition(b")")
    f = rest.split()
    state, code = f[0].decode(), int(f[49]) if len(f) > 49 else 0
    text = name.decode("utf-8", "replace")
    return Stat(text, state, int(f[1]), int(f[2]), int(f[3]), int(f[6]), int(f[19]), int(f[25]), code)


def read_cmdline(pid: int) -> tuple[str, ...]:
    """Its arguments, cut to about 2 kB in all; empty for a zombie and a kernel thread."""
    data = read_file(f"/proc/{pid}/cmdline", _CMDLINE_MAX) or b""
    text = data.decode("utf-8", "replace").rstrip("\0")
    return tuple(text.split("\0")) if text else ()


def read_environment(pid: int) -> Environment:
    """The ids of the run and the credential names; all empty where it cannot be read."""
    data = read_file(f"/proc/{pid}/environ", _ENVIRON_MAX) or b""
    ids: dict[str, str] = {}
    creds: list[str] = []
    for entry in data.decode("utf-8", "replace").split("\0"):
        name, _, value = entry.partition("=")
        if name in ("RUN_ID", "TASK_ID", "ATTEMPT"):
            ids.setdefault(name, value[:_NAME_MAX])
        elif name != _CRED_OURS and any(word in name.upper() for word in _CRED_WORDS):
            creds.append(name[:_NAME_MAX])
    attempt = ids.get("ATTEMPT", "")
    return Environment(
        ids.get("RUN_ID") or None,
        ids.get("TASK_ID") or None,
        int(attempt) if attempt.isascii() and attempt.isdigit() else None,
        tuple(sorted(set(creds))[:_CRED_NAMES_MAX]),
    )


def read_cwd(pid: int) -> str | None:
    """Its working directory."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def read_uid(pid: int) -> int | None:
    """Its effective user; root's for a process that forbids being looked at."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def read_cgroup(pid: int | str) -> str | None:
    """Its path in the unified hierarchy, as our own cgroup namespace shows it."""
    data = read_file(f"/proc/{pid}/cgroup") or b""
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def parents() -> dict[int, int]:
    """Every process of the machine and its parent: for the warden, which knows nothing beforehand."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := read_stat(name)) is not None:
            found[int(name)] = stat.ppid
    return found
