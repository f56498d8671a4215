"""Adapters that misbehave, built on the reference: what an author gets wrong, one thing each."""

import threading
from typing import NoReturn

from drills import Ack, Capabilities, Site
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
