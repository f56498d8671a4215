"""Where an adapter runs: a thread and an event loop of its own, every call bounded.

Why a thread: an adapter that blocks instead of awaiting would otherwise stop the whole drill, its clock included.
A call that does not come back is given up, not waited for; the thread is a daemon, so that it cannot keep the
harness alive either.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_CLOSE_WITHIN_S = 1.0


class AdapterQuit(Exception):
    """The adapter tried to end the interpreter. A real Ctrl-C never comes to its thread."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of a call: a value, the text of what it raised, or neither when the bound passed."""

    value: T | None = None
    error: str | None = None
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it returned."""
        return self.error is None and not self.timed_out


class AdapterHost:
    """Runs an adapter's methods in one daemon thread; `call` may be awaited from the driver's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="adapter", daemon=True)
        self._thread.start()

    async def call(self, method: Callable[..., Awaitable[T]], *arguments: Any, within_s: float) -> Outcome[T]:
        """Await `method(*arguments)` in the adapter's loop for at most `within_s` real seconds. Never raises."""

        async def bounded() -> T:
            try:
                return await method(*arguments)
            except (SystemExit, KeyboardInterrupt) as error:
                # As they are they would end this loop, and with it every call after this one.
                raise AdapterQuit(_sentence(error)) from None

        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(bounded(), self._loop)
        try:
            waiting: asyncio.Future[T] = asyncio.wrap_future(future)
            # Not wait_for: before Python 3.12 it swallows a cancellation that comes in the instant of the result.
            async with asyncio.timeout(within_s):
                return Outcome(value=await waiting)
        except TimeoutError:
            if future.done() and not future.cancelled():
                return Outcome(error=_sentence(future.exception()))
            return Outcome(timed_out=True)
        except asyncio.CancelledError:
            future.cancel()
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            return Outcome(error="CancelledError: the adapter cancelled its own call")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Outcome(error=_sentence(error))

    def close(self) -> None:
        """Cancel what is left and stop the loop; gives up after a second if the adapter blocks its thread."""

        async def wind_up() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=0.5)
            self._loop.stop()

        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(wind_up(), self._loop)
            self._thread.join(_CLOSE_WITHIN_S)


def _sentence(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}" if error is not None else "it ended without a result"
