"""The run's cgroup (version 2): children are born into it, and one write kills all of it.

It is a help, not the truth: a process may move itself out, and without root there often is none. Then the
tree below the subreaper must do, and `keeper.begin` says why (`cgroup_why`).
"""

import os

from . import procfs


class Cgroup:
    """One cgroup directory of ours. `path` is the directory, `inside` its path in the hierarchy."""

    def __init__(self, path: str, inside: str) -> None:
        self.path = path
        self.inside = inside
        self._raw = b""
        self._members: frozenset[str] = frozenset()
        self._procs_fd = os.open(os.path.join(path, "cgroup.procs"), os.O_RDWR | os.O_CLOEXEC)

    def members(self) -> frozenset[str]:
        """The pids in it, as text. Processes in nested groups are not listed: the tree scan sees those."""
        os.lseek(self._procs_fd, 0, os.SEEK_SET)
        parts = []
        # The kernel hands out a page at a time, however much is asked for.
        while part := os.read(self._procs_fd, 1 << 16):
            parts.append(part)
        raw = b"".join(parts)
        if raw != self._raw:  # mostly it is the same, and a thousand small strings cost as much as the read
            self._raw, self._members = raw, frozenset(raw.decode().split())
        return self._members

    def holds(self, pid: int | str) -> bool:
        """Whether the process is in it, or in a group nested in it."""
        where = procfs.read_cgroup(pid)
        return where is not None and (where == self.inside or where.startswith(self.inside + "/"))

    def enter(self) -> None:
        """Move the calling process into it (between fork and exec)."""
        os.write(self._procs_fd, b"0")

    def kill(self) -> None:
        """SIGKILL everything in it and in nested groups, at once, forks in progress included (Linux 5.14)."""
        try:
            fd = os.open(os.path.join(self.path, "cgroup.kill"), os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return  # an older kernel, or removed already: the pidfds do it
        try:
            os.write(fd, b"1")
        except OSError:
            pass  # as above: whoever is left is killed through its pidfd
        finally:
            os.close(fd)

    def remove(self) -> bool:
        """Remove it and what the subject nested in it; False while something lives in there."""
        for folder, _, _ in os.walk(self.path, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


def make(run: str) -> tuple[Cgroup | None, str]:
    """Make `stopdrill.<run>` below our own cgroup and try it out: the group or None, and why."""
    mount, own = _mount(), procfs.read_cgroup("self")
    if mount is None or own is None or "/.." in own:
        return None, "no cgroup v2 hierarchy is mounted where this process can see its own place in it"
    inside = f"{own.rstrip('/')}/stopdrill.{run}"
    path = mount + inside
    try:
        os.mkdir(path)
    except OSError as error:
        return None, f"cannot make {path}: {error.strerror}"
    try:
        group = Cgroup(path, inside)
    except OSError as error:
        os.rmdir(path)
        return None, f"cannot open {path}/cgroup.procs: {error.strerror}"
    problem = _try(group)
    if problem:
        group.remove()
        return None, problem
    return group, "made below the keeper's own cgroup"


def _mount() -> str | None:
    """Where the whole unified hierarchy is mounted, as seen from our cgroup namespace."""
    data = procfs.read_file("/proc/self/mountinfo", 1 << 20) or b""
    for line in data.decode("utf-8", "replace").splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if right.startswith("cgroup2 ") and len(fields) > 4 and fields[3] == "/":
            return fields[4]
    return None


def _try(group: Cgroup) -> str:
    """Let a child of ours move in: permission to make a group is not yet permission to use it."""
    pid = os.fork()
    if pid == 0:
        try:
            group.enter()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"no process can be moved into {group.path}: {os.strerror(code)}" if code else ""
