"""Conducting a drill: set the world up, put the fleet to work, let the operator act, end everything, judge.

The order at the end is fixed: the verdict is computed after everything of the run has been ended, but from a history
that was complete before the ending began, so that clean-up can't change it. Whatever happens (Ctrl-C, a dead keeper, a
full disk, an adapter that raises), nothing of the run stays alive and the history up to that moment can be scored.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills import context, services
from drills import world as worlds
from drills.adapters.base import Adapter
from drills.adapters.host import AdapterHost
from drills.adapters.site import DriverSite
from drills.bundle import Bundle
from drills.errors import HarnessTrouble, UsageProblem
from drills.keeper_client import Exit, KeeperClient, KeeperError
from drills.observers import gitstate
from drills.observers.tail import FleetNow, Tail
from drills.observers.watch import Watch, follow, wait_for
from drills.operator import Operator
from drills.script import Drill
from drills.world import World
from scoring.journal import Journal
from scoring.scorecard import Scorecard

_TAIL_EVERY_S = 0.02
_DISK_MIN_BYTES = 512 * 1024


@dataclass(frozen=True)
class Progress:
    """What a view of the running drill is told."""

    phase: str
    drill: Drill
    world: World
    fleet: FleetNow
    clock: float


View = Callable[[Progress], None]


@dataclass
class Conducted:
    """What a run came to, before it is judged."""

    world: World
    interrupted: bool = False
    trouble: list[str] = field(default_factory=list)

    @property
    def bundle(self) -> Bundle:
        """Where the evidence is."""
        return Bundle(self.world.run_dir)


class Conductor:
    """One run of one drill against one subject."""

    def __init__(
        self,
        drill: Drill,
        drill_text: str,
        adapter: Adapter,
        out: Path,
        repo: Path | None,
        view: View | None = None,
    ) -> None:
        self.drill, self.adapter = drill, adapter
        self.world = worlds.create(drill, out, repo)
        self.result = Conducted(self.world)
        self._repo, self._view = repo, view
        (self.world.run_dir / "drill.toml").write_text(drill_text, encoding="utf-8")
        self._journal = Journal(str(self.world.events), "driver")
        self._tail = Tail(self.world.events)
        self._phase = "setting up"
        self._operator: Operator | None = None
        self._services: dict[str, int] = {}
        self._site: DriverSite | None = None
        self._wrong: list[Mapping[str, Any]] = [item.model_dump() for item in drill.misbehaviours]

    async def run(self) -> Conducted:
        """Conduct the drill; returns when nothing of it is left. Interruption is a result, not an exception."""
        keeper: KeeperClient | None = None
        host = AdapterHost()
        try:
            context.write(self.drill, self.world, self.adapter, self._repo)
            keeper = await KeeperClient.start(
                self.world.run_id,
                self.world.events,
                log=self.world.root / "logs" / "keeper.txt",
                worktrees=self.world.worktrees,
            )
            await self._until_dead(keeper, asyncio.ensure_future(self._drill(keeper, host)))
        except asyncio.CancelledError:
            self.result.interrupted = True
            self._note("run.interrupted", by="the operator (Ctrl-C or a signal)")
        except (HarnessTrouble, KeeperError, OSError) as error:
            self._trouble(type(error).__name__, str(error))
        finally:
            await self._finish(keeper, host)
        return self.result

    async def _until_dead(self, keeper: KeeperClient, work: "asyncio.Task[None]") -> None:
        """Await `work`, unless the keeper dies first: without it there is no truth about processes."""
        await first_of(work, asyncio.ensure_future(_raise_when_dead(keeper)))

    async def _drill(self, keeper: KeeperClient, host: AdapterHost) -> None:
        self._phase = "starting services"
        self._services = await services.start(self.world, keeper)
        watch = Watch(self.drill, self.world, self._journal, keeper, self._tail)
        operator = Operator(self.drill, self.world, self.adapter, host, self._journal, watch)
        self._operator = operator
        self._site = site = DriverSite(self.world, keeper, operator, self._wrong, self.drill)
        self._journal.write("run.begin", **context.run_begin(self.drill, self.world, self.adapter))
        following = asyncio.ensure_future(follow(self._tail, _TAIL_EVERY_S, self._show))
        acts = asyncio.ensure_future(self._acts(keeper, host, site, operator, watch))
        try:
            keeper.on_exit = self._exited
            await first_of(acts, following)
        finally:
            watch.close()

    async def _acts(
        self, keeper: KeeperClient, host: AdapterHost, site: DriverSite, operator: Operator, watch: Watch
    ) -> None:
        """The drill itself, from the start of the fleet to the coordinator's orderly end."""
        faults: list[asyncio.Task[None]] = []
        try:
            if await self._put_to_work(host, site):
                operator.start_clock()
                self._phase = "drilling"
                faults = [asyncio.ensure_future(self._fault(fault, keeper, host)) for fault in self.drill.faults]
                await operator.perform()
        finally:
            for task in faults:
                task.cancel()
            await asyncio.gather(*faults, return_exceptions=True)
        self._phase = "looking back"
        await watch.snapshot("end", processes=True)
        await operator.collect_claims(final=True)
        self._keep_git()
        await host.call(self.adapter.close, within_s=5.0)
        # The exit of a coordinator that closes in order is part of the truth, so give it a moment to be seen.
        await wait_for(lambda: site.coordinator is None or site.coordinator not in self._tail.fleet.processes, 1.0)

    async def _put_to_work(self, host: AdapterHost, site: DriverSite) -> bool:
        """Start the subject and wait until every worker has been seen in a tool call."""
        self._phase = "starting the fleet"
        bound_s = self.drill.real(self.drill.fleet.start_within)
        outcome = await host.call(self.adapter.start, site, within_s=bound_s)
        if not outcome.ok:
            why = outcome.error or f"its start did not return within {bound_s:g} s"
            self._note("observe.missing", what="the fleet", why=f"the subject could not be started: {why[:1000]}")
            return False
        tasks = self.drill.task_ids
        if not await wait_for(lambda: self._tail.fleet.at_work(tasks), bound_s):
            began = self._tail.fleet.began(tasks)
            why = f"{began} of {len(tasks)} tasks had a worker that made a tool call within {bound_s:g} s"
            why += self._last_words_of_the_subject()
            self._note("observe.missing", what="the fleet at work", why=why)
            if began == 0:
                return False
        self._note("fleet.at-work", workers=len(self._tail.fleet.alive()))
        return True

    def _last_words_of_the_subject(self) -> str:
        """The last line that the coordinator printed: mostly it says why nobody is at work."""
        log = self.world.root / "logs" / "coordinator.txt"
        try:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - 2000))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"; the last that it printed (world/logs/coordinator.txt): {last[:300]}" if last else ""

    async def _fault(self, fault: Any, keeper: KeeperClient, host: AdapterHost) -> None:
        assert self._operator is not None
        await self._operator.until(fault.at)
        coordinator = self._site.coordinator if self._site else None
        proc = coordinator if fault.kill == "coordinator" else self._services.get(fault.kill)
        self._note("fault.inject", fault="kill -9", target=fault.kill, proc=proc)
        if proc is not None:
            await keeper.signal(proc, 9)
        if fault.restart_after is not None:
            await asyncio.sleep(self.drill.real(fault.restart_after))
            outcome = await host.call(self.adapter.restart, within_s=self.drill.real(self.drill.fleet.start_within))
            self._note("fault.done", fault="restart", target=fault.kill, error=outcome.error)

    def _exited(self, ended: Exit) -> None:
        if ended.name == "coordinator":
            self._note("subject.exit", status=ended.status, signal=ended.signal)
        elif ended.name in self._services and self._phase != "ending":
            why = f"it ended in mid-run (status {ended.status}, signal {ended.signal})"
            self._note("observe.missing", what=ended.name, why=why)

    def _show(self) -> None:
        free = os.statvfs(self.world.run_dir)
        if free.f_bavail * free.f_frsize < _DISK_MIN_BYTES:
            # Noticed here and not at the first failed write, because the fleet's writes fail before ours do,
            # and a fleet that starves on a full disk must not be judged.
            raise HarnessTrouble(
                f"No space left on the disk of {self.world.run_dir} ({free.f_bavail * free.f_frsize:,} bytes);"
                f" the run was ended. Make room, or choose another folder with --out."
            )
        if self._view is not None:
            clock = self._operator.clock if self._operator else 0.0
            self._view(Progress(self._phase, self.drill, self.world, self._tail.fleet, clock))

    async def _finish(self, keeper: KeeperClient | None, host: AdapterHost) -> None:
        """End everything of the run, then close the history. Never raises, always comes back."""
        self._phase = "ending"
        host.close()
        if keeper is not None:
            try:
                left = await keeper.end("the drill is over")
                if left:
                    self._trouble("keeper", f"these processes would not die: {left}")
            except (KeeperError, OSError) as error:
                self._trouble("keeper", str(error))
        self._tail.close()
        reason = "interrupted" if self.result.interrupted else "driver-error" if self.result.trouble else "done"
        self._note("run.end", reason=reason, sources=self._line_counts())
        self._journal.close()

    def _line_counts(self) -> dict[str, int]:
        """Lines of every file, counted as `scoring.history.read_source` counts them; run.end itself included."""
        counts = {}
        for file in sorted(self.world.events.glob("*.jsonl")):
            data = file.read_bytes()
            counts[file.stem] = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        counts["driver"] = counts.get("driver", 0) + 1
        return counts

    def _keep_git(self) -> None:
        for name in sorted(entry.name for entry in self.world.worktrees.iterdir() if (entry / ".git").exists()):
            text = gitstate.describe(self.world.worktrees / name)
            (self.world.run_dir / "git" / f"{name}.txt").write_text(text, encoding="utf-8", errors="replace")

    def _note(self, kind: str, **fields: Any) -> None:
        """Write to the driver's journal; a full disk must not keep the ending from going on."""
        try:
            self._journal.write(kind, **fields)
        except OSError as error:
            message = f"{self._journal.path}: {error.strerror or error}"
            if message not in self.result.trouble:
                self.result.trouble.append(message)

    def _trouble(self, what: str, why: str) -> None:
        self.result.trouble.append(f"{what}: {why}")
        self._note("harness.trouble", what=what, why=why)


async def _raise_when_dead(keeper: KeeperClient) -> None:
    raise HarnessTrouble(await asyncio.shield(keeper.dead))


async def first_of(*tasks: "asyncio.Task[None]") -> None:
    """Await the first of some tasks, cancel the others, and raise what any of them raised: trouble before success."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome


async def conduct(
    drill: Drill,
    drill_text: str,
    adapter: Adapter,
    out: Path,
    repo: Path | None = None,
    view: View | None = None,
) -> Conducted:
    """Conduct one drill; see `Conductor`. Raises UsageProblem when the world cannot be made at all."""
    try:
        conductor = Conductor(drill, drill_text, adapter, out, repo, view)
    except OSError as error:
        raise UsageProblem(f"{out}: the run could not be set up: {error}. Choose another folder with --out.") from None
    with contextlib.suppress(asyncio.CancelledError):
        return await conductor.run()
    return conductor.result


__all__ = ["Conducted", "Conductor", "Progress", "Scorecard", "View", "conduct"]
