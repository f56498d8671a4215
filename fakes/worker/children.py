"""The worker's own child process: at most one at a time, a tool call or a git command.

The child is held through a pidfd, so that the handler of a SIGTERM can end it at any instant without ever
hitting a recycled pid. Between the child's birth and the pidfd, signals are blocked; otherwise a stop that
arrives just there would leave a tool call behind that nobody knows.
"""

import os
import select
import signal
import time

STOPS = (signal.SIGTERM, signal.SIGINT)


class Child:
    """Starts, awaits and ends the one child. `deaf` makes every child ignore the stop signals, too."""

    def __init__(self) -> None:
        self.deaf = False
        self.what = ""
        self._pid = 0
        self._fd = -1

    def fork(self, what: str) -> int:
        """Like os.fork: 0 in the child, with the default handlers; the child's pid in the worker."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            pid = os.fork()
            if pid == 0:
                for stop in STOPS:
                    signal.signal(stop, signal.SIG_IGN if self.deaf else signal.SIG_DFL)
            else:
                self._adopt(pid, what)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return pid

    def spawn(self, what: str, argv: list[str], stdout: int | None = None) -> None:
        """Start a program found on PATH; its output goes to the descriptor `stdout`, where one is given."""
        actions = [] if stdout is None else [(os.POSIX_SPAWN_DUP2, stdout, 1)]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        handlers = [signal.signal(stop, signal.SIG_IGN) for stop in STOPS] if self.deaf else []
        try:
            pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsigmask=())
            self._adopt(pid, what)
        finally:
            for stop, handler in zip(STOPS, handlers, strict=False):
                signal.signal(stop, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def wait(self, within_s: float) -> int | None:
        """Exit status (negative: the signal that ended it), None if it still runs after `within_s`."""
        if self._fd < 0:
            return None
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        deadline = time.monotonic() + within_s
        while not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            if time.monotonic() >= deadline:
                return None
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            os.close(self._fd)
            self._fd = -1
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return status

    def end(self, number: int, within_s: float) -> None:
        """Signal the child, if there is one, and wait for it."""
        if self._fd < 0:
            return
        try:
            signal.pidfd_send_signal(self._fd, number)
        except ProcessLookupError:
            return  # it was reaped a moment ago, just before this handler ran
        self.wait(within_s)

    def _adopt(self, pid: int, what: str) -> None:
        self._pid, self._fd, self.what = pid, os.pidfd_open(pid), what
