"""The driver's end of the line to an adapter's process: calls go out, answers and calls of the world come back.

JSON lines. To the process (`drills.adapters.remote_host`), after a first line with its spec and import path:

    {"do": "call", "id": 7, "method": "pause", "args": []}     {"do": "cancel", "id": 7}
    {"do": "answer", "id": 3, "value": …}                      or with "error": a sentence

and from it, after a first line with its `shape` or the `problem` that there is none:

    {"do": "answer", "id": 7, "value": …}                      or with "error"
    {"do": "site", "id": 3, "method": "spawn", "args": […], "kwargs": {…}}

Every call ends: with its answer, or with the death of the process. A process that writes what is no message is ended.
"""

import asyncio
import inspect
import itertools
import json
import os
import signal
from typing import Any

from drills.adapters import own_process, wire
from drills.adapters.base import Site
from drills.errors import HarnessTrouble
from drills.keeper import pidfd

MODULE = "drills.adapters.remote_host"
_LEAVE_WITHIN_S = 1.0
_TERM_WITHIN_S = 0.4  # below what `AdapterHost.close` waits for what it cancelled
_MESSAGE_MAX = 64 << 20
_SITE_METHODS = frozenset(name for name, value in vars(Site).items() if name[0] != "_" and callable(value))


class AdapterRaised(Exception):
    """What the adapter raised in its own process, with the type's name."""


class Link:
    """One process and the calls under way; lives in the loop that it was made in, the adapter host's."""

    def __init__(self, spec: str, site: Site) -> None:
        self._site, self._loop = site, asyncio.get_running_loop()
        self.log = site.run_dir / "world" / "logs" / "adapter.txt"
        self.process = own_process.launch(MODULE, spec, site.run_id, log=self.log)
        self._calls: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._numbers = itertools.count(1)
        self._gone: asyncio.Future[str] = self._loop.create_future()
        self._served: set[asyncio.Task[None]] = set()
        self._unread = b""
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        # Its death is watched, not the end of its output: what it forked may hold that open.
        self._pidfd = os.pidfd_open(self.process.pid)
        os.set_blocking(self._out, False)
        self._send(own_process.hello(spec=spec, serve=True))
        os.set_blocking(self._in, False)
        self._loop.add_reader(self._out, self._read)
        self._loop.add_reader(self._pidfd, self._died)
        self._guard = asyncio.ensure_future(self._end_when_cancelled())

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the adapter there. Raises AdapterRaised, or HarnessTrouble when its process is gone."""
        if self._gone.done():
            raise HarnessTrouble(f"{method} could not be asked: {self._gone.result()}")
        number = next(self._numbers)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls[number] = (method, future)
        self._send(wire.line({"do": "call", "id": number, "method": method, "args": wire.pack(list(arguments))}))
        try:
            return await future
        except asyncio.CancelledError:
            self._send(wire.line({"do": "cancel", "id": number}))
            raise
        finally:
            self._calls.pop(number, None)

    async def leave(self) -> None:
        """Close its input and give it a moment to end by itself; what does not is for `RemoteAdapter.end`."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        await asyncio.wait({self._gone}, timeout=_LEAVE_WITHIN_S)

    async def _end_when_cancelled(self) -> None:
        """An interrupted run never comes to `close`: its host cancels what is left, which is this, and waits a bit."""
        try:
            await asyncio.shield(self._gone)
        except asyncio.CancelledError:
            self._signal(signal.SIGTERM)
            await asyncio.wait({self._gone}, timeout=_TERM_WITHIN_S)
            raise

    def end(self) -> None:
        """See `RemoteAdapter.end`; by now nothing is served any more, so it may be called from any thread."""
        own_process.end(self.process)
        self._close_handle()

    def _signal(self, number: int) -> None:
        # Not through Popen's methods, which would reap it and take its status from `_died`.
        if self._pidfd >= 0:
            pidfd.send(self._pidfd, number)

    def _close_handle(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            return
        try:
            if os.write(self._in, data) != len(data):
                self._break("it does not read what it is told")
        except BlockingIOError:
            self._break("it does not read what it is told")
        except BrokenPipeError:
            pass  # it has died, which is about to be noticed

    def _read(self) -> bool:
        """Take what can be read now; False when there was nothing."""
        try:
            data = os.read(self._out, 1 << 20)
        except BlockingIOError:
            return False
        if not data:
            # Dead, or near its end. One that closed its output and lives on is given up by the bounds of its calls.
            self._loop.remove_reader(self._out)
            return False
        *lines, self._unread = (self._unread + data).split(b"\n")
        if len(self._unread) > _MESSAGE_MAX:
            self._break(f"it wrote a message of more than {_MESSAGE_MAX:,} bytes")
        for line in lines:
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self._break(f"it wrote what is no message ({type(error).__name__}: {error})")
        return True

    def _take(self, message: dict[str, Any]) -> None:
        if "do" not in message:
            if "problem" in message:
                self._break(str(message["problem"]))
        elif message["do"] == "site":
            served = self._serve(message["id"], message["method"], message["args"], message["kwargs"])
            task = asyncio.ensure_future(served)
            self._served.add(task)
            task.add_done_callback(self._served.discard)
        else:
            _, future = self._calls.get(message["id"], ("", None))
            if future is None or future.done():
                return  # given up meanwhile
            if "error" in message:
                future.set_exception(AdapterRaised(message["error"]))
            else:
                future.set_result(wire.unpack(message["value"]))

    async def _serve(self, number: int, name: str, args: Any, kwargs: Any) -> None:
        """Do what the adapter asked of its site, and say what came of it."""
        answer: dict[str, Any] = {"do": "answer", "id": number}
        try:
            if name not in _SITE_METHODS:
                raise HarnessTrouble(f"the site has no {name!r}")
            value = getattr(self._site, name)(*wire.unpack(args), **wire.unpack(kwargs))
            answer["value"] = wire.pack(await value if inspect.isawaitable(value) else value)
        except Exception as error:  # a wrong argument of the adapter's is its own to hear of
            answer["error"] = f"{type(error).__name__}: {error}"
        self._send(wire.line(answer))

    def _break(self, why: str) -> None:
        """It broke the protocol: end it, and say why instead of how it died."""
        self._tell(f"the adapter's process was ended, because {why}; see {self.log}")
        self._signal(signal.SIGKILL)

    def _died(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._close_handle()
        while self._read():
            pass  # an answer that it wrote before it died is an answer
        self._loop.remove_reader(self._out)
        status = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        how = "ended" if status is None else f"was killed by signal {status.si_status}"
        if status is not None and status.si_code == os.CLD_EXITED:
            how = f"ended with status {status.si_status}"
        self._tell(f"the adapter's process {how}; what it wrote is in {self.log}")

    def _tell(self, what: str) -> None:
        if not self._gone.done():
            self._gone.set_result(what)
        for method, future in self._calls.values():
            if not future.done():
                future.set_exception(HarnessTrouble(f"in the middle of {method}, {what}"))
