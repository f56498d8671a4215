"""An adapter in a process of its own, seen from the driver: every call is forwarded, and its calls of the world served.

Why a process: an adapter that blocks its interpreter, leaks, or exits must not be able to hurt the driver. Its death in
the middle of a call is the error of that call, in a sentence with its log's path. It is started in `start`, as the
driver's child and no process of the run, and ended in `close`, or by `end` whatever happened. `drills.adapters.link`
has the messages.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from drills.adapters import own_process, wire
from drills.adapters.base import Ack, Claims, Redirect, Site
from drills.adapters.link import MODULE, Link
from drills.adapters.registry import Shape
from drills.errors import HarnessTrouble, UsageProblem

DESCRIBE_WITHIN_S = 20.0


class RemoteAdapter:
    """An `Adapter` that runs `spec` in a process of its own. One process for each start."""

    def __init__(self, spec: str, shape: Shape) -> None:
        self.spec, self.name, self.capabilities = spec, shape.name, shape.capabilities
        self._link: Link | None = None

    @property
    def pid(self) -> int | None:
        """Of its process, once started."""
        return self._link.process.pid if self._link is not None else None

    async def start(self, site: Site) -> None:
        """Start the process, then the subject."""
        self.end()
        self._link = Link(self.spec, site)
        facts = {name: getattr(site, name) for name in Site.__annotations__}
        await self._link.call("start", facts)

    async def pause(self) -> Ack:
        """Forwarded."""
        return await self._ack("pause")

    async def resume(self) -> Ack:
        """Forwarded."""
        return await self._ack("resume")

    async def redirect(self, instruction: Redirect) -> Ack:
        """Forwarded."""
        return await self._ack("redirect", instruction)

    async def abort(self) -> Ack:
        """Forwarded."""
        return await self._ack("abort")

    async def answer(self, text: str) -> Ack:
        """Forwarded."""
        return await self._ack("answer", text)

    async def claims(self) -> Claims:
        """Forwarded; nothing is claimed before the start."""
        if self._link is None:
            return Claims()
        claims = await self._link.call("claims")
        assert isinstance(claims, Claims)
        return claims

    async def restart(self) -> None:
        """Forwarded."""
        await self._started().call("restart")

    async def close(self) -> None:
        """Forwarded; then the process is let go."""
        link = self._started()
        try:
            await link.call("close")
        finally:
            await link.leave()

    def end(self) -> None:
        """End the process if there is one, whatever it is doing; bounded, and a second call does nothing."""
        if self._link is not None:
            self._link.end()

    async def _ack(self, verb: str, *arguments: Any) -> Ack:
        ack = await self._started().call(verb, *arguments)
        assert isinstance(ack, Ack)
        return ack

    def _started(self) -> Link:
        if self._link is None:
            raise HarnessTrouble(f"the adapter {self.name} has not been started")
        return self._link


def describe(spec: str) -> Shape:
    """Import `spec` in a process of its own and say what it is. Raises UsageProblem when that is no adapter."""
    with tempfile.TemporaryDirectory(prefix="stopdrill-") as folder:
        log = Path(folder) / "adapter.txt"
        process = own_process.launch(MODULE, spec, log=log)
        try:
            out, _ = process.communicate(own_process.hello(spec=spec, serve=False), DESCRIBE_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise UsageProblem(f"{spec}: importing it took longer than {DESCRIBE_WITHIN_S:g} s") from None
        finally:
            own_process.end(process)
        wrote = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    try:
        said = json.loads(out)
    except ValueError:
        last = f"; the last that it wrote is: {wrote[-1][:300]}" if wrote else ""
        raise UsageProblem(f"{spec}: importing it ended its process (status {process.returncode}){last}") from None
    if "problem" in said:
        raise UsageProblem(said["problem"])
    return shape_from(said["shape"])


def shape_from(fields: dict[str, Any]) -> Shape:
    """A shape that was sent as JSON."""
    lists = {name: tuple(fields[name]) for name in ("missing", "wrong", "blocking", "hollow")}
    return Shape(fields["name"], wire.unpack(fields["capabilities"]), **lists)


def remote_adapter(spec: str) -> RemoteAdapter:
    """The adapter of `module:attr`, to run in a process of its own. Raises UsageProblem."""
    shape = describe(spec)
    shape.check(spec)
    return RemoteAdapter(spec, shape)
