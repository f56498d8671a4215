"""Work lost: for each control, the tool-call time that no checkpoint holds, by task and in drill seconds.

Two ways to lose it: a worker ends with calls after its last checkpoint, or it makes a call again that had
returned. The cheap stop is the one at a boundary; this is what the dear ones cost.
"""

from scoring.case import Case
from scoring.timeline import Control, ToolCall, Worker


def work_lost_s(case: Case) -> dict[str, dict[str, float]]:
    """Control (`pause@1`, `abort@4`) to task to drill seconds; every task at work at the control is there,
    0.0 at best.
    """
    return {
        control.label: _by_task(case, control)
        for control in case.timeline.controls
        if control.kind != "resume" and control.answer != "absent"
    }


def _by_task(case: Case, control: Control) -> dict[str, float]:
    lost: dict[str, int] = {}
    for worker in case.alive_at(control.t):
        lost[worker.task] = lost.get(worker.task, 0) + _lost(case, control, worker)
    return {task: case.timeline.seconds(lost[task]) for task in sorted(lost)}


def _lost(case: Case, control: Control, worker: Worker) -> int:
    # What a resume repeats is what its pause lost: both are one window.
    until = case.timeline.until(control, "pause", "redirect", "abort")
    calls = case.timeline.calls_by(worker)
    if worker.end is not None and worker.end < until and not case.ended_by_us(worker.end):
        saved = _last_commit(case, worker)
        unsaved = (call for call in calls if call.may_have_changed and call.step > saved)
        return sum(_duration(call, worker.end) for call in unsaved)
    done = {call.step for call in calls if call.start < control.t and call.returned_t is not None}
    again = [call for call in calls if control.t <= call.start < until and call.step in done]
    return sum(_duration(call, until) for call in again)


def _last_commit(case: Case, worker: Worker) -> int:
    """The last step that is in a wip commit of this worker; 0 when there is none.

    A worker that tells of no checkpoint may have a coordinator that commits for it: then git's word counts, until
    another attempt at the task has begun.
    """
    own = case.timeline.by_source.get(worker.source, ())
    told = [event.data["step"] for event in own if event.kind == "checkpoint"]
    return max(told or _seen_commits(case, worker), default=0)


def _seen_commits(case: Case, worker: Worker) -> list[int]:
    later = [other.started for other in case.timeline.workers_of[worker.task] if other.started > worker.started]
    until = min(later, default=None)
    return [
        tree.wip_step
        for tree in case.timeline.worktrees
        if tree.task == worker.task and tree.wip_step is not None and (until is None or tree.t < until)
    ]


def _duration(call: ToolCall, until: int) -> int:
    end = until if call.end is None else min(call.end, until)
    return max(0, end - call.start)
