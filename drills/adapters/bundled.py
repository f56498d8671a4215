"""The bundled coordinators as subjects: `reference`, and `broken:NAME` for each negative twin.

They are processes like any other, driven over a control directory, so that they can be killed and restarted. This
adapter knows nothing that a stranger's could not know: it sends requests, and reads the files that the coordinator
writes about itself.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from drills.adapters.base import Ack, BaseAdapter, Capabilities, Claims, Redirect, Site, Table
from drills.errors import HarnessTrouble
from fakes.coordinators.broken import BROKEN, Broken
from fakes.coordinators.files import read_lines
from fakes.coordinators.mailbox import Mailbox, NoReply

_ANSWER_WITHIN_S = 600.0  # the operator's own bound is shorter; this one only keeps the wait from being endless


class BundledAdapter(BaseAdapter):
    """Drives a bundled coordinator; `broken` is None for the reference."""

    capabilities = Capabilities()

    def __init__(self, broken: Broken | None = None) -> None:
        self.name = f"broken:{broken.name}" if broken else "reference"
        self._broken = broken
        self._site: Site | None = None
        self._box: Mailbox | None = None

    async def start(self, site: Site) -> None:
        """Write plan and configuration, start the coordinator, tell it to start all tasks."""
        for wrong in self._broken.misbehaviours if self._broken else ():
            extra = {key: value for key, value in wrong.items() if key not in ("task", "name")}
            site.misbehave(str(wrong["task"]), str(wrong["name"]), **extra)
        site.write_plan()
        self._site, self._box = site, Mailbox(str(site.control))
        await self._serve()
        reply = await self._ask("start")
        if not reply.get("ok"):
            raise HarnessTrouble(f"the coordinator refused to start: {reply.get('error')}")

    async def _serve(self) -> None:
        assert self._site is not None
        package = ["fakes.coordinators.broken", self._broken.name] if self._broken else ["fakes.coordinators.reference"]
        argv = [sys.executable, "-I", "-m", *package, "serve", "--config", str(self._site.config)]
        await self._site.spawn("coordinator", argv)

    async def restart(self) -> None:
        """Start the coordinator again over the state that it left."""
        await self._serve()

    async def pause(self) -> Ack:
        """Ask for a pause; answered when every worker stands at a boundary."""
        return await self._control("pause")

    async def resume(self) -> Ack:
        """Ask for work to go on."""
        return await self._control("resume")

    async def redirect(self, instruction: Redirect) -> Ack:
        """Hand the instruction over; answered when dropped workers have left."""
        return await self._control("redirect", instruction.to_json())

    async def abort(self) -> Ack:
        """Ask for an abort; answered after ladder and sweep."""
        return await self._control("abort")

    async def answer(self, text: str) -> Ack:
        """Answer a question."""
        return await self._control("answer", {"text": text})

    async def _control(self, verb: str, arguments: dict[str, Any] | None = None) -> Ack:
        assert self._box is not None and self._site is not None
        number = self._box.send(verb, arguments)
        self._site.delivered()
        reply = await self._box.reply(number, _ANSWER_WITHIN_S)
        if "question" in reply:
            return Ack(state="asking", question=str(reply["question"]))
        state = str(reply.get("state", "accepted")) if reply.get("ok") else "refused"
        changed = reply.get("changed")
        detail = {key: value for key, value in reply.items() if key not in ("ok", "state", "t", "sweep", "changed")}
        return Ack(state=state, sweep=reply.get("sweep"), changed=changed, detail=detail)

    async def _ask(self, verb: str, within_s: float = _ANSWER_WITHIN_S) -> dict[str, Any]:
        assert self._box is not None
        return await self._box.reply(self._box.send(verb), within_s)

    async def claims(self) -> Claims:
        """Manifest, killed and stalled lines, tables and state, from the coordinator's own files."""
        if self._site is None:
            return Claims()
        control = self._site.control
        status = await self._status()
        return Claims(
            manifest=read_lines(str(self._site.manifest)),
            killed=read_lines(str(control / "killed.jsonl")),
            stalled=read_lines(str(control / "stalled.jsonl")),
            tables=[table for file in sorted(control.glob("table-*.json")) if (table := _table(file))],
            usage_tokens=status.get("tokens"),
            state=str(status["state"]) if "state" in status else None,
        )

    async def _status(self) -> dict[str, Any]:
        """Its answer to `status`; empty when it does not answer, as after its death."""
        try:
            return await self._ask("status", within_s=1.0)
        except NoReply:
            return {}

    async def close(self) -> None:
        """Tell the coordinator to leave; the keeper sees whether and how it did."""
        await self._ask("close", within_s=3.0)


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _table(path: Path) -> Table | None:
    """A table file; when it was written is the file system's word, not the coordinator's."""
    value = _object(path)
    tasks = value.get("tasks")
    if not isinstance(tasks, dict):
        return None
    offset = time.time_ns() - time.monotonic_ns()
    written = path.stat().st_mtime_ns - offset
    return Table(int(value.get("n", 1)), {str(task): str(word) for task, word in tasks.items()}, written)


def broken_names() -> tuple[str, ...]:
    """Names of the broken coordinators, as in `broken:NAME`."""
    return tuple(BROKEN)
