"""A coordinator as a program: configuration in, requests from the mailbox, one reply to each, an exit
status out.

Every request is handled beside the others, because an abort has to get through while a pause still waits.
SIGTERM and SIGINT end the program as a crash would, with the state on disk and the workers alive: only an
abort stops workers. SIGHUP is ignored, so that an operator's terminal may die. A second coordinator of the
same run is refused.

Exit status: what `close` announced; 2 for a configuration that cannot be used; 128 + n after signal n.
"""

import argparse
import asyncio
import fcntl
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from fakes.coordinators.mailbox import Mailbox, Request
from fakes.coordinators.reference.config import Config, ConfigError, load
from fakes.coordinators.reference.coordinator import Coordinator
from fakes.coordinators.reference.posix import PosixPort

Make = Callable[[Config], Coordinator]


def reference(config: Config) -> Coordinator:
    """The reference coordinator in the real world."""
    return Coordinator(PosixPort(config), config.settings, config.tasks)


def main(make: Make, argv: list[str]) -> int:
    """`serve --config FILE`; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--config", required=True, metavar="FILE")
    options = parser.parse_args(argv)
    try:
        config = load(options.config)
        lock = _alone(config.control)
    except ConfigError as why:
        print(f"coordinator: {why}", file=sys.stderr)
        return 2
    try:
        return asyncio.run(serve(make, config))
    finally:
        os.close(lock)


async def serve(make: Make, config: Config) -> int:
    """Run a coordinator until it is closed or signalled."""
    over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    _on_signals(over)
    mailbox = Mailbox(config.control, config.settings.poll_s)
    coordinator = make(config)
    work = [asyncio.create_task(_must_last(coordinator.run_watch(), over))]
    if coordinator.begin():
        work.append(asyncio.create_task(_must_last(coordinator.finish_abort(), over)))
    work.append(asyncio.create_task(_must_last(_attend(coordinator, mailbox, over), over)))
    try:
        return await over
    finally:
        for task in work:
            task.cancel()


async def _attend(coordinator: Coordinator, mailbox: Mailbox, over: "asyncio.Future[int]") -> None:
    """Begin each request as it comes. Its first steps run in the order of arrival, the rest side by side."""
    running: set[asyncio.Task[None]] = set()
    async for request in mailbox.requests():
        task = asyncio.create_task(_answer(coordinator, mailbox, request, over))
        running.add(task)
        task.add_done_callback(running.discard)


async def _answer(coordinator: Coordinator, mailbox: Mailbox, request: Request, over: "asyncio.Future[int]") -> None:
    try:
        reply = await coordinator.handle(request.verb, request.args)
    except Exception as why:  # a control must never stay without an answer, whatever broke
        traceback.print_exc()
        reply = {"ok": False, "state": coordinator.state(), "error": f"{type(why).__name__}: {why}"}
    mailbox.answer(request, reply)
    if coordinator.exit_status is not None and not over.done():
        over.set_result(coordinator.exit_status)


async def _must_last(work: Any, over: "asyncio.Future[int]") -> None:
    """A coordinator whose watch has crashed must not look alive."""
    try:
        await work
    except Exception as why:
        if not over.done():
            over.set_exception(why)


def _on_signals(over: "asyncio.Future[int]") -> None:
    loop = asyncio.get_running_loop()

    def leave(number: int) -> None:
        if not over.done():
            over.set_result(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _alone(control: str) -> int:
    """Hold the lock of this control directory for as long as the process lives. Raises ConfigError."""
    os.makedirs(control, exist_ok=True)
    fd = os.open(os.path.join(control, "coordinator.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ConfigError(f"{control}: another coordinator serves this run") from None
    return fd
