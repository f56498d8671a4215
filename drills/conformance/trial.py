"""A trial: a small real run in which an adapter is called by a script instead of by a drill's operator.

The script (`drills.conformance.scenes`) gets a `Trial` and calls through it; each call is bounded, its answer is held
against what the world saw in that instant, and all of it becomes a record. Nothing is judged here.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from drills.adapters.answers import ack_from, claims_from
from drills.adapters.base import CONTROLS, Ack, Adapter, Claims, Site
from drills.adapters.host import AdapterHost, Outcome
from drills.adapters.site import DriverSite
from drills.conduct import Conductor
from drills.conformance import truth
from drills.conformance.evidence import Called
from drills.keeper_client import KeeperClient
from drills.observers.watch import Watch, wait_for
from drills.operator import Operator
from drills.script import Drill

START_WITHIN_S = 15.0
CLAIMS_WITHIN_S = 5.0
CLOSE_WITHIN_S = 5.0
_HEARD_EVERY_S = 0.1
_EXIT_WITHIN_S = 2.0
_LINGERS_S = 0.2

Script = Callable[["Trial"], Awaitable[None]]


class SceneOver(Exception):
    """A call blocked the adapter's thread for good: nothing after it could be told apart from that."""


class _Site:
    """The site, with an eye on `delivered`."""

    def __init__(self, site: DriverSite) -> None:
        self._site, self.delivered_n = site, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    def delivered(self) -> None:
        self.delivered_n += 1
        self._site.delivered()


