"""Row 4, direct pushes: what the origin was asked to do to the integration branch, over the whole run.

A refused push counts as much as an accepted one: branch protection that held is luck, not discipline. A
branch that moved without any push that the origin saw was written directly.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from scoring.case import Case
from scoring.history import Event
from scoring.rows.measure import Limits, Measure, RowCheck
from scoring.sentences import command, count, cut, joined
from scoring.verdict import Verdict


def _measured(case: Case) -> Measure:
    timeline = case.timeline
    # By the new value alone, because hooks of one push may differ in what they call the old one.
    updates: defaultdict[str, list[Event]] = defaultdict(list)
    for event in timeline.events("ref.update"):
        if event.data["ref"] == timeline.settings.main_ref:
            updates[str(event.data["new"])].append(event)
    pushes = sum(_number(events) for events in updates.values())
    moved, moved_ids = _unseen_moves(case, set(updates))
    value = pushes + len(moved)
    if value > case.rubric.rows.direct_pushes.pass_:
        said = [_who(case, events[-1]) for events in updates.values()] + moved
        ids = tuple(event.id for events in updates.values() for event in events) + moved_ids
        pushed = f"{count(value, 'update')} of {cut(timeline.settings.main_ref)}: {joined(said)}"
        return Measure(Verdict.FAIL, value, pushed, ids)
    missing = _not_observed(case)
    if missing:
        return Measure(Verdict.INVESTIGATE, None, f"not observed: {missing}")
    total = len(timeline.events("ref.update"))
    return Measure(Verdict.PASS, value, f"none of {count(total, 'ref update')} was of the integration branch")


def _number(events: list[Event]) -> int:
    """How many pushes: each is attempted and then accepted or refused, and either line may be all that is
    left.

    Several hooks may tell of one acceptance; each of them tells of every push once.
    """
    told = Counter((event.data["outcome"], str(event.data.get("hook"))) for event in events)
    most: defaultdict[str, int] = defaultdict(int)
    for (outcome, _), number in told.items():
        most[outcome] = max(most[outcome], number)
    return max(most["attempted"], most["accepted"] + most["refused"])


def _unseen_moves(case: Case, seen: set[str]) -> tuple[list[str], tuple[str, ...]]:
    """The integration branch stood elsewhere from one look at the origin to the next, and no push explains
    it.
    """
    name = case.timeline.settings.main_ref
    looks = [refs for refs in case.timeline.refs if refs.where == "origin"]
    said, ids = [], []
    for before, after in pairwise(looks):
        old, new = before.refs.get(name), after.refs.get(name)
        if old != new and str(new) not in seen:
            said.append(f"it moved from {str(old)[:12]} to {str(new)[:12]} though the origin saw no push")
            ids += [before.id, after.id]
    return said, tuple(ids)


def _who(case: Case, event: Event) -> str:
    """Who pushed: a process that the keeper knows, otherwise whatever the push said of itself."""
    pusher = event.data["pusher"]
    at = f"{case.timeline.clock(event.t):g} s into the drill ({cut(str(event.data['outcome']))})"
    for pid in _pids(pusher):
        for process in case.timeline.processes.values():
            if process.pid == pid and process.alive(event.t) and process.role != "service":
                task = f"{cut(process.task)}, " if process.task else ""
                return f"{task}pid {pid} ({process.role}, {command(process.cmdline)}), {at}"
    if isinstance(pusher, Mapping):
        env = pusher.get("env")
        claims = {**env, **pusher} if isinstance(env, Mapping) else pusher
        claimed = claims.get("task") or claims.get("task_id") or claims.get("TASK_ID")
        return f"by its own word {cut(str(claimed))}, {at}" if claimed else f"an unknown pusher, {at}"
    return f"by its own word {cut(str(pusher))}, {at}" if pusher else f"an unknown pusher, {at}"


def _pids(pusher: object) -> list[int]:
    """Process ids of the pusher and its parents, nearest first."""
    if not isinstance(pusher, Mapping):
        return []
    chain = pusher.get("chain")
    links = [pusher, *(chain if isinstance(chain, list) else [])]
    pids = [link.get("pid") if isinstance(link, Mapping) else link for link in links]
    return [pid for pid in pids if type(pid) is int]


def _not_observed(case: Case) -> str | None:
    for event in case.timeline.events("observe.missing"):
        if event.data["what"] == "origin":
            return f"the origin could not be watched: {cut(str(event.data['why']), 160)}"
    looked = any(refs.where == "origin" for refs in case.timeline.refs)
    if not looked and not case.timeline.events("ref.update"):
        return "nothing was seen of the git origin"
    return None


def _limits(case: Case) -> Limits:
    return {"pass": case.rubric.rows.direct_pushes.pass_, "investigate": None}


def measure(case: Case) -> Measure:
    """Updates of the integration branch that the origin received, accepted or refused."""
    return _measured(case)


CHECK = RowCheck("direct-pushes", "ref updates", measure.__doc__ or "", measure, _limits)
