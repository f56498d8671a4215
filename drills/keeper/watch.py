"""The table of processes: who of the run is there, who came, who went.

Discovery. Two looks, because each is blind to something: the cgroup (misses what moves itself out), and the
pids given since the last look, of which those are ours whose parent is ours (the subreaper makes orphans
ours). Once a second all of /proc is listed besides. Known pids are never read again to learn that they live:
a held pidfd says so.

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
from .lastpid import LastPid
from .log import Log
from .processes import FROZEN, Process, after_death, is_between_fork_and_exec, is_dying, look_at, mark_of

LIST_S = 1.0  # between two lists of all of /proc
BIRTH_S = 0.2  # within which a pid that was given must show its process
FORK_TO_EXEC_S = 0.01
YOUNG_S = 1.0  # a process younger than this is looked at more often: it may be about to execute a program
SAMPLE_MAX = 25  # at a time, so that watching a thousand costs no more than watching 300
AUDIT_ROUNDS_MAX = 50


class Watch:
    """All processes below `me`. `epoll` reports a pidfd when its process has ended; others may use it too."""

    def __init__(self, log: Log, cgroup: Cgroup | None, worktrees: str | None) -> None:
        self.me = str(os.getpid())
        self.epoll = select.epoll()
        self.live: dict[str, Process] = {}  # by pid, as text: /proc and cgroup.procs are text
        self.ended: list[tuple[Process, pidfd.Exit]] = []  # spawned ones, for the driver to be told
        self.cgroup = cgroup
        self._log = log
        self._worktrees = worktrees
        self._by_fd: dict[int, Process] = {}
        self._zombies: dict[str, Process] = {}  # dead, and not reaped by their parents yet
        self._strangers: set[str] = set()  # found not to be ours, in this scan
        self._last_pid = LastPid()
        # Pids that were given and show no process yet, because that comes a little later; until when to look.
        self._unborn: dict[str, float] = {}
        self._listed_since = 0.0
        self._unannounced: list[Process] = []
        self._young: list[Process] = []
        self._to_sample: list[Process] = []
        self._arriving: set[str] = set()  # members of the cgroup that wait for their turn in a scan
        self._last_proc = 0
        self._changes = 0

    # Who came

    def adopt_child(self, pid: int, role: str, name: str, stamp: int) -> Process | None:
        """Take up a child that was just spawned."""
        return self._adopt(str(pid), "spawn", stamp, role, name)

    def _scan_cgroup(self) -> None:
        if self.cgroup is None:
            return
        stamp = time.monotonic_ns()
        self._arriving = set(self.cgroup.members().difference(self.live, self._zombies))
        while self._arriving:
            self._adopt(self._arriving.pop(), "cgroup", stamp)

    def _scan_tree(self, *, everything: bool) -> None:
        """Look for descendants among the pids that were given lately, or among all of /proc."""
        stamp, now = time.monotonic_ns(), time.monotonic()
        if everything:
            self._listed_since = now
            names = set(filter(str.isdigit, os.listdir("/proc")))
        else:
            names = set(self._unborn)
        self._strangers.clear()
        for key in names.difference(self.live, self._zombies):
            self._settle(key, stamp, depth=64)
        seen = (self.live, self._zombies, self._strangers)
        self._unborn = {
            key: until for key, until in self._unborn.items() if until > now and not any(key in where for where in seen)
        }

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
        """Now that the pidfd is held: a descendant by its parent, or a member of the run's cgroup."""
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
        self._young.append(process)
        self.epoll.register(process.pidfd, select.EPOLLIN)
        # Between fork and exec it still wears its parent's name and environment; it is told of a little
        # later, under the name that it then has, because readers of the history take a process for what
        # proc.start says.
        if process.name is None and is_between_fork_and_exec(process.look):
            self._unannounced.append(process)
        else:
            self._announce(process)

    def _announce_pending(self, age_s: float) -> None:
        old_ns = time.monotonic_ns() - int(age_s * 1e9)
        pending, self._unannounced = self._unannounced, []
        for process in pending:
            if process.seen_ns > old_ns and not process.announced:
                self._unannounced.append(process)
            elif not process.announced:
                self._refresh(process)
                self._announce(process)

    def _announce(self, process: Process) -> None:
        process.announced = True
        self._log.write("proc.start", process.seen_ns, **process.start_event())

    # What they became

    def sample(self, share: int) -> None:
        """Look at one of `share` parts of the processes: whether they froze, thawed or became something else.

        In parts, because looking at a thousand at once would make exits wait; and at most `SAMPLE_MAX`.
        """
        count = min(SAMPLE_MAX, -(-len(self.live) // share))
        if not self._to_sample:
            self._to_sample = list(self.live.values())
        for process in self._to_sample[-count:]:
            self._sample_one(process)
        del self._to_sample[-count:]

    def sample_young(self) -> None:
        """The same for those that are about to become what they are."""
        young_ns = time.monotonic_ns() - int(YOUNG_S * 1e9)
        self._young = [process for process in self._young if process.seen_ns > young_ns]
        for process in self._young[-SAMPLE_MAX:]:
            self._sample_one(process)

    def _sample_one(self, process: Process) -> None:
        if self._by_fd.get(process.pidfd) is not process:
            return  # it has ended meanwhile
        stat = procfs.read_stat(process.pid)
        if stat is None or is_dying(process.look, stat) or pidfd.is_reaped(process.pidfd):
            return
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
        """Read it again. Its task stays, because a new program may clear its environment."""
        stat = procfs.read_stat(process.pid)
        if stat is None:
            return
        if is_dying(process.look, stat):
            look = after_death(process.look, stat)
        else:
            look = look_at(process.pid, stat, process.look, self._worktrees)
        if not pidfd.is_reaped(process.pidfd):
            process.look, process.summary = look, b""

    # Who went

    def collect(self) -> None:
        """Take note of every process that has ended by now."""
        while self.note_ends(self.epoll.poll(0, 256), time.monotonic_ns()):
            pass  # until nobody else has ended

    def note_ends(self, ready: list[tuple[int, int]], stamp: int) -> int:
        """Take note of the processes among the descriptors that are ready, as of `stamp`; how many."""
        ended = [self._by_fd[fd] for fd, _ in ready if fd in self._by_fd]
        for process in ended:
            self._end(process, stamp)
        return len(ended)

    def _end(self, process: Process, stamp: int) -> None:
        key = str(process.pid)
        self.epoll.unregister(process.pidfd)
        del self._by_fd[process.pidfd]
        del self.live[key]
        self._changes += 1
        if not process.announced:
            self._refresh(process)
            self._announce(process)
        how, reaped = pidfd.reap(process.pidfd, process.pid)
        self._log.write("proc.end", stamp, proc=process.proc, pid=process.pid, status=how.status, signal=how.signal)
        if process.name is not None:
            self.ended.append((process, how))
        if reaped:
            os.close(process.pidfd)
        else:
            self._zombies[key] = process  # so that its pid is not taken for a new process

    def _forget(self) -> None:
        """Let go of zombies that were reaped."""
        for key, process in list(self._zombies.items()):
            if pidfd.let_go(process.pidfd):
                os.close(process.pidfd)
                del self._zombies[key]

    # Who is there

    def enumerate(self, *, cgroup: bool = False, everything: bool = False) -> None:
        """Bring the table up to date: who has ended, who is new.

        Where no pid was given since the last time nobody can be new, and nothing is read unless asked for:
        members of the cgroup, or everything.
        """
        self._announce_pending(FORK_TO_EXEC_S)
        self._forget()
        new = self._last_pid.new()  # first, because what is born during the scan belongs to the next one
        everything = everything or new is None or time.monotonic() - self._listed_since > LIST_S
        soon = time.monotonic() + BIRTH_S
        self._unborn.update(dict.fromkeys(map(str, new or ()), soon))
        if cgroup or everything:
            self._scan_cgroup()
        if self._unborn or everything:
            self._scan_tree(everything=everything)
        self.collect()

    def settled(self) -> tuple[int, bool]:
        """Enumerate until two in a row found the same; how many it took, and whether they agreed."""
        self.enumerate(cgroup=True, everything=self.cgroup is None)
        before, taken = -1, 1
        while before != self._changes and taken < AUDIT_ROUNDS_MAX:
            before = self._changes
            self.enumerate()
            taken += 1
        self._announce_pending(0)
        return taken, before == self._changes

    def of_run(self) -> list[Process]:
        """The living processes of the run."""
        return [process for process in self.live.values() if process.of_run]
