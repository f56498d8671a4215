"""Row 3, duplicate workers after a redirect: two live workers on one task, or a dropped task started anew.

With none, a keep-task that was restarted or re-prompted is still worth a look (and D3 says more about it).
"""

from collections.abc import Iterator
from itertools import combinations

from scoring.case import Case
from scoring.rows.measure import Limits, Measure, RowCheck, over_controls
from scoring.sentences import cut, joined, listing, worker_name
from scoring.timeline import Control, Worker
from scoring.verdict import Verdict

PROMPTS = frozenset({"delta", "instruction", "objective"})


def overlaps(case: Case, after: int, slack: int, until: int | None = None) -> Iterator[tuple[Worker, Worker]]:
    """Pairs of workers on one task that were both at work for longer than `slack` after an instant."""
    end = case.timeline.end_t if until is None else until
    for workers in case.timeline.workers_of.values():
        for first, second in combinations(workers, 2):
            begin = max(first.begin, second.begin, after)
            ends = [t for t in (_until(case, first), _until(case, second), end) if t is not None]
            if min(ends) - begin > slack:
                yield first, second


def _until(case: Case, worker: Worker) -> int | None:
    """When it stopped acting; its own last word where the keeper was not there to see it end."""
    until = worker.working_until
    return worker.last_t if until is None and case.timeline.keeper_until < case.timeline.end_t else until


def restarted_drops(case: Case, redirect: Control) -> list[Worker]:
    """Workers of tasks that the redirect dropped, by the drill's word or the table's, started after it."""
    table = case.table(redirect)
    moves = [*case.expected(redirect).items(), *(table.tasks.items() if table else ())]
    dropped = {task for task, move in moves if move == "drop"}
    visible = redirect.t + case.slack(redirect)
    return [w for w in case.timeline.workers if w.task in dropped and w.started > visible]


def _measured(case: Case, redirect: Control) -> Measure:
    if not case.timeline.workers:
        return Measure(Verdict.INVESTIGATE, None, "not observed: no worker was observed at all", redirect.ids)
    pairs = list(overlaps(case, redirect.t, case.slack(redirect)))
    anew = restarted_drops(case, redirect)
    tasks = {first.task for first, _ in pairs} | {worker.task for worker in anew}
    if len(tasks) > case.rubric.rows.duplicate_workers.pass_:
        return _duplicates(case, redirect, pairs, anew, len(tasks))
    touched = _touched(case, redirect)
    ids = redirect.ids[:1] + tuple(id for ids in touched.values() for id in ids)
    if touched:
        why = f"no duplicate, but {listing(touched)} should have been kept and was restarted or prompted again"
        return Measure(Verdict.INVESTIGATE, len(tasks), why, ids)
    why = "no task had two live workers after the redirect, and no dropped task was started again"
    return Measure(Verdict.PASS, len(tasks), why, ids)


def _duplicates(
    case: Case, redirect: Control, pairs: list[tuple[Worker, Worker]], anew: list[Worker], value: int
) -> Measure:
    said = [
        f"{worker_name(second)} began {case.timeline.seconds(second.begin - redirect.t):g} s "
        f"after the redirect while pid {first.pid} was still alive"
        for first, second in pairs
    ]
    said += [
        f"dropped task {cut(w.task)} was started again {case.timeline.seconds(w.begin - redirect.t):g} s "
        f"after the redirect (pid {w.pid})"
        for w in anew
    ]
    ids = redirect.ids[:1] + tuple(id for pair in pairs for w in pair for id in w.ids)
    return Measure(Verdict.FAIL, value, joined(said), ids + tuple(id for w in anew for id in w.ids))


def _touched(case: Case, redirect: Control) -> dict[str, list[str]]:
    """Keep-tasks (by the table, otherwise as expected) restarted or prompted before the next control."""
    table = case.table(redirect)
    moves = table.tasks if table else case.expected(redirect)
    keep = {task for task, move in moves.items() if move == "keep"}
    until, visible = case.timeline.until(redirect), redirect.t + case.slack(redirect)
    touched: dict[str, list[str]] = {}
    for worker in case.timeline.workers:
        if worker.task in keep and visible < worker.started < until:
            touched.setdefault(worker.task, []).extend(worker.ids[:1])
    for event in case.timeline.events("message"):
        if event.data["task"] in keep and event.data["what"] in PROMPTS and redirect.t < event.t < until:
            touched.setdefault(event.data["task"], []).append(event.id)
    return touched


def _limits(case: Case) -> Limits:
    return {"pass": case.rubric.rows.duplicate_workers.pass_, "investigate": None}


def measure(case: Case) -> Measure:
    """Task ids with two live workers after a redirect, and dropped tasks that were started again."""
    return over_controls(case, "redirect", _measured, timed=True)


CHECK = RowCheck("duplicate-workers", "tasks", measure.__doc__ or "", measure, _limits)
