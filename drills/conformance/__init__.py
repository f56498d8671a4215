"""Conformance: is an adapter fit to be drilled with? Small real fleets, odd orders of calls, plain sentences.

`check(make)` runs all of it in this process and is what `drills.testing.AdapterConformance` uses. `stopdrill
check-adapter` does the same in a process of its own (`drills.conformance.apart`), because an adapter under test may end
or block its interpreter. Whether the coordinator can be stopped is not asked here; a drill asks that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills import script
from drills.adapters.registry import shape_of
from drills.conformance import stdout
from drills.conformance.checks import CHECKS, judge
from drills.conformance.evidence import Evidence, Finding
from drills.conformance.scenes import SCENES, Scene
from drills.conformance.trial import Trial
from drills.errors import HarnessTrouble
from drills.script import Drill

ANSWER_WITHIN_S = 4.5


@dataclass
class _Seen:
    """What has been collected scene by scene."""

    trials: list[Trial] = field(default_factory=list)

    def evidence(self, shape: Any, printed: str) -> Evidence:
        """All of it as one record."""
        trials = self.trials
        return Evidence(
            shape=shape,
            calls=tuple(call for trial in trials for call in trial.calls),
            manifest=tuple(line for trial in trials for line in trial.manifest),
            not_json=tuple(dict.fromkeys(fault for trial in trials for fault in trial.not_json)),
            idle=tuple(trial.idle for trial in trials if trial.idle is not None),
            left=tuple(dict.fromkeys(what for trial in trials for what in trial.left)),
            printed=printed,
        )


def check(
    make: Callable[[], Any],
    out: Path,
    say: Callable[[str], None] = lambda _: None,
    answer_within_s: float = ANSWER_WITHIN_S,
) -> tuple[Finding, ...]:
    """All findings about the adapters that `make` makes. Bundles go below `out`; takes about ten seconds.

    `say` is told each scene; `answer_within_s` bounds each control, in real seconds. Raises HarnessTrouble when the
    harness could not do its own job.
    """
    seen = _Seen()
    with stdout.heard() as printed:
        adapter = make()
        shape = shape_of(adapter)
        if not (shape.missing or shape.wrong):
            for scene in SCENES:
                if seen.trials and not scene.same_adapter:
                    adapter = make()
                say(scene.name)
                trial = _play(scene, adapter, out, answer_within_s)
                seen.trials.append(trial)
                if trial.stuck or (len(seen.trials) == 1 and not trial.began):
                    break  # the other scenes would come to the same, and take their time for it
        return judge(seen.evidence(shape, printed()))


def _play(scene: Scene, adapter: Any, out: Path, answer_within_s: float) -> Trial:
    """Play one scene to its end; nothing of it is left afterwards."""

    async def play() -> Trial:
        trial = Trial(_drill(scene.name), adapter, out, scene.script, answer_within_s)
        await trial.run()
        return trial

    trial = asyncio.run(play())
    if trial.result.interrupted:
        raise KeyboardInterrupt
    if trial.result.trouble:
        raise HarnessTrouble(f"{'; '.join(trial.result.trouble)} (scene {scene.name}, {trial.world.run_dir})")
    return trial


def _drill(name: str) -> Drill:
    """The small drill with three workers: one to keep, one to modify, one to drop."""
    drill, _ = script.load(script.find("small"))
    return drill.changed({"name": f"conformance-{name}", "fleet": {"workers": 3}}, "conformance")


__all__ = ["ANSWER_WITHIN_S", "CHECKS", "Finding", "check"]
