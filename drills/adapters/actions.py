"""Carrying out one action of a subject file, and asking one of its questions.

An action is a command, a signal, a file or a request. `delivered` is said as soon as it is out of our hands: the
command started, the signal sent, the file in its place, the request written; from there on the time is the subject's.
A command that doesn't end is left alone, because what it still does is part of the truth; a question that
doesn't end is killed, because it was ours. Nothing here knows what a control is for.
"""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.adapters import web
from drills.adapters.acks import (
    ActionFailed,
    Change,
    Evidence,
    Refusal,
    acknowledged,
    look,
    parse_json,
    read_json,
    read_text,
)
from drills.adapters.base import Site
from drills.adapters.output import Output
from drills.adapters.subject_parts import Abort, Control, Http, Query, Start, Sweep
from drills.adapters.templates import Values
from drills.errors import HarnessTrouble
from drills.keeper_client import KeeperError

QUESTION_WITHIN_S = 2.0
"""Real seconds for `status`, `usage` and a sweep: the operator asks several of them within five."""
_SETTLE_LOOKS = 20


@dataclass(frozen=True)
class Done:
    """An action that was answered: `refusal` is what came instead of a yes, `sweep` as `Ack.sweep`."""

    what: str
    refusal: Mapping[str, Any] | None = None
    sweep: Mapping[str, Any] | None = None


