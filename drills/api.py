"""Running a drill from Python: `drills.run(...)`, and the same for an event loop of one's own."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills import script
from drills.adapters.base import Adapter
from drills.adapters.remote import RemoteAdapter
from drills.adapters.subjects import adapter_for
from drills.bundle import Bundle
from drills.conduct import Conducted, View, conduct
from drills.errors import HarnessTrouble
from drills.rubrics import load_rubric
from drills.script import Drill
from scoring.scorecard import Scorecard
from scoring.verdict import Verdict


@dataclass(frozen=True)
class Result:
    """A finished drill: its bundle, its scorecard (None when nothing could be scored), and what was in the way."""

    bundle: Bundle
    scorecard: Scorecard | None
    interrupted: bool
    trouble: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 pass, 1 fail, 3 investigate, 4 broken, 130 interrupted."""
        if self.interrupted:
            return 130
        if self.scorecard is None or self.trouble:
            return Verdict.BROKEN.exit_status
        return self.scorecard.verdict.exit_status


async def run_async(
    drill: str | Path | Drill = "tabletop",
    subject: str | Adapter = "reference",
    *,
    workers: int | None = None,
    speed: float | None = None,
    seed: int | None = None,
    repo: Path | None = None,
    rubric: Path | None = None,
    out: Path = Path("stopdrill-runs"),
    report: bool = True,
    view: View | None = None,
    in_process: bool = False,
) -> Result:
    """Run a drill and judge it. Cancelling it ends the run; the bundle is kept and the result says `interrupted`.

    `drill` is a shipped name, a TOML file or a `Drill`, `subject` a name or an adapter of your own. One that is given
    by name (`module:attr`) runs in a process of its own, unless `in_process`. Raises UsageProblem for input that cannot
    be used.
    """
    limits = load_rubric(rubric)
    plan, text = _plan(drill, workers, speed, seed)
    adapter = adapter_for(subject, in_process) if isinstance(subject, str) else subject
    try:
        conducted = await conduct(plan, text, adapter, Path(out), repo, view)
    finally:
        if isinstance(adapter, RemoteAdapter):
            adapter.end()  # a run that was interrupted never came to its close
    return judged(conducted, limits, report)


def _plan(drill: str | Path | Drill, workers: int | None, speed: float | None, seed: int | None) -> tuple[Drill, str]:
    """The drill and its text; options that change it are written into the text, so that the bundle can be run again."""
    if isinstance(drill, Drill):
        plan, text = drill, drill.to_toml()
    else:
        plan, text = script.load(script.find(str(drill)))
    if workers is not None or speed is not None or seed is not None:
        plan = plan.with_options(workers, speed, seed)
        text = plan.to_toml()
    return plan, text


def judged(conducted: Conducted, rubric: Any, report: bool) -> Result:
    """Score a conducted run and write what is derived; trouble there is named, never hidden."""
    trouble = list(conducted.trouble)
    scorecard: Scorecard | None = None
    try:
        scorecard = conducted.bundle.judge(rubric)
        conducted.bundle.write_scorecard(scorecard)
        if report:
            conducted.bundle.write_report(scorecard)
    except (HarnessTrouble, OSError) as error:
        trouble.append(str(error))
    return Result(conducted.bundle, scorecard, conducted.interrupted, tuple(trouble))


def run(drill: str | Path | Drill = "tabletop", subject: str | Adapter = "reference", **options: Any) -> Result:
    """`run_async` for programs without an event loop; Ctrl-C and SIGTERM end the run and keep the evidence."""
    return run_interruptibly(lambda: run_async(drill, subject, **options))


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine so that SIGINT, SIGTERM and SIGHUP cancel it once; later ones are not needed and do nothing."""

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        fired = False

        def stop() -> None:
            nonlocal fired
            if not fired:
                fired = True
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, stop)
            except (ValueError, RuntimeError):
                break  # not in the main thread: whoever runs us there has signals of their own
        return await work()

    return asyncio.run(main())