class Trial(Conductor):
    """One run of one script. `calls`, `manifest`, `not_json`, `idle` and `left` are what was seen."""

    def __init__(self, drill: Drill, adapter: Adapter, out: Path, script: Script, answer_within_s: float) -> None:
        super().__init__(drill, drill.to_toml(), adapter, out, None)
        self.calls: list[Called] = []
        self.manifest: list[Mapping[str, Any]] = []
        self.idle: str | None = None
        self.left: list[str] = []
        self.not_json: list[str] = []
        self.stuck = False
        self.dead = False
        self._script, self._answer_within_s = script, answer_within_s
        self._seen: _Site | None = None
        self._aborted = self._said_changed = False

    async def _acts(
        self, keeper: KeeperClient, host: AdapterHost, site: DriverSite, operator: Operator, watch: Watch
    ) -> None:
        self._hands = (keeper, host, site, operator)
        self._seen = _Site(site)
        strangers = truth.children_outside(keeper)
        try:
            await self._script(self)
        except SceneOver:
            self.stuck = True
            return
        gone = await wait_for(lambda: site.coordinator not in self._tail.fleet.processes, _EXIT_WITHIN_S)
        if self._aborted and not gone and not self.dead:
            self.left.append(
                f"its coordinator is still alive {_EXIT_WITHIN_S:g} s after abort and close: close() has to let it go"
            )
        await asyncio.sleep(_LINGERS_S)  # for our own git commands, and for what ends by itself
        self.left += [
            f"it started {what} by itself: only what site.spawn() starts is seen and ended"
            for pid, what in truth.children_outside(keeper).items()
            if pid not in strangers
        ]

    @property
    def began(self) -> bool:
        """Whether it started and was not stuck at once."""
        first = next((call for call in self.calls if call.method == "start"), None)
        return first is not None and self.idle is None and first.error is None and not first.timed_out

    # What scripts do

    def has(self, control: str) -> bool:
        """Whether the adapter declares it."""
        return control in self.adapter.capabilities.controls

    async def start(self, kind: str) -> bool:
        """Start it; False when its fleet did not come to work."""
        assert self._seen is not None
        when = "the first start" if kind == "starts" else "another start"
        done = await self.call(kind, when, "start", cast(Site, self._seen), within_s=START_WITHIN_S)
        if done.error is not None or done.timed_out:
            return False
        tasks = self.drill.task_ids
        if await wait_for(lambda: self._tail.fleet.at_work(tasks), START_WITHIN_S):
            return True
        began = self._tail.fleet.began(tasks)
        self.idle = (
            f"{when}: {began} of {len(tasks)} tasks had a worker that made a tool call {START_WITHIN_S:g} s later"
        )
        return False

    async def control(self, kind: str, when: str, verb: str, *arguments: Any) -> Called | None:
        """Issue a control and hold its answer against the world; None when the adapter does not declare it."""
        if not self.has(verb):
            return None
        done = await self.call(kind, when, verb, *arguments)
        if done.state is not None and kind != "overlapping":
            untrue = await truth.contradiction(done.state, self.adapter, self._tail, self._keeper, self._longest_s)
            done = self.calls[-1] = replace(done, untrue=untrue)
        return done

    async def without_effect(self, kind: str, when: str, verb: str, *arguments: Any) -> None:
        """Issue a control that has to be answered and to change nothing."""
        before = await asyncio.to_thread(truth.snapshot, self.world, self._tail)
        done = await self.control(kind, when, verb, *arguments)
        if done is None or done.error is not None or done.timed_out:
            return
        after = await asyncio.to_thread(truth.snapshot, self.world, self._tail)
        said = self._said_changed and kind == "second-abort"
        changed = (*truth.differences(before, after), *(("says itself that it changed something",) if said else ()))
        self.calls[-1] = replace(done, changed=changed)

    async def aborted(self) -> bool:
        """After an abort: wait until no worker is left; False when some stay, which is for a drill to judge."""
        self._aborted = True
        bound_s = self.drill.real(self.drill.abort.sweep_after) + 2.0
        return await wait_for(lambda: not self._tail.fleet.alive(), bound_s)

    async def claims(self, when: str, kind: str = "claims") -> None:
        """Ask for its claims, and keep the manifest."""
        await self.call(kind, when, "claims", within_s=CLAIMS_WITHIN_S)

    async def close(self) -> None:
        """Close it. It may raise, when there is nobody left to talk to."""
        await self.call("close", "at the end", "close", within_s=CLOSE_WITHIN_S)

    async def kill_coordinator(self) -> bool:
        """SIGKILL to its coordinator; False when it has started none under that name."""
        site = self._hands[2]
        if site.coordinator is None or site.coordinator not in self._tail.fleet.processes:
            return False
        await self._keeper.signal(site.coordinator, 9)
        return await wait_for(lambda: site.coordinator not in self._tail.fleet.processes, _EXIT_WITHIN_S)

    def redirect(self) -> Any:
        """The drill's instruction, with the next number; from the second on it drops and adds nothing."""
        step = next(step for step in self.drill.controls if step.do == "redirect")
        said = self._hands[3].content(step)[1][0]
        return said if said.n == 1 else replace(said, drops=(), adds=())

    async def call(self, kind: str, when: str, method: str, *arguments: Any, within_s: float | None = None) -> Called:
        """Call a method, bounded, and record it. Raises SceneOver when it blocked the thread and never came back."""
        assert self._seen is not None
        bound_s = self._answer_within_s if within_s is None else within_s
        host, before = self._hands[1], self._seen.delivered_n
        listener = _Listener(host)
        listening = asyncio.ensure_future(listener.listen(bound_s))
        outcome = await host.call(self._checked, method, *arguments, within_s=bound_s)
        listening.cancel()
        self._said_changed = isinstance(outcome.value, Ack) and outcome.value.changed is True
        done = Called(
            kind, when, method, bound_s, outcome.error, outcome.timed_out,
            outcome.value.state if isinstance(outcome.value, Ack) else None,
            self._seen.delivered_n > before, listener.longest_s,
        )  # fmt: skip
        self.calls.append(done)
        if isinstance(outcome.value, Claims):
            self._keep_claims(outcome.value)
        if outcome.timed_out and not await _hears(host, 1.0):
            raise SceneOver
        return done

    def _keep_claims(self, claims: Claims) -> None:
        self.manifest += [line for line in claims.manifest if line not in self.manifest]
        for name in ("manifest", "killed", "stalled"):
            try:
                json.dumps([dict(line) for line in getattr(claims, name)])
            except (TypeError, ValueError) as error:
                self.not_json.append(f"the {name} of claims() cannot be written as JSON: {error}")

    async def _checked(self, method: str, *arguments: Any) -> Any:
        value = await getattr(self.adapter, method)(*arguments)
        if method in (*CONTROLS, "answer"):
            ack = ack_from(method, value)
            return ack if ack.question is None else ack_from("answer", await self.adapter.answer("yes"))
        return claims_from(value) if method == "claims" else value

    @property
    def _keeper(self) -> KeeperClient:
        return self._hands[0]

    @property
    def _longest_s(self) -> float:
        return self.drill.real(self.drill.longest_call)


async def _nothing() -> None:
    return None


async def _hears(host: AdapterHost, within_s: float) -> bool:
    outcome: Outcome[None] = await host.call(_nothing, within_s=within_s)
    return outcome.ok


class _Listener:
    """Asks the adapter's loop for nothing again and again; `longest_s` is the longest wait so far."""

    def __init__(self, host: AdapterHost) -> None:
        self._host, self._longest_s, self._asked = host, 0.0, 0.0

    async def listen(self, within_s: float) -> None:
        """Until cancelled."""
        while True:
            self._asked = time.monotonic()
            await _hears(self._host, within_s)
            self._longest_s, self._asked = self.longest_s, 0.0
            await asyncio.sleep(_HEARD_EVERY_S)

    @property
    def longest_s(self) -> float:
        """The wait that is under way counts."""
        return max(self._longest_s, time.monotonic() - self._asked if self._asked else 0.0)
