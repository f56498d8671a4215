"""Row 5, orphans after an abort: what of the run still lives when the sweep is due, as the keeper's full
audit says.

The coordinator itself may live on: it has to answer. Remote jobs that survive are worth a look, local
processes fail.
"""

from scoring.case import Case
from scoring.rows.measure import Limits, Measure, RowCheck, over_controls
from scoring.sentences import joined, process_name
from scoring.timeline import Audit, Control, Listed
from scoring.verdict import Verdict


def survivors(audit: Audit) -> list[Listed]:
    """The living of an audit that are the run's, without the coordinator and the harness's own services."""
    return [listed for listed in audit.listed if listed.role not in ("coordinator", "service")]


def _measured(case: Case, abort: Control) -> Measure:
    when = f"{abort.label}:sweep"
    audits = [audit for audit in case.timeline.audits if audit.when == when]
    if not audits:
        return Measure(Verdict.INVESTIGATE, None, f"not observed: no audit was made at {when}", abort.ids[:1])
    audit = audits[-1]
    found = survivors(audit)
    local = [listed for listed in found if listed.role != "remote"]
    after = case.timeline.seconds(audit.t - abort.t)
    ids = (*abort.ids[:1], audit.id, *(_started(case, listed) for listed in found))
    said = joined(f"{_name(case, one)} was alive {after:g} s after the abort" for one in found)
    if len(local) > case.rubric.rows.orphans.pass_:
        return Measure(Verdict.FAIL, len(local), said, tuple(id for id in ids if id))
    if len(found) > len(local):
        return Measure(Verdict.INVESTIGATE, len(local), said, tuple(id for id in ids if id))
    why = said or f"nothing of the run was alive {after:g} s after the abort"
    return Measure(Verdict.PASS, len(local), why, tuple(id for id in ids if id))


def _name(case: Case, listed: Listed) -> str:
    process = case.timeline.processes.get(listed.proc)
    task = listed.task or (process.task if process else None)
    return process_name(task, listed.pid, listed.cmdline or (process.cmdline if process else ()))


def _started(case: Case, listed: Listed) -> str:
    process = case.timeline.processes.get(listed.proc)
    return process.ids[0] if process else ""


def _limits(case: Case) -> Limits:
    return {"pass": case.rubric.rows.orphans.pass_, "investigate": case.rubric.rows.orphans.pass_}


def measure(case: Case) -> Measure:
    """Processes and remote jobs of the run that are alive when the sweep is due, 60 s after the abort."""
    return over_controls(case, "abort", _measured)


CHECK = RowCheck("orphans", "processes", measure.__doc__ or "", measure, _limits)
