"""An adapter that raises, hangs, blocks or cancels itself is an outcome, not a crash."""

import asyncio
import threading
from typing import NoReturn

from drills.adapters.host import AdapterHost


async def fine() -> int:
    return 7


async def raises() -> NoReturn:
    raise ValueError("no such session")


async def cancels() -> NoReturn:
    raise asyncio.CancelledError


async def hangs() -> None:
    await asyncio.Event().wait()


def test_values_and_errors_come_back_as_outcomes() -> None:
    """Hazard: an exception of the subject's adapter ends the drill and leaves its processes."""

    async def main() -> None:
        host = AdapterHost()
        assert (await host.call(fine, within_s=5)).value == 7
        assert (await host.call(raises, within_s=5)).error == "ValueError: no such session"
        assert "cancelled" in str((await host.call(cancels, within_s=5)).error)
        assert (await host.call(hangs, within_s=0.05)).timed_out
        assert (await host.call(fine, within_s=5)).value == 7
        host.close()

    asyncio.run(main())


def test_an_adapter_that_wants_to_end_the_interpreter_is_asked_again() -> None:
    """Hazard: SystemExit or KeyboardInterrupt ends the adapter's loop, and every later control times out."""

    async def quits(error: BaseException) -> NoReturn:
        raise error

    async def main() -> None:
        host = AdapterHost()
        for error in (SystemExit(3), KeyboardInterrupt()):
            assert type(error).__name__ in str((await host.call(quits, error, within_s=5)).error)
        assert (await host.call(fine, within_s=5)).value == 7
        host.close()

    asyncio.run(main())


def test_an_adapter_that_blocks_its_thread_is_given_up() -> None:
    """Hazard: `time.sleep` or a lock inside an async method stops the drill's own clock."""

    async def main() -> None:
        host = AdapterHost()
        release = threading.Event()

        async def blocks() -> None:
            release.wait(30)

        assert (await host.call(blocks, within_s=0.05)).timed_out
        assert (await host.call(fine, within_s=0.05)).timed_out
        release.set()
        host.close()

    asyncio.run(main())


def test_cancelling_the_caller_is_not_swallowed() -> None:
    """Hazard: Ctrl-C while an adapter hangs must end the drill, not become an outcome."""

    async def main() -> bool:
        host = AdapterHost()
        call = asyncio.ensure_future(host.call(hangs, within_s=30))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call}, timeout=5)
        host.close()
        return call.cancelled()

    assert asyncio.run(main())
