"""What the keeper knows about one process, and to which task it belongs.

Attribution, the first that answers: the ids in its environment, its parent's record, its working directory
below the worktrees. A process with a cleared environment that was orphaned before anybody saw it, and that
stands elsewhere, stays without a task; it is of the run nevertheless, because it is below the subreaper.
"""

import json
from dataclasses import dataclass, replace

from . import procfs

RUN_ROLES = ("coordinator", "run")  # what an audit counts; a service is not of the run
FROZEN = ("T", "t")  # stopped by a signal, stopped by a tracer

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Look:
    """What a process looked like when it was last read."""

    stat: procfs.Stat
    cmdline: tuple[str, ...]
    uid: int | None
    run: str | None
    task: str | None
    attempt: int | None
    cred_names: tuple[str, ...]

    @property
    def mark(self) -> tuple[str, int, int]:
        """Changes when it renames itself or executes a program (which gets a new stack at a random place)."""
        return mark_of(self.stat)


@dataclass(slots=True)
class Process:
    """One process. `proc` is the keeper's own number for it, because pids are recycled."""

    proc: int
    pid: int
    pidfd: int
    ppid: int
    parent: int | None  # proc of the parent, when it was known alive
    role: str
    name: str | None  # of a spawned one
    via: str  # spawn, cgroup, tree, reparented: how it was noticed
    seen_ns: int
    look: Look
    frozen: bool = False
    announced: bool = False  # proc.start has been written
    summary: bytes = b""  # JSON for an audit's answer; empty when out of date

    @property
    def of_run(self) -> bool:
        """Whether an audit counts it."""
        return self.role in RUN_ROLES

    def summarised(self) -> bytes:
        """Its entry in an audit's answer, made once, because encoding costs more than the audit."""
        if not self.summary:
            state = "T" if self.frozen else self.look.stat.state
            entry = {
                "proc": self.proc,
                "pid": self.pid,
                "role": self.role,
                "cmdline": self.look.cmdline,
                "task": self.look.task,
                "state": state,
            }
            self.summary = _encode(entry).encode()
        return self.summary

    def start_event(self) -> dict[str, object]:
        """The fields of proc.start."""
        look, stat = self.look, self.look.stat
        fields: dict[str, object] = {
            "proc": self.proc,
            "pid": self.pid,
            "ppid": self.ppid,
            "parent": self.parent,
            "role": self.role,
            "cmdline": look.cmdline,
            "comm": stat.comm,
            "sid": stat.sid,
            "pgid": stat.pgid,
            "uid": look.uid,
            "start_ticks": stat.start_ticks,
            "run": look.run,
            "task": look.task,
            "attempt": look.attempt,
            "cred_names": look.cred_names,
            "via": self.via,
        }
        return fields if self.name is None else {**fields, "name": self.name}


def mark_of(stat: procfs.Stat) -> tuple[str, int, int]:
    """See `Look.mark`."""
    return stat.comm, stat.start_stack, stat.flags & procfs.PF_FORKNOEXEC


def is_dying(look: Look, stat: procfs.Stat) -> bool:
    """Whether its memory is gone already, so that what /proc says of its program no longer holds."""
    return stat.state in "ZX" or (stat.start_stack == 0 and look.stat.start_stack != 0)


def is_between_fork_and_exec(look: Look) -> bool:
    """Whether it still shows its parent's program. True for ever in a child that never executes anything."""
    return bool(look.stat.flags & procfs.PF_FORKNOEXEC)


def after_death(look: Look, stat: procfs.Stat) -> Look:
    """What can still be said of a zombie: its name; its arguments too, unless they were its parent's."""
    executed = is_between_fork_and_exec(look) and not stat.flags & procfs.PF_FORKNOEXEC
    return replace(look, stat=stat, cmdline=() if executed else look.cmdline)


def look_at(pid: int, stat: procfs.Stat, parent: Look | None, worktrees: str | None) -> Look:
    """Read a process and attribute it. The caller holds its pidfd and checks it afterwards."""
    env = procfs.read_environment(pid)
    run, task, attempt = env.run, env.task, env.attempt
    if parent is not None:
        run = run or parent.run
        if task is None:
            task, attempt = parent.task, parent.attempt
    if task is None and worktrees is not None:
        task = _task_of_folder(procfs.read_cwd(pid), worktrees)
    return Look(stat, procfs.read_cmdline(pid), procfs.read_uid(pid), run, task, attempt, env.cred_names)


def _task_of_folder(cwd: str | None, worktrees: str) -> str | None:
    lead = worktrees.rstrip("/") + "/"
    if cwd is None or not cwd.startswith(lead):
        return None
    return cwd[len(lead) :].split("/", 1)[0] or None
