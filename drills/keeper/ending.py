"""Killing: everything of the run, then the services, in a bounded time, through pidfds alone.

`end_run` is the keeper's, with the table and the journal. `kill_descendants` is the warden's, for when the
keeper is dead and nothing is known: it kills whatever has the warden for an ancestor, and nothing else.
"""

import os
import select
import signal
import time
from collections.abc import Callable

from . import pidfd, procfs
from .cgroup import Cgroup
from .processes import Process
from .watch import Watch

END_S_MAX = 4.0
RUN_S_MAX = 2.5  # of these, so that the services get their turn
SERVICE_TERM_S = 0.5  # for the provider to close its journal


def end_run(watch: Watch, deadline: float) -> list[Process]:
    """Kill the run, then dismiss the services; who is left. `deadline` is of time.monotonic()."""
    _kill_until_none(watch, watch.of_run, min(deadline, time.monotonic() + RUN_S_MAX))
    for process in list(watch.live.values()):
        if process.role == "service" and process.name is not None:
            pidfd.send(process.pidfd, signal.SIGTERM)
    _await(watch, min(deadline, time.monotonic() + SERVICE_TERM_S))
    return _kill_until_none(watch, lambda: list(watch.live.values()), deadline)


def _kill_until_none(watch: Watch, who: Callable[[], list[Process]], deadline: float) -> list[Process]:
    """SIGKILL (which a stopped process cannot ignore either) until two enumerations in a row find nobody."""
    empty = 0
    while empty < 2:
        if watch.cgroup is not None:
            watch.cgroup.kill()
        for process in who():
            pidfd.send(process.pidfd, signal.SIGKILL)
        select.select([watch.epoll], [], [], 0.005 if who() else 0)
        watch.enumerate(everything=True)
        empty = 0 if who() else empty + 1
        if time.monotonic() > deadline:
            break
    return who()


def _await(watch: Watch, deadline: float) -> None:
    """Until everybody is gone, or the deadline."""
    while watch.live and (left_s := deadline - time.monotonic()) > 0:
        select.select([watch.epoll], [], [], min(left_s, 0.02))
        watch.enumerate()


def kill_descendants(cgroup: Cgroup | None, bound_s: float) -> tuple[int, list[int]]:
    """SIGKILL everything below this process until nothing is left; how many were hit, and who is left."""
    me, deadline = os.getpid(), time.monotonic() + bound_s
    hit: set[int] = set()
    empty = 0
    while True:
        if cgroup is not None:
            cgroup.kill()
        _reap_all()
        found = _below(me)
        empty = 0 if found else empty + 1
        if empty == 2 or time.monotonic() > deadline:
            return len(hit), sorted(found)
        for pid in found:
            if _kill_if_below(pid, found | {me}):
                hit.add(pid)
        if found:
            time.sleep(0.005)  # because killing takes the kernel a moment, and a scan of /proc costs CPU


def _below(me: int) -> set[int]:
    parents = procfs.parents()
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    heads = [me]
    while heads:
        new = [pid for pid in children.get(heads.pop(), []) if pid not in found]
        found.update(new)
        heads += new
    return found


def _kill_if_below(pid: int, family: set[int]) -> bool:
    """Kill it if, with its pidfd in hand, its parent still is of the family."""
    fd = pidfd.open_pid(pid)
    if fd is None:
        return False
    try:
        stat = procfs.read_stat(pid)
        mine = stat is not None and stat.ppid in family and not pidfd.is_reaped(fd)
        return mine and pidfd.send(fd, signal.SIGKILL)
    finally:
        os.close(fd)


def _reap_all() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return  # no children at all
