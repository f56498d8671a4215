"""The operator: issues each control at its time or condition and writes down what the subject answered.

Nothing is judged here. A control is stamped (the contract's instant c) immediately before it is handed to the
adapter; the answer is a claim. Every wait is bounded, and an adapter that raises or hangs becomes an event.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from drills.adapters.answers import ack_from, claims_from
from drills.adapters.base import Ack, Adapter, Claims, Redirect
from drills.adapters.host import AdapterHost, Outcome
from drills.errors import HarnessTrouble
from drills.keeper_client import KeeperError
from drills.observers.watch import Watch
from drills.script import Drill, Step
from drills.world import World, expected_table
from scoring.journal import Journal

_RESUME = Step.model_validate({"do": "resume", "at": "0s"})
"""What follows a pause that has a hold of its own."""


class Operator:
    """Issues the controls of one drill. `start_clock` sets the drill's zero."""

    def __init__(
        self, drill: Drill, world: World, adapter: Adapter, host: AdapterHost, journal: Journal, watch: Watch
    ) -> None:
        self._drill, self._world, self._journal = drill, world, journal
        self._adapter, self._host, self._watch = adapter, host, watch
        self._zero = 0.0
        self._said: set[str] = set()
        self._current: tuple[str, int] | None = None
        self._redirects = 0
        self._issued = 0
        self._background: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start_clock(self) -> None:
        """The drill's zero is now."""
        self._zero = time.monotonic()

    @property
    def clock(self) -> float:
        """Drill seconds since zero; 0 before the clock runs."""
        return (time.monotonic() - self._zero) * self._drill.speed if self._zero else 0.0

    async def until(self, drill_seconds: float) -> None:
        """Sleep until the drill clock shows this. Raises what went wrong in the operator's other tasks meanwhile."""
        delay = self._zero + self._drill.real(drill_seconds) - time.monotonic()
        done, _ = await asyncio.wait({self._failure}, timeout=max(0.0, delay))
        for failure in done:
            failure.result()

    def delivered(self) -> None:
        """Called by the adapter, from its own thread, when a control has reached the subject."""
        if self._current is not None:
            control, n = self._current
            self._journal.write("control.delivered", control=control, n=n)

    async def perform(self) -> None:
        """Issue all controls in order, each at its time whether or not the one before has been answered."""
        try:
            for step in self._drill.controls:
                await self.until(step.earliest)
                if step.when is not None and not await self._met(step):
                    continue
                await self._begin(step, self._hold_end(step))
                if step.hold is not None:
                    await self.until(self.clock + step.hold)
                    await self._begin(_RESUME.model_copy(update={"answer_within": step.answer_within}), 0.0)
            await self.until(self._drill.end)
        finally:
            if not self._failure.done():
                self._failure.cancel()
            for task in list(self._background):
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)

    async def _begin(self, step: Step, hold_end: float) -> None:
        """Set a control going, and the looks that belong to it, without waiting for any of them."""
        self._issued += 1
        n = self._issued
        self._spawn(self._issue(step, n))
        if step.do == "pause":
            self._spawn(self._watch.quiet(n, hold_end))
        if step.do == "abort":
            self._spawn(self._watch.snapshot(f"abort@{n}:issue"))
            self._spawn(self._sweep(n, time.monotonic()))
        # The control's own task must reach the adapter before the next step is looked at.
        await asyncio.sleep(0)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)

        def done(finished: asyncio.Task[None]) -> None:
            self._background.discard(finished)
            error = None if finished.cancelled() else finished.exception()
            if error is not None and not self._failure.done():
                ours = isinstance(error, OSError | KeeperError)
                self._failure.set_exception(error if ours else HarnessTrouble(f"{type(error).__name__}: {error}"))

        task.add_done_callback(done)

    async def _met(self, step: Step) -> bool:
        assert step.when is not None
        met = await self._watch.condition(step.when, self._drill.task_ids, self._drill.real(step.within))
        kind = "condition.met" if met else "condition.expired"
        self._journal.write(kind, control=step.do, n=self._issued + 1, condition=step.when)
        return met

    def _hold_end(self, step: Step) -> float:
        """Real instant at which the hold of a pause that is issued now will end."""
        if step.hold is not None:
            return time.monotonic() + self._drill.real(step.hold)
        index = self._drill.controls.index(step)
        later = [s.earliest for s in self._drill.controls[index + 1 :] if s.do in ("resume", "abort", "pause")]
        return self._zero + self._drill.real(min([*later, self._drill.end]))

    async def _sweep(self, n: int, issued: float) -> None:
        """The observer's own sweep, at c + sweep_after, whatever the subject says."""
        await asyncio.sleep(max(0.0, issued + self._drill.real(self._drill.abort.sweep_after) - time.monotonic()))
        await self._watch.snapshot(f"abort@{n}:sweep", processes=True)

    async def _issue(self, step: Step, n: int) -> None:
        extra, arguments = self.content(step)
        self._current = (step.do, n)
        self._journal.write("control.issue", control=step.do, n=n, scope=step.scope, **extra)
        if step.do not in self._adapter.capabilities.controls:
            self._journal.write("control.absent", control=step.do, n=n)
            return
        bound_s = self._drill.real(step.answer_within)
        outcome = await self._host.call(self._ask, step.do, *arguments, within_s=bound_s)
        if outcome.value is not None and outcome.value.question is not None:
            self._journal.write("control.question", control=step.do, n=n, text=outcome.value.question[:2000])
            outcome = await self._host.call(self._ask, "answer", "yes", within_s=bound_s)
        self._answer(step.do, n, outcome, bound_s)
        await self.collect_claims()

    async def _ask(self, verb: str, *arguments: Any) -> Ack:
        """In the adapter's loop: the call, and whether an answer came back at all, because that is its own fault."""
        return ack_from(verb, await getattr(self._adapter, verb)(*arguments))

    async def _ask_claims(self) -> Claims:
        return claims_from(await self._adapter.claims())

    def content(self, step: Step) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """What a redirect says: paths for the subject, marks and the expected table for the history."""
        said = step.instruction
        if said is None:
            return {}, ()
        self._redirects += 1
        number = self._redirects
        files = {task: list(record["files"]) for task, record in self._world.tasks.items()}
        changes = tuple(
            {
                "paths": [path for task in change.tasks for path in files.get(task, [])],
                "delta": f"{change.delta} {self._world.mark('delta', f'{number}.{index}')}",
            }
            for index, change in enumerate(said.changes, 1)
        )
        drops = tuple(path for task in said.drops for path in files.get(task, []))
        adds = tuple(
            {
                "task": add.task,
                "title": add.title,
                "files": list(add.files or (f"packages/{add.task}/deps.lock",)),
            }
            for add in said.adds
        )
        text = f"{said.text} {self._world.mark('instruction', number)}"
        redirect = Redirect(number, text, changes, drops, adds)
        return {"instruction": redirect.to_json(), "expected": expected_table(self._drill, said)}, (redirect,)

    def _answer(self, control: str, n: int, outcome: Outcome[Ack], bound_s: float) -> None:
        if outcome.timed_out:
            self._journal.write("control.timeout", control=control, n=n, after_s=bound_s)
        elif outcome.value is None:
            self._journal.write("control.error", control=control, n=n, reason=(outcome.error or "no answer")[:2000])
        else:
            ack = outcome.value
            self._journal.write(
                "control.ack",
                control=control,
                n=n,
                state=ack.state,
                changed=ack.changed,
                detail=_plain(ack.detail),
            )
            if ack.sweep is not None:
                sweep = _plain(ack.sweep)
                self._journal.write(
                    "claim.sweep",
                    control=control,
                    n=n,
                    alive=sweep.get("alive", []),
                    dirty=sweep.get("dirty", []),
                )

    async def collect_claims(self, *, final: bool = False) -> None:
        """Ask the subject what it says of itself, and write down what is new."""
        outcome = await self._host.call(self._ask_claims, within_s=5.0)
        claims = outcome.value
        if claims is None:
            why = outcome.error or "no answer within 5 s"
            self._once("observe.missing", {"what": "the subject's claims", "why": why})
            return
        for entry in claims.manifest:
            self._once("claim.manifest", {"entry": _plain(entry)})
        for entry in claims.killed:
            self._once("claim.killed", {"entry": _plain(entry)})
        for entry in claims.stalled:
            self._once("claim.stalled", {"task": str(entry.get("task")), "entry": _plain(entry)})
        for table in claims.tables:
            self._once("claim.table", {"n": table.n, "tasks": dict(table.tasks), "written_t": table.written_t})
        self._journal.write("claims.collected", final=final)
        if final and claims.usage_tokens is not None:
            self._once("claim.usage", {"tokens": claims.usage_tokens})
        if final and claims.state is not None:
            self._once("claim.state", {"state": claims.state})

    def _once(self, kind: str, fields: dict[str, Any]) -> None:
        key = kind + json.dumps(fields, sort_keys=True, default=str)
        if key not in self._said:
            self._said.add(key)
            self._journal.write(kind, **fields)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """A subject's mapping as plain JSON: what can't be written as such becomes its repr, never an exception."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(value), default=repr))
    return plain
