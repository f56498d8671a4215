"""The adapter of a subject file: a coordinator in any language, driven as the file says.

It starts the coordinator, hands over controls through `actions`, and reads what the coordinator says of itself from
the files and addresses that are given. A start command that ends by itself is no error, because a coordinator may
fork, or be a cron job; one that ends at once with a failure is.
"""

import asyncio
import glob
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from drills.adapters.acks import (
    MISSING,
    ActionFailed,
    Change,
    Refusal,
    acknowledged,
    look,
    read_json,
    read_text,
)
from drills.adapters.actions import Actions
from drills.adapters.base import Ack, BaseAdapter, Capabilities, Claims, Redirect, Site, Table
from drills.adapters.output import cut_back, keep_bounded
from drills.adapters.subject_file import SubjectFile, load
from drills.adapters.subject_parts import Control, Manifest, Query, Workers
from drills.adapters.templates import Values
from drills.world import write_json

_FAILS_AT_ONCE_S = 0.25
_CLOCK_NS = 20_000_000  # file times are those of the last kernel tick, up to 10 ms ago


class TomlAdapter(BaseAdapter):
    """Drives the coordinator of one subject file, whose folder is `folder`."""

    def __init__(self, subject: SubjectFile, folder: Path, spec: str = "") -> None:
        self.name = subject.name
        self.spec = spec or subject.name
        self.capabilities = Capabilities(subject.controls, subject.pause_means, subject.success_exit)
        self._subject, self._folder = subject, folder.absolute()

    @classmethod
    def of(cls, path: Path) -> "TomlAdapter":
        """From a file. Raises UsageProblem with everything that is wrong with it."""
        return cls(load(path), path.parent, str(path.absolute()))

    async def start(self, site: Site) -> None:
        """Write the plan for simulated workers, start the coordinator, wait until it is ready if it says when."""
        site.install_shims(self._subject.shims)
        site.write_plan()
        self._site = site
        self._values = Values.of(site, self._folder)
        self._actions = Actions(site, self._subject.start, self._values)
        self._redirected: list[int] = []
        self._bounding = asyncio.ensure_future(keep_bounded(self._actions.logs))
        await self._launch()

    async def restart(self) -> None:
        """The start command again."""
        await self._launch()

    async def _launch(self) -> None:
        start = self._subject.start
        ready, within_s = start.ready, _FAILS_AT_ONCE_S
        change = Change.of(self._values.path(ready.file)) if ready and ready.file else None
        evidence = await self._actions.spawn("coordinator", start.command or (), self._values)
        log = "world/logs/coordinator.txt"
        if ready is None:
            status = await self._site.wait_exit("coordinator", within_s)
            if status:
                last = evidence.outputs[0].last_line()
                raise ActionFailed(f"start: the start command ended at once with {status}; {log} ends with: {last}")
            return
        within_s = self._site.real(ready.within)
        evidence.file, evidence.exit = change, asyncio.ensure_future(self._site.wait_exit("coordinator", within_s))
        try:
            await acknowledged(ready, evidence, within_s)
        except Refusal as no:
            raise ActionFailed(f"start: the start command ended before it was ready: {no.detail}; see {log}") from None
        except TimeoutError as missing:
            raise ActionFailed(f"start: waited {ready.within:g} s for {missing}; see {log}") from None

    async def pause(self) -> Ack:
        """As [pause] says."""
        return await self._control("pause", self._subject.pause)

    async def resume(self) -> Ack:
        """As [resume] says."""
        return await self._control("resume", self._subject.resume)

    async def redirect(self, instruction: Redirect) -> Ack:
        """As [redirect] says, with the instruction in placeholders and in a file."""
        self._redirected.append(time.monotonic_ns())
        file = self._site.plan.with_name(f"instruction-{instruction.n}.json")
        write_json(file, instruction.to_json())
        return await self._control("redirect", self._subject.redirect, self._values.with_instruction(instruction, file))

    async def abort(self) -> Ack:
        """As [abort] says, with the coordinator's own sweep where it has one."""
        return await self._control("abort", self._subject.abort)

    async def close(self) -> None:
        """As [close] says; a last look at the output."""
        try:
            if self._subject.close is not None:
                await self._actions.perform("close", self._subject.close)
        finally:
            self._bounding.cancel()
            cut_back(self._actions.logs)

    async def _control(self, verb: str, control: Control | None, values: Values | None = None) -> Ack:
        assert control is not None, verb
        done = await self._actions.perform(verb, control, values, self._site.delivered)
        state = control.state if done.refusal is None else "refused"
        return Ack(state=state, sweep=done.sweep, detail=done.refusal or {"by": done.what})

    async def claims(self) -> Claims:
        """What the files and addresses of the subject say now; what does not answer is not said."""
        subject = self._subject
        state, tokens = await asyncio.gather(self._ask("status", subject.status), self._ask("usage", subject.usage))
        return Claims(
            manifest=self._lines(subject.manifest),
            killed=self._lines(subject.killed),
            stalled=self._lines(subject.stalled),
            tables=self._tables(),
            usage_tokens=tokens if type(tokens) is int else _number(tokens),
            state=None if state in (MISSING, None, "") else str(state),
        )

    async def _ask(self, what: str, query: Query | None) -> Any:
        if query is None:
            return None
        try:
            return await self._actions.ask(what, query)
        except ActionFailed as error:
            # A claim that could not be had is none, and not a failure of the others. The author may want to know.
            path = self._site.log("questions")
            self._actions.logs.add(path)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{error}\n")
            return None

    def _lines(self, where: Manifest | Workers | None) -> list[dict[str, Any]]:
        """Records with our names for their fields. Torn lines and those of other runs are left out."""
        if where is None:
            return []
        text = read_text(self._values.path(where.file))
        entries = [_renamed(entry, where.fields) for line in text.splitlines() if (entry := _object(line))]
        return [entry for entry in entries if entry.get("run_id", self._site.run_id) == self._site.run_id]

    def _tables(self) -> list[Table]:
        where = self._subject.table
        if where is None or not self._redirected:
            return []
        path = self._values.path(where.file)
        files = sorted(path.parent.glob(path.name)) if glob.has_magic(path.name) else [path]
        return [table for file in files if (table := self._table(file, where.json_))]

    def _table(self, file: Path, dotted: str | None) -> Table | None:
        """A table; which redirect it belongs to is told by when it was written, which is the file system's word."""
        value = read_json(file)
        tasks = look(value, dotted) if dotted is not None else value
        if not isinstance(tasks, Mapping):
            return None
        written = file.stat().st_mtime_ns - (time.time_ns() - time.monotonic_ns())
        n = sum(t - _CLOCK_NS <= written for t in self._redirected)
        return Table(n, {str(task): str(word) for task, word in tasks.items()}, written) if n else None


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _renamed(entry: Mapping[str, Any], fields: BaseModel) -> dict[str, Any]:
    """A record of the subject's, with what it has of our fields under our names, and all the rest of it."""
    names: dict[str, str] = fields.model_dump()
    found = {ours: look(entry, theirs) for ours, theirs in names.items()}
    return {**entry, **{ours: value for ours, value in found.items() if value is not MISSING}}


def _number(text: Any) -> int | None:
    """A number that was read as text."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else None
