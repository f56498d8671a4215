"""Row 2, dirty worktrees after a pause: what git says at quiet, a moment after the last tool call returned.

A worktree with changes is worth a look while its last wip commit is at most one boundary old, and fails
otherwise. A worker that is still in a call may well have changes: then the pause failed (row 1), not the
checkpoint.
"""

from scoring.case import Case
from scoring.rows.measure import Limits, Measure, RowCheck, over_controls
from scoring.rows.time_to_quiet import quiet_at
from scoring.sentences import count, cut, joined, listing
from scoring.timeline import Control, Worktree
from scoring.verdict import Verdict, worst


def checkpointed_step(case: Case, pause: Control, tree: Worktree) -> int | None:
    """The last step whose wip commit the snapshot shows, or that was being made while it was taken."""
    until = tree.t + case.slack(pause)
    steps = [
        event.data["step"]
        for event in case.timeline.events("checkpoint")
        if tree.t < event.t <= until and event.data.get("task") == tree.task
    ]
    return max([*steps, *([] if tree.wip_step is None else [tree.wip_step])], default=None)


def uncheckpointed_steps(case: Case, pause: Control, tree: Worktree) -> list[int]:
    """Steps of its task whose calls had ended by the snapshot, may have changed files, and have no wip
    commit.
    """
    wip = checkpointed_step(case, pause, tree)
    steps = {
        call.step
        for call in case.timeline.calls
        if call.task == tree.task and call.may_have_changed and call.end is not None and call.end <= tree.t
    }
    return sorted(step for step in steps if wip is None or step > wip)


def _measured(case: Case, pause: Control) -> Measure:
    trees = case.snapshots(f"{pause.label}:quiet")
    dirty = [tree for tree in trees if tree.exists and tree.dirty]
    ids = tuple(tree.id for tree in dirty or trees)
    if quiet_at(case, pause) is None:
        why = "never quiet, so there was no instant to look at"
        return Measure(Verdict.INVESTIGATE, None, why, pause.ids[:1] + ids)
    judged = [_verdict(case, pause, tree) for tree in dirty]
    said = joined(why for _, why in judged)
    unread = sorted({w.task for w in case.alive_at(pause.t)} - {tree.task for tree in trees})
    if unread or not trees:
        what = f"{count(len(unread), 'worktree')} ({listing(unread)})" if trees else "no worktree"
        why = f"not observed: {what} {'not ' if trees else 'was '}read at {pause.label}:quiet"
        verdict = worst([Verdict.INVESTIGATE, *(v for v, _ in judged)])
        return Measure(verdict, len(dirty) if trees else None, f"{why}; {said}" if said else why, ids)
    if not dirty:
        return Measure(Verdict.PASS, 0, f"all {count(len(trees), 'worktree')} clean at quiet", ids)
    return Measure(worst(v for v, _ in judged), len(dirty), said, ids)


def _verdict(case: Case, pause: Control, tree: Worktree) -> tuple[Verdict, str]:
    what = f"{cut(tree.task)} has {count(len(tree.dirty), 'changed file')}"
    if any(call.task == tree.task and call.in_flight(tree.t) for call in case.timeline.calls):
        return Verdict.INVESTIGATE, f"{what} and was in a tool call when its worktree was read"
    wip = checkpointed_step(case, pause, tree)
    if wip is None:
        return Verdict.FAIL, f"{what} and no wip commit"
    age = len(uncheckpointed_steps(case, pause, tree))
    if age <= case.rubric.rows.dirty_worktrees.investigate_boundaries:
        return Verdict.INVESTIGATE, f"{what}; its last wip commit is of step {wip}, {_old(age)}"
    return Verdict.FAIL, f"{what}; its last wip commit is of step {wip}, {_old(age)}"


def _old(age: int) -> str:
    return f"{count(age, 'tool boundary', 'tool boundaries')} ago"


def _limits(case: Case) -> Limits:
    return {"pass": 0, "investigate": None}


def measure(case: Case) -> Measure:
    """Worktrees with uncommitted changes at the quiet instant of a pause."""
    return over_controls(case, "pause", _measured)


CHECK = RowCheck("dirty-worktrees", "worktrees", measure.__doc__ or "", measure, _limits)
