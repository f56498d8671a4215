"""Judging: a history and a rubric in, a scorecard out. Pure and deterministic.

A check that raises is the harness's failure, not the subject's: it becomes trouble, which makes the verdict
broken and never a pass, and the other checks go on. This is the only place where any exception is caught.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from scoring.case import Case
from scoring.findings import FINDINGS
from scoring.findings.check import BROKEN, Check
from scoring.findings.observer import lines_lost
from scoring.history import History
from scoring.rows import ROWS
from scoring.rows.measure import RowCheck
from scoring.rubric import Rubric
from scoring.scorecard import Finding, Row, Scorecard
from scoring.sentences import cut
from scoring.timeline import Timeline, build
from scoring.tolerance import described
from scoring.verdict import Verdict
from scoring.work_lost import work_lost_s

T = TypeVar("T")


def judge(history: History, rubric: Rubric) -> Scorecard:
    """Everything that one history says, under one rubric."""
    trouble: list[str] = []
    timeline = _guarded("the timeline", trouble, lambda: build(history), _empty(history))
    return judge_timeline(timeline, rubric, trouble)


def judge_timeline(timeline: Timeline, rubric: Rubric, trouble: list[str] | None = None) -> Scorecard:
    """The same of a timeline that was already built. `trouble` is what went wrong before."""
    trouble = [] if trouble is None else trouble
    trouble += [
        f"{cut(str(event.data.get('what')))}: {cut(str(event.data.get('why')), 300)}"
        for event in timeline.events("harness.trouble")
    ]
    case, settings = Case(timeline, rubric), timeline.settings
    rows = tuple(_row(check, case, trouble) for check in ROWS.values())
    checked: dict[str, str] = {}
    findings: list[Finding] = []
    for check in FINDINGS.values():
        checked[check.id], found = _finding(check, case, trouble)
        findings += found
    lost = _guarded("the record's wholeness", trouble, lambda: lines_lost(case), None)
    if lost is not None:
        rows = tuple(_no_accusation(row, lost) for row in rows)
        findings = [_no_accusation(finding, lost) for finding in findings]
    return Scorecard(
        run_id=settings.run,
        drill=settings.drill,
        subject=settings.subject,
        speed=settings.speed,
        complete=checked["V4"] == "clean",
        rows=rows,
        findings=tuple(findings),
        checked=checked,
        work_lost_s=_guarded("work lost", trouble, lambda: work_lost_s(case), {}),
        tolerance=_guarded("the tolerance", trouble, lambda: described(timeline, case.tolerances), {}),
        not_observed=tuple(finding.why for finding in findings if finding.id == "V3"),
        trouble=tuple(trouble),
    )


P = TypeVar("P", Row, Finding)


def _no_accusation(part: P, lost: str) -> P:
    """A fail in a record that lost lines is worth a look: what was not written down may be what excuses it."""
    if part.verdict is not Verdict.FAIL:
        return part
    why = f"{part.why} (no accusation, because the record is not whole: {lost})"
    return replace(part, verdict=Verdict.INVESTIGATE, why=why)


def _empty(history: History) -> Timeline:
    return Timeline(history, {}, (), (), (), {}, (), (), {})


def _guarded(what: str, trouble: list[str], compute: Callable[[], T], otherwise: T) -> T:
    try:
        return compute()
    except Exception as error:
        trouble.append(f"{what}: {type(error).__name__}: {cut(str(error), 300)}")
        return otherwise


def _row(check: RowCheck, case: Case, trouble: list[str]) -> Row:
    why = f"the check of this row failed, see trouble: {check.id}"
    limits: dict[str, float | int | None] = {"pass": None, "investigate": None}
    broken = Row(check.id, Verdict.BROKEN, None, check.unit, limits, why)
    return _guarded(check.id, trouble, lambda: check.row(case), broken)


def _finding(check: Check, case: Case, trouble: list[str]) -> tuple[str, list[Finding]]:
    broken: tuple[str, list[Finding]] = (BROKEN, [])
    return _guarded(check.id, trouble, lambda: check.run(case), broken)
