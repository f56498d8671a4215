"""The keeper's main loop: commands from the driver, exits from pidfds, scans by the clock, one way to end.

It ends when the driver says so, when the driver is gone (end of file on stdin), when the warden is gone (end
of file on the lifeline), on SIGTERM or SIGHUP, and when its journal cannot be written, because it must not go
on blind. In each case everything of the run and every service is killed first, in at most `END_S_MAX`.
"""

import json
import os
import resource
import select
import signal
import time
from dataclasses import dataclass
from typing import Any

from . import pidfd, spawning
from .cgroup import Cgroup
from .ending import END_S_MAX, end_run
from .log import Log
from .processes import Process
from .watch import Watch
from .wire import Wire

SCAN_S = 0.02  # for who is new
YOUNG_S = 0.1  # for what a young process has become
SAMPLE_SHARE = 12  # for what any process has become: all of them in so many scans, which is a quarter of a second
READY_MAX = 256  # descriptors taken at a time, so that one burst of exits shares no stamp for long
FILES_WANTED = 65_536  # a pidfd each; the usual limit of 1,024 would make a large fleet invisible

DRIVER_DIED = "driver died"
EXIT_OK, EXIT_TROUBLE = 0, 74  # EX_IOERR of sysexits.h


@dataclass(frozen=True)
class Options:
    """The command line. `worktrees`: the folder whose sub-folders are named after tasks."""

    run: str
    events: str
    worktrees: str | None = None
    use_cgroup: bool = True
    tell: int | None = None  # a descriptor of the driver's stderr, for the case that the driver cannot speak any more


class Refused(Exception):
    """A command that cannot be done; the text is the answer."""


