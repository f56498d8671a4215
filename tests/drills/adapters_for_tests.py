"""Adapters that misbehave, built on the reference: what an author gets wrong, one thing each."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from typing import ClassVar, NoReturn

from drills import Ack, BaseAdapter, Capabilities, Claims, Site
from drills.adapters.bundled import BundledAdapter


class Raises(BundledAdapter):
    """Its pause raises."""

    async def pause(self) -> NoReturn:
        raise RuntimeError("no such session")


class Hangs(BundledAdapter):
    """Its pause never comes back, and blocks its whole thread at that."""

    async def pause(self) -> Ack:
        threading.Event().wait(3600)
        return Ack()


class Lies(BundledAdapter):
    """Says paused without asking anybody."""

    async def pause(self) -> Ack:
        return Ack(state="paused")


class Lacks(BundledAdapter):
    """Has an abort and nothing else."""

    capabilities = Capabilities(controls={"abort": "run"})


class CannotStart(BundledAdapter):
    """Its start command does not exist."""

    async def start(self, site: Site) -> None:
        await site.spawn("coordinator", ["/nonexistent/coordinator"])


class StartsNobody(BundledAdapter):
    """Starts a coordinator that starts no worker."""

    async def start(self, site: Site) -> None:
        self._site = site
        await site.spawn("coordinator", ["/bin/sh", "-c", "exit 0"])


class Prints(BundledAdapter):
    """Prints what looks like the protocol and like nothing, and has a program print too."""

    async def pause(self) -> Ack:
        print('{"do": "answer", "id": 1, "value": 7}\n\x00\xff{')
        subprocess.run(["/bin/echo", "from a program"], check=True)  # noqa: ASYNC221 (as authors do)
        os.write(1, b"from the descriptor\n")
        return await super().pause()


class Exits(BundledAdapter):
    """Its pause ends the interpreter."""

    async def pause(self) -> NoReturn:
        print("about to exit", file=sys.stderr, flush=True)
        os._exit(7)


class Quits(BundledAdapter):
    """Its pause raises what is no Exception."""

    async def pause(self) -> NoReturn:
        raise SystemExit(3)


class Deaf(BundledAdapter):
    """Its pause blocks the thread, and it ignores TERM."""

    async def pause(self) -> Ack:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Event().wait(3600)
        return Ack()


class Careless(BundledAdapter):
    """A bit of everything that does not keep a fleet from working."""

    strays: ClassVar[list["subprocess.Popen[bytes]"]] = []

    def __init__(self) -> None:
        super().__init__()
        self._aborts = 0

    async def start(self, site: Site) -> None:
        print("starting")
        self.strays.append(subprocess.Popen(["/bin/sleep", "60"]))  # noqa: ASYNC220 (as authors do)
        await super().start(site)

    async def pause(self) -> Ack:
        return Ack(state="paused")  # nobody was asked, and nothing delivered

    async def resume(self) -> Ack:
        return "running"  # type: ignore[return-value]

    async def abort(self) -> Ack:
        self._aborts += 1
        if self._aborts == 2:
            raise RuntimeError("already aborted")
        return await super().abort()

    async def claims(self) -> Claims:
        claims = await super().claims()
        lines = [{key: value for key, value in line.items() if key != "branch"} for line in claims.manifest]
        return replace(claims, manifest=[{**line, "started": {1, 2}} for line in lines])

    async def close(self) -> None:
        """Lets nobody go."""

    @classmethod
    def clean_up(cls) -> None:
        """For the test: what it left."""
        for stray in cls.strays:
            stray.kill()
            stray.wait()


class NoAdapter:
    """Has a name and a start that is not even async."""

    name = "no-adapter"

    def start(self, site: Site) -> None: ...


class Hollow(BaseAdapter):
    """Declares a pause that it does not have."""

    capabilities = Capabilities(controls={"pause": "run"})


class Odd(BaseAdapter):
    """Declares what there is not."""

    capabilities = Capabilities(controls={"stop": "fleet"})  # type: ignore[dict-item]


def needs_arguments(path: str) -> BundledAdapter:
    """No factory for us."""
    return BundledAdapter()


def factory() -> BundledAdapter:
    """A factory."""
    return BundledAdapter()


instance = BundledAdapter()
