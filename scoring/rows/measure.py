"""What a row measures, and what all rows have in common.

A row is measured once per control of its kind, and the worst is the row. A control that the drill never
issued leaves it open, one that the subject lacks fails it; a control that found nobody at work passes
nothing; and where the machine was too late to time anything, a timed row neither passes nor accuses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scoring.case import Case
from scoring.scorecard import Row
from scoring.sentences import cut
from scoring.timeline import Control
from scoring.verdict import Verdict, worst

Limits = Mapping[str, float | int | None]
EVIDENCE_MAX = 40


@dataclass(frozen=True)
class Measure:
    """What one control gave: `why` is a sentence, `evidence` event ids."""

    verdict: Verdict
    value: float | int | None
    why: str
    evidence: tuple[str, ...] = ()
    limits: Limits | None = None
    """Where they depend on the control; otherwise the row's own."""


@dataclass(frozen=True)
class RowCheck:
    """One row: what is measured, in which unit, and how."""

    id: str
    unit: str
    summary: str
    function: Callable[[Case], Measure]
    limits: Callable[[Case], Limits]

    def row(self, case: Case) -> Row:
        """The row of one case."""
        measure = self.function(case)
        limits = measure.limits if measure.limits is not None else self.limits(case)
        evidence = tuple(dict.fromkeys(measure.evidence))[:EVIDENCE_MAX]
        return Row(self.id, measure.verdict, measure.value, self.unit, limits, measure.why, evidence)


def over_controls(
    case: Case,
    kind: str,
    measure: Callable[[Case, Control], Measure],
    *,
    timed: bool = False,
    first_only: bool = False,
) -> Measure:
    """The worst measure over all controls of one kind."""
    controls = case.timeline.of_kind(kind)
    if not controls:
        return _not_issued(case, kind)
    if first_only:
        controls = controls[:1]
    measures = [_of_control(case, control, measure, timed) for control in controls]
    chosen = max(measures, key=lambda one: (one.verdict.rank, one.value is None, one.value or 0))
    if len(measures) == 1:
        return chosen
    label = controls[measures.index(chosen)].label
    return replace(chosen, why=f"worst of {len(measures)}, {label}: {chosen.why}")


def _of_control(case: Case, control: Control, measure: Callable[[Case, Control], Measure], timed: bool) -> Measure:
    if control.answer == "absent":
        return Measure(Verdict.FAIL, None, f"no such control: the subject has no {control.kind}", control.ids)
    made = measure(case, control)
    reason = case.tolerances[control.n].reason
    if timed and reason is not None:
        made = replace(made, verdict=Verdict.INVESTIGATE, why=f"not measurable: {reason}; {made.why}")
    idle = case.vacuous.get(control.n)
    if idle is not None:
        verdict = worst([made.verdict, Verdict.INVESTIGATE])
        made = replace(made, verdict=verdict, why=f"proves little: {idle}; {made.why}")
    return made


def _not_issued(case: Case, kind: str) -> Measure:
    expired = [event for event in case.timeline.events("condition.expired") if event.data.get("control") == kind]
    waited = "".join(
        f"; its condition did not come true in time: {cut(str(event.data.get('condition')))}" for event in expired[:1]
    )
    ids = tuple(event.id for event in expired)
    return Measure(Verdict.INVESTIGATE, None, f"this drill issued no {kind}{waited}", ids)