class Keeper:
    """One run's keeper. `lifeline` is the reading end of a pipe that the warden holds open while it lives."""

    def __init__(self, options: Options, cgroup: Cgroup | None, cgroup_why: str, lifeline: int) -> None:
        self._files_limit = _raise_files_limit()
        self._log = Log(options.events)
        self._cgroup = cgroup
        self._lifeline = lifeline
        self._events, self._tell = options.events, options.tell
        if self._tell is not None:
            os.set_inheritable(self._tell, False)
        self._wire = Wire()
        facts: dict[str, Any] = {
            "pid": os.getpid(),
            "subreaper": pidfd.become_subreaper(),
            "cgroup": cgroup.path if cgroup else None,
            "cgroup_why": cgroup_why,
            "exit_info": pidfd.tells_exit(),
            "scan_s": SCAN_S,
            "uid": os.geteuid(),
        }
        self._watch = Watch(self._log, cgroup, options.worktrees)
        self._ending: str | None = None
        self._answer_to: object = None
        self._scan_due = self._young_due = 0.0
        for fd in (self._wire.source, lifeline):
            self._watch.epoll.register(fd, select.EPOLLIN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._log.write("keeper.begin", **facts)
        if self._log.trouble is None:
            self._wire.send({"event": "ready", **facts})

    def run(self) -> int:
        """Until the end of the run; the exit status."""
        try:
            while self._ending is None:
                self._turn()
        except OSError as error:
            self._log.trouble = self._log.trouble or f"the keeper cannot watch any longer: {error}"
        return self._end(self._ending or "trouble")

    def _on_signal(self, number: int, _frame: object) -> None:
        # The loop wakes up at each scan, so that the flag is seen within 20 ms.
        self._ending = f"the keeper received {signal.Signals(number).name}"

    def _turn(self) -> None:
        wait_s = max(0.0, self._scan_due - time.monotonic())
        ready = self._watch.epoll.poll(wait_s, READY_MAX)
        self._watch.note_ends(ready, time.monotonic_ns())
        woken = [fd for fd, _ in ready]
        if self._wire.source in woken:
            self._obey()
        if self._lifeline in woken:
            self._ending = self._ending or "the warden died"
        self._scan()
        self._report()
        if self._wire.closed:
            self._ending = self._ending or DRIVER_DIED
        if self._log.trouble is not None:
            self._ending = "trouble"

    def _scan(self) -> None:
        now = time.monotonic()
        if now < self._scan_due:
            return
        self._scan_due = now + SCAN_S
        self._watch.enumerate()
        self._watch.sample(SAMPLE_SHARE)
        if now >= self._young_due:
            self._young_due = now + YOUNG_S
            self._watch.sample_young()

    def _report(self) -> None:
        """Tell the driver of spawned processes that have ended."""
        ended, self._watch.ended = self._watch.ended, []
        for process, how in ended:
            self._wire.send(
                {
                    "event": "exit",
                    "name": process.name,
                    "proc": process.proc,
                    "pid": process.pid,
                    "status": how.status,
                    "signal": how.signal,
                }
            )
        if self._wire.backlog:
            self._wire.flush()

    # Commands

    def _obey(self) -> None:
        for line in self._wire.receive():
            number: object = None
            try:
                command = json.loads(line)
                number = command.get("id")
                self._do(number, command)
            except Refused as error:
                self._wire.send({"id": number, "ok": False, "error": str(error)})
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"not a command of the keeper: {type(error).__name__}: {error}"
                self._wire.send({"id": number, "ok": False, "error": text})

    def _do(self, number: object, command: dict[str, Any]) -> None:
        match command["do"]:
            case "spawn":
                process = self._spawn(command)
                self._wire.send({"id": number, "ok": True, "pid": process.pid, "proc": process.proc})
            case "audit":
                self._wire.send_raw(self._audit(number, str(command["when"]), bool(command["details"])))
            case "signal":
                self._signal(int(command["proc"]), int(command["signal"]))
                self._wire.send({"id": number, "ok": True})
            case "end":
                self._answer_to = number
                self._ending = str(command["why"])
            case other:
                raise Refused(f"the keeper knows no command {other!r}")

    def _spawn(self, command: dict[str, Any]) -> Process:
        role = command["role"]
        if role not in ("coordinator", "run", "service"):
            raise Refused(f"role is coordinator, run or service, not {role!r}")
        what = spawning.Command(
            name=str(command["name"]),
            role=role,
            argv=tuple(map(str, command["argv"])),
            env={str(name): str(value) for name, value in command["env"].items()},
            cwd=str(command["cwd"]),
            stdout=str(command["stdout"]),
            stderr=str(command["stderr"]),
        )
        if not what.argv:
            raise Refused(f"cannot start {what.name}: no program given")
        stamp = time.monotonic_ns()
        try:
            pid = spawning.start(what, None if role == "service" else self._cgroup, self._files_limit)
        except spawning.SpawnError as error:
            raise Refused(str(error)) from error
        process = self._watch.adopt_child(pid, role, what.name, stamp)
        if process is None:
            raise Refused(f"cannot start {what.name}: it was gone before it could be watched")
        return process

    def _audit(self, number: object, when: str, details: bool) -> bytes:
        rounds, stable = self._watch.settled()
        alive = self._watch.of_run()
        procs = [process.proc for process in alive]
        self._log.write("audit", when=when, alive=procs, enumerations=rounds, stable=stable)
        # The history has the numbers; who wants to read names must ask for them, because they cost more than the audit.
        entries = b",".join([process.summarised() for process in alive]) if details else b""
        return b'{"id":%s,"ok":true,"alive":[%s]}' % (json.dumps(number).encode(), entries)

    def _signal(self, proc: int, number: int) -> None:
        process = next((p for p in self._watch.live.values() if p.proc == proc), None)
        if process is None:
            raise Refused(f"process number {proc} is not alive, or never was one of this run")
        if not pidfd.send(process.pidfd, number):
            raise Refused(f"process number {proc} (pid {process.pid}) has ended, or may not be signalled")

    # The end

    def _end(self, why: str) -> int:
        deadline = time.monotonic() + END_S_MAX
        # A closed pipe is readable for ever: left in, it would turn every wait from here on into a busy loop.
        for fd in (self._wire.source, self._lifeline):
            self._watch.epoll.unregister(fd)
        trouble = self._log.trouble
        if trouble is not None:
            self._wire.send({"event": "trouble", "why": trouble})
        self._watch.enumerate(everything=True)
        self._log.write("keeper.kill", why=why, count=len(self._watch.of_run()))
        left = [
            {"proc": process.proc, "pid": process.pid, "cmdline": process.look.cmdline}
            for process in end_run(self._watch, deadline)
        ]
        if self._cgroup is not None:
            self._cgroup.remove()
        self._report()
        self._log.write("keeper.end", why=why, left=left)
        if self._answer_to is not None:
            self._wire.send({"id": self._answer_to, "ok": True, "left": left})
        self._drain(deadline)
        if why == DRIVER_DIED:
            self._last_words()
        return EXIT_OK if trouble is None and self._log.trouble is None else EXIT_TROUBLE

    def _last_words(self) -> None:
        """Tell the user, on the terminal that the driver had, because nobody else is left who could."""
        if self._tell is None:
            return
        bundle = os.path.dirname(os.path.abspath(self._events))
        text = (
            f"stopdrill: the driver was killed; its run has been ended and nothing of it is left. What was seen until"
            f" then is in {bundle}; `stopdrill score {bundle}` judges it.\n"
        )
        try:
            os.write(self._tell, text.encode(errors="replace"))
        except OSError:
            return  # the terminal is gone too, so there is nobody to tell

    def _drain(self, deadline: float) -> None:
        """Let the driver read the last answers, within the bound."""
        poll = select.poll()
        poll.register(self._wire.sink, select.POLLOUT)
        while self._wire.backlog and (left_s := deadline - time.monotonic()) > 0:
            poll.poll(left_s * 1000)
            self._wire.flush()


def _raise_files_limit() -> tuple[int, int]:
    """Allow ourselves many descriptors; the old limits, which what we start gets back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, hard
