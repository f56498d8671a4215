"""The warden: the outer process, which does nothing but make sure that nothing outlives the keeper.

The keeper can be killed at any instant (by the kernel when memory is short, by an abort that reaches too
far). Its descendants then become the warden's, because that is a subreaper too; the warden kills them,
removes the cgroup and exits with 70. It holds one end of a pipe, the lifeline: when the warden is killed, the
keeper sees it closed and ends the run. If both are killed in the same instant, only the driver is left to
notice (`drills.keeper_client`).
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

from . import pidfd
from .cgroup import Cgroup
from .ending import END_S_MAX, kill_descendants

EXIT_KEEPER_DIED = 70  # EX_SOFTWARE of sysexits.h
ORDERLY_END_S = 2 * END_S_MAX  # after which a keeper that was asked to end counts as stuck

_HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)


def guard(keep: Callable[[int], int], cgroup: Cgroup | None) -> int:
    """Run `keep` (given the lifeline) in a child; the exit status, once nothing of it is left."""
    pidfd.become_subreaper()
    # Inherited as ignored, it would let the kernel throw the keeper's status away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    lifeline, held = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(held)
        _keep(keep, lifeline)
    os.close(lifeline)
    _let_go_of_the_driver()
    status = _await(keeper)
    hit, left = kill_descendants(cgroup, END_S_MAX)
    if cgroup is not None:
        cgroup.remove()
    if os.WIFEXITED(status) and not hit and not left:
        return os.WEXITSTATUS(status)
    code = os.waitstatus_to_exitcode(status)
    sys.stderr.write(f"keeper ended with {code}; the warden killed {hit} processes, left: {left}\n")
    return EXIT_KEEPER_DIED


def _keep(keep: Callable[[int], int], lifeline: int) -> None:
    code = EXIT_KEEPER_DIED
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        code = keep(lifeline)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _let_go_of_the_driver() -> None:
    """Leave the pipes to the keeper, because the driver learns of its death from their being closed."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def _await(keeper: int) -> int:
    """The keeper's wait status. SIGTERM and SIGHUP are passed on, and bounded."""
    deadline: float | None = None
    while True:
        pid, status = os.waitpid(keeper, os.WNOHANG)
        if pid:
            return status
        heard = signal.sigtimedwait(_HEARD, 1.0)
        # The keeper is our child and not waited for: its pid is its own.
        if heard is not None and heard.si_signo != signal.SIGCHLD:
            os.kill(keeper, signal.SIGTERM)
            deadline = deadline or time.monotonic() + ORDERLY_END_S
        if deadline is not None and time.monotonic() > deadline:
            os.kill(keeper, signal.SIGKILL)
