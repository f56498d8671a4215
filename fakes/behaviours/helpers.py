"""Workers that start processes which outlive them: detached servers, deaf tool servers, supervisors.

Each of these is bounded, in time and in number, so that what a broken harness leaves behind ends by itself.
"""

import os
import select
import signal
import sys
import time

import fakes
from fakes.worker.children import STOPS
from fakes.worker.hooks import Hooks
from fakes.worker.loop import Worker

HELPER = os.path.join(os.path.dirname(os.path.abspath(fakes.__file__)), "helper_server.py")
HOWS = ("setsid", "double-fork", "clear-env", "all")
RESPAWNS_MAX = 20
SUPERVISOR_S_MAX = 120.0


def _start(arguments: list[str], environment: dict[str, str], stdin: int | None, new_session: bool) -> None:
    """Start the helper server.

    Nothing of it stays connected to the worker's own output, which may be a pipe that somebody reads.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    source = null if stdin is None else stdin
    moves = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    argv = [sys.executable, "-I", "-S", "-E", HELPER, *arguments]
    os.posix_spawn(
        sys.executable,
        argv,
        environment,
        file_actions=moves,
        setsid=new_session,
        setsigdef=STOPS,
        setsigmask=(),
    )
    os.close(null)


class Detaches(Hooks):
    """Starts a quiet server before `at_step`. `how`: setsid, double-fork, clear-env, or all three at once."""

    how: str
    at_step: int

    def check(self) -> None:
        if self.how not in HOWS:
            raise ValueError(f"detaches: how must be one of {', '.join(HOWS)}, not {self.how!r}")

    def before_step(self, worker: Worker, step: int) -> None:
        if step < self.at_step or self._told:
            return
        self.sets_in(worker)
        environment = {} if self.how in ("clear-env", "all") else dict(os.environ)
        new_session = self.how in ("setsid", "all")
        if self.how not in ("double-fork", "all"):
            _start(["--name", "dev-server"], environment, None, new_session)
        elif worker.child.fork("helper") == 0:
            try:
                _start(["--name", "dev-server"], environment, None, new_session)
            finally:
                os._exit(0)  # its parent is gone then, and the server belongs to whoever collects orphans
        else:
            worker.child.wait(5.0)


class IgnoresEof(Hooks):
    """Starts a deaf stdio tool server, which inherits the worker's environment and so its credential."""

    def begin(self, worker: Worker) -> None:
        self.sets_in(worker)
        reading, self._writing = os.pipe2(os.O_CLOEXEC)  # our end closes when we end; the server doesn't mind
        environment = {"WORKER_API_TOKEN": "fake", **os.environ}
        _start(["--name", "tool-server", "--stdio"], environment, reading, False)
        os.close(reading)


class Respawned(Hooks):
    """Forks a supervisor in a session of its own, which starts the worker again when it ends.

    At most twenty times, and for at most two minutes.
    """

    delay_s: float

    def begin(self, worker: Worker) -> None:
        self.sets_in(worker)
        if os.environ.get("STOPDRILL_RESPAWNED"):
            return  # this worker's supervisor lives already
        watched = os.pidfd_open(os.getpid())
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        if os.fork() == 0:
            try:
                self._supervise(worker.attempt, watched)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(watched)

    def _supervise(self, attempt: int, watched: int) -> None:
        os.setsid()
        for number in STOPS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        deadline = time.monotonic() + SUPERVISOR_S_MAX
        pid = again = 0
        while True:
            ended = _wait(watched, deadline)
            os.close(watched)
            if pid:
                if not ended:
                    os.kill(pid, signal.SIGKILL)  # our own child and not reaped yet, so the pid is still its
                os.waitpid(pid, 0)
            if not ended or again == RESPAWNS_MAX:
                return
            time.sleep(self.delay_s)
            again += 1
            environment = {**os.environ, "ATTEMPT": str(attempt + again), "STOPDRILL_RESPAWNED": "1"}
            pid = os.posix_spawn(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
            watched = os.pidfd_open(pid)


def _wait(watched: int, deadline: float) -> bool:
    """True once the process behind the descriptor has ended, False at the deadline."""
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