class Actions:
    """The actions of one run. `logs` are the files that their processes print to."""

    def __init__(self, site: Site, start: Start, values: Values) -> None:
        self.logs: set[Path] = set()
        self._site, self._values = site, values
        self._cwd = values.path(start.cwd)
        self._env = {name: values.text(value) for name, value in start.env.items()}
        self._numbers = itertools.count(1)

    async def spawn(self, name: str, command: tuple[str, ...], values: Values) -> Evidence:
        """Start a command; what it prints from now on, and its exit once somebody waits for it."""
        output = Output(self._site.log(name))
        self.logs.add(output.path)
        await self._site.spawn(name, values.argv(command), env=self._env, cwd=self._cwd)
        return Evidence(outputs=(output,))

    async def perform(
        self, verb: str, control: Control, values: Values | None = None, delivered: Callable[[], None] = lambda: None
    ) -> Done:
        """Carry out a control and wait for its acknowledgement. Raises ActionFailed with a sentence."""
        values = values or self._values
        within_s = self._site.real(control.within)
        deadline = time.monotonic() + within_s
        what = _describe(control, values)
        sweep = control.sweep if isinstance(control, Abort) else None
        change = Change.of(values.path(sweep.file)) if sweep and sweep.file else None
        try:
            evidence = await self._begin(verb, control, values, within_s, delivered)
        except (OSError, KeeperError, HarnessTrouble) as error:
            if control.signal is not None and isinstance(error, HarnessTrouble):
                # Nobody is left to be signalled, as at a second abort: a "no" of the subject, not a failure of ours.
                return Done(what, {"why": str(error)})
            raise ActionFailed(f"{verb}: {what} was not possible: {error}") from None
        refusal: Mapping[str, Any] | None = None
        try:
            await acknowledged(control.ack, evidence, deadline - time.monotonic())
        except Refusal as no:
            refusal = no.detail
        except web.Unreachable as error:
            raise ActionFailed(f"{verb}: {error}") from None
        except TimeoutError as missing:
            why = f"waited {control.within:g} s ({within_s:.2g} s in real time) for {missing} after {what}"
            raise ActionFailed(f"{verb}: {why}; {_where(evidence)}") from None
        return Done(what, refusal, await self._sweep(sweep, change, evidence, values) if sweep else None)

    async def _begin(
        self, verb: str, control: Control, values: Values, within_s: float, delivered: Callable[[], None]
    ) -> Evidence:
        """Let go of the action; what it can be acknowledged by."""
        ack = control.ack
        # Looked at before the action, because a quick subject is faster than our second look.
        change = Change.of(values.path(ack.file)) if ack and ack.file else None
        evidence = Evidence(outputs=(Output(self._site.log("coordinator")),), file=change)
        if control.command is not None:
            name = f"{verb}-{next(self._numbers)}"
            spawned = await self.spawn(name, control.command, values)
            evidence.outputs = (*spawned.outputs, *evidence.outputs)
            evidence.exit = asyncio.ensure_future(self._site.wait_exit(name, within_s))
        elif control.signal is not None:
            await self._site.signal("coordinator", signal.Signals[f"SIG{control.signal}"])
        elif control.file is not None:
            _write(values.path(control.file), control, values, next(self._numbers))
        elif control.http is not None:
            evidence.answer = self._request(control.http, "POST", values, within_s, delivered)
            return evidence
        delivered()
        return evidence

    def _request(
        self, http: Http, method: str, values: Values, within_s: float, sent: Callable[[], None] = lambda: None
    ) -> "asyncio.Task[web.Answer]":
        headers = {name: values.text(value) for name, value in http.headers.items()}
        url, body = values.text(http.url), values.json(http.json_)
        return asyncio.ensure_future(web.request(http.method or method, url, body, headers, within_s, sent))

    async def ask(self, what: str, query: Query, values: Values | None = None) -> Any:
        """The answer to a question; MISSING when there is none at its place. Raises ActionFailed."""
        values = values or self._values
        try:
            if query.file is not None:
                text = read_text(values.path(query.file))
            elif query.http is not None:
                text = (await self._request(query.http, "GET", values, QUESTION_WITHIN_S)).body
            else:
                text = await self._output(what, query.command or (), values)
        except (OSError, KeeperError, HarnessTrouble, web.Unreachable) as error:
            raise ActionFailed(f"{what}: {error}") from None
        return look(parse_json(text), query.json_) if query.json_ is not None else text.strip()

    async def _output(self, what: str, command: tuple[str, ...], values: Values) -> str:
        name = f"{what}-{next(self._numbers)}"
        evidence = await self.spawn(name, command, values)
        status = await self._site.wait_exit(name, QUESTION_WITHIN_S)
        if status is None:
            await self._site.signal(name, signal.SIGKILL)
            raise ActionFailed(f"{what}: waited {QUESTION_WITHIN_S:g} s in real time for its exit; {_where(evidence)}")
        if status:
            raise ActionFailed(f"{what}: it ended with {status}; {_where(evidence)}")
        return evidence.outputs[0].text()

    async def _sweep(
        self, sweep: Sweep, change: Change | None, evidence: Evidence, values: Values
    ) -> Mapping[str, Any] | None:
        """The coordinator's own list; None when there is none that was made after the abort."""
        found: Any = None
        if change is not None:
            found = await _settled(change)
        elif sweep.command or sweep.http:
            try:
                found = parse_json(str(await self.ask("sweep", sweep.model_copy(update={"json_": None}), values)))
            except ActionFailed:
                return None
        else:
            found = parse_json(evidence.said())
        found = look(found, sweep.json_) if sweep.json_ is not None else found
        if isinstance(found, list):
            return {"alive": found}
        return found if isinstance(found, Mapping) else None


async def _settled(change: Change) -> Any:
    """The JSON of a file that was written; a moment is left to one that is not written in one go."""
    for _ in range(_SETTLE_LOOKS):
        if change.happened() and (found := read_json(change.path)) is not None:
            return found
        await asyncio.sleep(0.01)
    return None


def _write(path: Path, control: Control, values: Values, number: int) -> None:
    """Text or JSON go in whole, by rename: the subject never reads half of it."""
    if control.touch:
        path.touch()
        return
    text = values.text(control.text) if control.text is not None else json.dumps(values.json(control.json_)) + "\n"
    partial = path.with_name(f".{path.name}.{number}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _describe(control: Control, values: Values) -> str:
    if control.command is not None:
        return f"the command {control.command[0]}"
    if control.signal is not None:
        return f"signal {control.signal} to the coordinator"
    if control.http is not None:
        return f"{control.http.method or 'POST'} {values.text(control.http.url)}"
    return f"writing {values.path(control.file or '')}"


def _where(evidence: Evidence) -> str:
    """Where to read on: the output, below the bundle, and its last words."""
    output = evidence.outputs[0]
    last = output.last_line()
    place = Path("world", "logs", output.path.name)
    return f"its output is in {place}, and ends with: {last}" if last else f"{place} has no output of it"
