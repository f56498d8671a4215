"""How late this machine itself was, so that a busy one accuses nobody.

For each control: the worst p99 that the scheduler canary saw while what is measured went on, plus the time
that the control took to be visible to the subject (never more than L/4 of it, since a slow hand-over is no
excuse for ever). Where that is more than the rubric's share of L, or where no canary ran, time-based checks
neither pass nor accuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scoring.rubric import Rubric
from scoring.timeline import Control, Timeline


@dataclass(frozen=True)
class Tolerance:
    """For one control, in nanoseconds. `reason` says why time can't be measured; None when it can."""

    total: int | None  # None: no canary ran, so it is not known
    canary: int
    visible: int
    reason: str | None
    ids: tuple[str, ...] = ()


def tolerances(timeline: Timeline, rubric: Rubric) -> dict[int, Tolerance]:
    """The tolerance of every control, by its number."""
    return {control.n: _tolerance(timeline, rubric, control) for control in timeline.controls}


def _tolerance(timeline: Timeline, rubric: Rubric, control: Control) -> Tolerance:
    longest = timeline.settings.longest
    until = _measured_until(timeline, control)
    late = [canary.p99 for canary in timeline.canaries if canary.end > control.t and canary.start < until]
    delay = 0 if control.delivered_t is None else max(0, control.delivered_t - control.t)
    visible = min(delay, longest // 4)
    if longest <= 0:
        return Tolerance(None, max(late, default=0), visible, "the longest tool call is not known", control.ids)
    if not late:
        why = f"no scheduler canary around {control.label}"
        return Tolerance(None, 0, visible, why, control.ids)
    total, limit = max(late) + visible, rubric.tolerance.max_share_of_longest_call * longest
    reason = None
    if total > limit:
        reason = (
            f"machine too loaded around {control.label}: canary p99 {timeline.seconds(max(late)):g} s and "
            f"{timeline.seconds(visible):g} s to hand the control over are more than "
            f"{timeline.seconds(round(limit)):g} s"
        )
    return Tolerance(total, max(late), visible, reason, control.ids)


def _measured_until(timeline: Timeline, control: Control) -> int:
    """Until when things are timed: the next control; after an abort, the sweep."""
    settings = timeline.settings
    if control.kind != "abort":
        return timeline.until(control)
    ladder = settings.grace + settings.kill_after + settings.longest
    return min(timeline.end_t, control.t + max(settings.sweep_after, ladder))


def described(timeline: Timeline, by_number: Mapping[int, Tolerance]) -> dict[str, Any]:
    """The scorecard's `tolerance`, in drill seconds."""
    known = {c.label: by_number[c.n] for c in timeline.controls}
    return {
        "canary_p99_s": timeline.seconds(max((one.canary for one in known.values()), default=0)),
        "controls_s": {
            label: None if one.total is None else timeline.seconds(one.total) for label, one in known.items()
        },
        "measurable": bool(known) and all(one.reason is None for one in known.values()),
    }
