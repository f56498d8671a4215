"""The table of processes: who of the run is there, who came, who went.

Discovery. Two looks, because each is blind to something: the cgroup (misses what moves itself out) and a list
of /proc in which a process is ours when its parent is ours (the subreaper makes orphans ours). Known pids are
never read again to learn that they live: a held pidfd says so. Neither are strangers, until their list is
forgotten once a second because a pid may have changed hands.

Identity. A pid is adopted in this order: open a pidfd, read /proc, then ask the pidfd whether its process has
been reaped in between. If not, what was read was its own, however fast pids are recycled. The same for its
parent.

Exits come from the pidfds by epoll, and are stamped before anything else is done.
"""

import os
import select
import time

from . import pidfd, procfs
from .cgroup import Cgroup
from .log import Log
from .processes import FROZEN, Process, after_death, is_between_fork_and_exec, look_at, mark_of

STRANGERS_KEPT_S = 1.0
YOUNG_S = 1.0  # a process younger than this is looked at more often: it may be about to execute a program
AUDIT_ROUNDS_MAX = 50


class Watch:
    """All processes below `me`. `exits` is an epoll descriptor that is readable when one of them has ended."""

    def __init__(self, log: Log, cgroup: Cgroup | None, worktrees: str | None) -> None:
        self.me = str(os.getpid())
        self.exits = select.epoll()
        self.live: dict[str, Process] = {}  # by pid, as text: /proc and cgroup.procs are text
        self.ended: list[tuple[Process, pidfd.Exit]] = []  # spawned ones, for the driver to be told
        self.cgroup = cgroup
        self._log = log
        self._worktrees = worktrees
        self._by_fd: dict[int, Process] = {}
        self._zombies: dict[str, Process] = {}  # dead, and not reaped by their parents yet
        self._strangers: set[str] = set()
        self._strangers_since = 0.0
        self._unannounced: list[Process] = []
        self._arriving: set[str] = set()  # members of the cgroup that wait for their turn in a scan
        self._last_proc = 0
        self._changes = 0

    # Who came

    def adopt_child(self, pid: int, role: str, name: str, stamp: int) -> Process | None:
        """Take up a child that was just spawned. None only when it is reaped already, which nobody but us does."""
        return self._adopt(str(pid), "spawn", stamp, role, name)

    def scan_cgroup(self) -> None:
        """Look for new members of the run's cgroup."""
        self._announce_pending()
        if self.cgroup is None:
            return
        stamp = time.monotonic_ns()
        self._arriving = self.cgroup.members().difference(self.live, self._zombies)
        while self._arriving:
            self._adopt(self._arriving.pop(), "cgroup", stamp)

    def scan_tree(self) -> None:
        """Look for new descendants, wherever they put themselves."""
        self._announce_pending()
        self._forget()
        stamp = time.monotonic_ns()
        names = set(os.listdir("/proc"))
        for key in names.difference(self.live, self._zombies, self._strangers):
            if key.isdigit():
                self._settle(key, stamp, depth=64)
        # Strangers that are gone must go from the list, because the next owner of the pid may be ours.
        self._strangers &= names

    def _settle(self, key: str, stamp: int, depth: int) -> bool:
        """Decide whether an unknown pid is ours; unknown parents are decided first. Adopts it when it is."""
        if key == self.me or key in self.live:
            return True
        if key in self._strangers or depth == 0:
            return False
        stat = procfs.read_stat(key)
        if stat is None:
            return False
        if stat.ppid > 1 and self._settle(str(stat.ppid), stamp, depth - 1):
            return self._adopt(key, "tree", stamp) is not None
        self._strangers.add(key)
        return False

    def _adopt(
        self, key: str, via: str, stamp: int, role: str | None = None, name: str | None = None
    ) -> Process | None:
        pid = int(key)
        fd = pidfd.open_pid(pid)
        if fd is None:
            return None
        stat = procfs.read_stat(pid)
        if stat is None or not self._belongs(key, stat, via):
            os.close(fd)
            return None
        if str(stat.ppid) in self._arriving:  # the parent first, because the child inherits its task
            self._arriving.discard(str(stat.ppid))
            self._adopt(str(stat.ppid), via, stamp)
        parent = self.live.get(str(stat.ppid))
        # For an orphan whose parent was never seen, the leader of its session is all that is left.
        kin = parent or self.live.get(str(stat.sid))
        look = look_at(pid, stat, kin.look if kin else None, self._worktrees)
        if pidfd.is_reaped(fd):
            os.close(fd)
            return None
        if via == "tree" and str(stat.ppid) == self.me:
            via = "reparented"
        process = Process(
            proc=self._next_proc(),
            pid=pid,
            pidfd=fd,
            ppid=stat.ppid,
            parent=parent.proc if parent else None,
            role=role or ("service" if kin is not None and kin.role == "service" else "run"),
            name=name,
            via=via,
            seen_ns=stamp,
            look=look,
        )
        self._enter(key, process)
        return process

    def _belongs(self, key: str, stat: procfs.Stat, via: str) -> bool:
        """Once more, now that the pidfd is held: a descendant by its parent, or a member of the run's cgroup."""
        if str(stat.ppid) == self.me:
            return True
        parent = self.live.get(str(stat.ppid))
        if parent is not None and not pidfd.is_reaped(parent.pidfd):
            return True
        return via == "cgroup" and self.cgroup is not None and self.cgroup.holds(key)

    def _next_proc(self) -> int:
        self._last_proc += 1
        return self._last_proc

    def _enter(self, key: str, process: Process) -> None:
        self.live[key] = process
        self._by_fd[process.pidfd] = process
        self._changes += 1
        self.exits.register(process.pidfd, select.EPOLLIN)
        # Between fork and exec it still wears its parent's name and environment; it is told of at the next
        # scan, under the name that it then has, because readers of the history take a process for what
        # proc.start says.
        if process.name is None and is_between_fork_and_exec(process.look):
            self._unannounced.append(process)
        else:
            self._announce(process)

    def _announce_pending(self) -> None:
        pending, self._unannounced = self._unannounced, []
        for process in pending:
            if not process.announced:
                self._refresh(process)
                self._announce(process)

    def _announce(self, process: Process) -> None:
        process.announced = True
        self._log.write("proc.start", process.seen_ns, **process.start_event())

    # What they became

    def sample(self, *, young_only: bool = False) -> None:
        """Look whether processes froze, thawed, renamed themselves or execute another program."""
        young_ns = time.monotonic_ns() - int(YOUNG_S * 1e9)
        for process in list(self.live.values()):
            if young_only and process.seen_ns < young_ns:
                continue
            stat = procfs.read_stat(process.pid)
            if stat is None or pidfd.is_reaped(process.pidfd):
                continue
            if mark_of(stat) != process.look.mark:
                self._changed(process)
            self._thaw_or_freeze(process, stat)

    def _thaw_or_freeze(self, process: Process, stat: procfs.Stat) -> None:
        frozen = stat.state in FROZEN
        if frozen != process.frozen:
            process.frozen, process.summary = frozen, b""
            self._log.write("proc.state", proc=process.proc, pid=process.pid, state=stat.state)

    def _changed(self, process: Process) -> None:
        before = process.look
        stamp = time.monotonic_ns()
        self._refresh(process)
        look = process.look
        if not process.announced or (look.cmdline, look.stat.comm) == (before.cmdline, before.stat.comm):
            return
        self._log.write(
            "proc.exec",
            stamp,
            proc=process.proc,
            pid=process.pid,
            cmdline=look.cmdline,
            comm=look.stat.comm,
            renamed=look.stat.start_stack == before.stat.start_stack,
            run=look.run,
            task=look.task,
            attempt=look.attempt,
            cred_names=look.cred_names,
        )

    def _refresh(self, process: Process) -> None:
        """Read it again. What it was known to belong to stays, because a new program may clear its environment."""
        stat = procfs.read_stat(process.pid)
        if stat is None:
            return
        if stat.state in "ZX":
            look = after_death(process.look, stat)
        else:
            look = look_at(process.pid, stat, process.look, self._worktrees)
        if not pidfd.is_reaped(process.pidfd):
            process.look, process.summary = look, b""

    # Who went

    def collect(self) -> None:
        """Take note of every process that has ended by now."""
        while ready := self.exits.poll(0, 256):
            stamp = time.monotonic_ns()
            for fd, _ in ready:
                self._end(self._by_fd[fd], stamp)

    def _end(self, process: Process, stamp: int) -> None:
        key = str(process.pid)
        self.exits.unregister(process.pidfd)
        del self._by_fd[process.pidfd]
        del self.live[key]
        self._changes += 1
        if not process.announced:
            self._refresh(process)
            self._announce(process)
        how, reaped = pidfd.reap(process.pidfd, process.pid)
        self._log.write(
            "proc.end", stamp, proc=process.proc, pid=process.pid, status=how.status, signal=how.signal
        )
        if process.name is not None:
            self.ended.append((process, how))
        if reaped:
            os.close(process.pidfd)
        else:
            self._zombies[key] = process  # so that its pid is not taken for a new process

    def _forget(self) -> None:
        """Let go of zombies that were reaped, and once a second of strangers."""
        for key, process in list(self._zombies.items()):
            if pidfd.let_go(process.pidfd):
                os.close(process.pidfd)
                del self._zombies[key]
        now = time.monotonic()
        if now - self._strangers_since > STRANGERS_KEPT_S:
            self._strangers.clear()
            self._strangers_since = now

    # Who is there

    def enumerate(self) -> None:
        """Bring the table up to date by every look there is."""
        self.scan_cgroup()
        self.scan_tree()
        self.collect()

    def settled(self) -> tuple[int, bool]:
        """Enumerate until two enumerations in a row found the same; how many it took, and whether they agreed."""
        self.enumerate()
        for taken in range(2, AUDIT_ROUNDS_MAX + 1):
            before = self._changes
            self.enumerate()
            if self._changes == before:
                return taken, True
        return AUDIT_ROUNDS_MAX, False

    def of_run(self) -> list[Process]:
        """The living processes of the run."""
        return [process for process in self.live.values() if process.of_run]
