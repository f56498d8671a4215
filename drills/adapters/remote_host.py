"""The program in which an adapter runs when it has a process of its own: `python -m drills.adapters.remote_host SPEC`.

It is told what to do in JSON lines and calls the world back in the same way; `drills.adapters.link` is the other end
and has the messages. What the adapter prints goes to the log that is our stderr, with the traceback of what it raised.
The input's end is the end of this program, and so is the driver's death.
"""

import asyncio
import concurrent.futures
import itertools
import json
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from drills.adapters import own_process, registry, wire
from drills.adapters.answers import ack_from, claims_from
from drills.adapters.base import CONTROLS, Adapter, Site
from drills.errors import HarnessTrouble, UsageProblem

_WORLD_ANSWERS_WITHIN_S = 30.0
_WAIT_MAX_S = 900.0  # the driver has the bound that counts, which may be that of `wait_exit`; this one only ends it


class RemoteSite:
    """The `Site` of an adapter here: facts as they were sent, methods forwarded as `Site` declares them."""

    def __init__(self, facts: dict[str, Any], ask: Callable[..., "concurrent.futures.Future[Any]"]) -> None:
        self.__dict__.update(facts)
        self._ask = ask

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = vars(Site).get(name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"the site has no {name!r}")
        if asyncio.iscoroutinefunction(method):
            return lambda *args, **kwargs: self._wait(name, args, kwargs)
        return lambda *args, **kwargs: self._block(name, args, kwargs)

    def delivered(self) -> None:
        """Told and not asked: waiting for an answer would count against the subject."""
        self._ask("delivered", (), {})

    async def _wait(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(_WAIT_MAX_S):
                return await asyncio.wrap_future(self._ask(name, args, kwargs))
        except TimeoutError:
            raise _no_answer(name, _WAIT_MAX_S) from None

    def _block(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self._ask(name, args, kwargs).result(_WORLD_ANSWERS_WITHIN_S)
        except TimeoutError:
            raise _no_answer(name, _WORLD_ANSWERS_WITHIN_S) from None


def _no_answer(name: str, waited_s: float) -> HarnessTrouble:
    return HarnessTrouble(f"waited {waited_s:g} s for the driver to answer site.{name}()")


class Host:
    """Serves one adapter until its input ends."""

    def __init__(self, adapter: Adapter, source: BinaryIO, sink: BinaryIO) -> None:
        self._adapter, self._source, self._sink = adapter, source, sink
        self._writing = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, concurrent.futures.Future[Any]] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer until the input ends; then cancel what is left."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        # A thread reads, so that answers of the world reach an adapter that waits for them without awaiting.
        threading.Thread(target=self._read, args=(loop, over), name="protocol", daemon=True).start()
        await over.wait()
        for task in list(self._calls.values()):
            task.cancel()

    def _read(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        for line in self._source:
            message = json.loads(line)
            if message["do"] == "answer":
                self._take_answer(message)
            else:
                loop.call_soon_threadsafe(self._take, message)
        loop.call_soon_threadsafe(over.set)

    def _take(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if message["do"] == "cancel":
            if number in self._calls:
                self._calls[number].cancel()
            return
        self._calls[number] = asyncio.ensure_future(self._call(number, message["method"], message["args"]))

    async def _call(self, number: int, method: str, arguments: list[Any]) -> None:
        try:
            ready = [RemoteSite(wire.unpack(arguments[0]), self._ask)] if method == "start" else wire.unpack(arguments)
            value = _checked(method, await getattr(self._adapter, method)(*ready))
            self._write({"do": "answer", "id": number, "value": wire.pack(value)})
        except BaseException as error:
            # BaseException too: SystemExit would otherwise end the loop, and with it every call after this one.
            if not isinstance(error, asyncio.CancelledError):
                traceback.print_exc()
            self._write({"do": "answer", "id": number, "error": f"{type(error).__name__}: {error}"})
        finally:
            self._calls.pop(number, None)

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "concurrent.futures.Future[Any]":
        number = next(self._numbers)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._asked[number] = future
        asked = {"do": "site", "id": number, "method": name, "args": wire.pack(list(args)), "kwargs": wire.pack(kwargs)}
        self._write(asked)
        return future

    def _take_answer(self, message: dict[str, Any]) -> None:
        future = self._asked.pop(message["id"], None)
        # What waits in the loop may have been cancelled meanwhile.
        if future is None or not future.set_running_or_notify_cancel():
            return
        if "error" in message:
            future.set_exception(HarnessTrouble(message["error"]))
        else:
            future.set_result(wire.unpack(message["value"]))

    def _write(self, message: dict[str, Any]) -> None:
        data = wire.line(message)
        with self._writing:
            while data:
                data = data[self._sink.write(data) :]


def _checked(method: str, value: object) -> object:
    if method in (*CONTROLS, "answer"):
        return ack_from(method, value)
    return claims_from(value) if method == "claims" else None


def main() -> None:
    """Load the adapter, say what it is or why there is none, and serve it if that was asked for."""
    source, sink, said = own_process.take_stdio()
    try:
        adapter = registry.load(said["spec"])
    except UsageProblem as problem:
        traceback.print_exc()
        sink.write(wire.line({"problem": str(problem)}))
        return
    shape = registry.shape_of(adapter, said["spec"])
    sink.write(wire.line({"shape": vars(shape) | {"capabilities": wire.pack(shape.capabilities)}}))
    if said["serve"]:
        asyncio.run(Host(cast(Adapter, adapter), source, sink).serve())


if __name__ == "__main__":
    main()
