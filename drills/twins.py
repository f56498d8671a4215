"""The negative twins: for each row and finding something broken that trips it, and the clean reference beside them.

A check that nothing trips proves nothing, and one that trips on the innocent is worse. So every twin names what must
be found (`must`), and what may be found beside it because it truly follows (`may`); anything else is an accusation.
Twins are small drills over real processes; the data is here, running them is `drills.selftest`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.coordinators.broken import BROKEN


@dataclass(frozen=True)
class Twin:
    """One drill of the selftest: who is drilled, what is changed in the small drill, what has to be found."""

    name: str
    subject: str
    must: frozenset[str]
    may: frozenset[str] = frozenset()
    look: frozenset[str] = frozenset()
    """Rows that must say investigate, no more and no less."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    cuts: str | None = None
    """Source whose stored file is cut in half after the run, before scoring."""
    says: str = ""


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _worker(name: str, must: str, may: str = "", says: str = "", task: str = "t01", **parameters: Any) -> Twin:
    """A twin whose workers misbehave under the clean reference coordinator."""
    wrong = [{"task": task, "name": name, **parameters}]
    return Twin(f"worker:{name}", "reference", _ids(must), _ids(may), changes={"misbehaviours": wrong}, says=says)


_ABORT_ONLY: dict[str, Any] = {"controls": [{"do": "abort", "at": "40s"}]}
"""For twins whose workers are deaf from the start, so that pause and redirect cannot be judged beside them."""

_FIXED = {"calls": {"distribution": "fixed", "value": "10s", "longest": "10s"}}
_MID_CALL: dict[str, Any] = {"when": "all-mid-call", "after": "20s", "within": "100s"}
_PAUSE_IN_MID_CALL: dict[str, Any] = {
    "fleet": _FIXED,
    "controls": [{"do": "pause", **_MID_CALL, "hold": "48s"}, {"do": "abort", "at": "180s"}],
}
_ABORT_IN_MID_CALL: dict[str, Any] = {"fleet": _FIXED, "controls": [{"do": "abort", **_MID_CALL}]}
"""For twins that are only seen when somebody is in a call: otherwise one run in a hundred finds nobody."""

_WORKERS = (
    _worker("never-looks", "time-to-quiet", "D4 D5 A1", says="one worker never reads the control file"),
    _worker(
        "ignores-sigterm",
        "",
        says="the ladder copes with a worker that ignores TERM: it stops at its boundary",
    ),
    _worker(
        "detaches",
        "orphans A8",
        "A9 A15 V1",
        how="all",
        says="a helper detaches: session, parent and environment",
    ),
    _worker(
        "ignores-eof",
        "orphans A7 A8",
        "A9 A15 V1",
        says="a tool server outlives its worker, with a credential",
    ),
    _worker("respawned", "orphans A8", "A1 A7 A9 A15 V1", says="a supervisor of its own brings a worker back"),
    _worker("stashes", "P2 A6", task="*", says="stashes instead of checkpoints"),
    _worker("stops-heartbeat", "A11", "P4 V2 D4 D5", at_step=6, says="a worker stalls before the abort"),
    _worker("slow", "time-to-quiet", "A6", times=9, says="calls nine times as long as the longest legitimate one"),
    _worker("skips-on-resume", "P3", says="a step is left out after the hold"),
)

_DRILLS = (
    Twin(
        "worker:dirty-at-boundary", "reference", frozenset(), look=_ids("dirty-worktrees"),
        changes={"misbehaviours": [{"task": "t01", "name": "dirty-at-boundary"}]},
        says="one uncommitted change at the boundary: a look, not a fail",
    ),
    Twin("clean", "reference", frozenset(), says="the reference coordinator and honest workers: nothing to find"),
    Twin(
        "work-is-done-before-the-control", "reference", _ids("V2"), changes={"fleet": {"steps": 2}},
        says="the fleet has finished before the first control",
    ),
    Twin(
        "canary-killed", "reference", _ids("V3"), changes={"faults": [{"kill": "canary", "at": "10s"}]},
        says="nobody measures how late the machine is",
    ),
    Twin("history-cut-short", "reference", _ids("V4"), cuts="keeper", says="the keeper's file is cut in half"),
)  # fmt: skip

_CHANGES: dict[str, dict[str, Any]] = {
    "never-escalates": _ABORT_ONLY,
    "kills-silently": _ABORT_ONLY,
    "cleans-up": _ABORT_ONLY,
    "blind-to-stalls": _ABORT_ONLY,
    "pause-by-sigstop": _PAUSE_IN_MID_CALL,
    "says-stopped": _ABORT_IN_MID_CALL,
    "no-grace": _ABORT_IN_MID_CALL,
}
_MAY = {"resume-half": _ids("V2")}
"""What follows in our drills beside what a twin itself declares: a fleet half of which stays parked is not at work."""


def twins() -> dict[str, Twin]:
    """All twins by name, the clean ones first."""
    coordinators = [
        Twin(
            f"broken:{name}", f"broken:{name}", frozenset(broken.trips),
            frozenset(broken.also) | _MAY.get(name, frozenset()), changes=_CHANGES.get(name, {}), says=broken.summary,
        )
        for name, broken in BROKEN.items()
    ]  # fmt: skip
    return {twin.name: twin for twin in (*_DRILLS, *coordinators, *_WORKERS)}
