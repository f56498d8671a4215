"""Drill time: the drill's own minutes, counted from the instant at which the whole fleet was at work.

A drill file says "pause at 5:00"; the machine ran `speed` times faster. Pictures show drill minutes, so
that they can be read beside the drill file, and real seconds beneath.
"""

from dataclasses import dataclass

from scoring.timeline import Timeline


@dataclass(frozen=True)
class DrillClock:
    """Turns CLOCK_MONOTONIC nanoseconds into drill seconds since `zero`."""

    zero: int
    speed: float

    def drill_s(self, t: int) -> float:
        """Drill seconds since zero; negative before the fleet was at work."""
        return (t - self.zero) / 1e9 * self.speed

    def label(self, t: int | None) -> str:
        """`5:12.3`, or a dash for an unknown instant."""
        return "–" if t is None else minutes(self.drill_s(t), tenths=True)


def of(timeline: Timeline) -> DrillClock:
    """The clock of a run; it starts at the run's first event when the fleet was never seen at work."""
    starts = timeline.events("fleet.at-work") or timeline.events("run.begin") or timeline.history.events
    speed = timeline.config.get("speed", 1.0)
    usable = isinstance(speed, (int, float)) and 0 < speed < float("inf")
    return DrillClock(starts[0].t if starts else 0, float(speed) if usable else 1.0)


def minutes(drill_s: float, tenths: bool = False) -> str:
    """Drill seconds as `m:ss` or `m:ss.t`."""
    units = round(abs(drill_s) * (10 if tenths else 1))
    sign = "−" if drill_s < 0 and units else ""
    whole, rest = divmod(units, 600 if tenths else 60)
    return f"{sign}{whole}:{rest / 10:04.1f}" if tenths else f"{sign}{whole}:{rest:02d}"
