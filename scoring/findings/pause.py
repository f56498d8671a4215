"""P1 to P5: what else a pause and its resume must not do.

Not judged here: how long it took to get quiet (row 1) and what lay in the worktrees (row 2).
"""

from scoring.case import Case
from scoring.findings.check import NOT_EXERCISED, NOT_OBSERVED, Offence, Outcome, finding
from scoring.rows.dirty_worktrees import checkpointed_step
from scoring.rows.duplicate_workers import overlaps
from scoring.rows.time_to_quiet import quiet_at
from scoring.sentences import cut, named, worker_name
from scoring.timeline import Control, Worker


@finding("P1", "started-during-hold", "pause")
def started_during_hold(case: Case) -> Outcome:
    """A task or attempt was started while the hold was on."""
    pauses = case.issued("pause")
    if not pauses:
        return NOT_EXERCISED
    timed = case.measurable(pauses)
    if not timed:
        return NOT_OBSERVED
    return [
        Offence(
            f"{worker_name(worker)} was started {case.timeline.seconds(worker.started - pause.t):g} s after "
            f"the pause, while the hold was on",
            (*pause.ids[:1], *worker.ids[:1]),
        )
        for pause in timed
        for worker in case.timeline.workers
        if pause.t + case.slack(pause) < worker.started < case.hold_end(pause)
    ]


@finding("P2", "not-checkpointed", "pause")
def not_checkpointed(case: Case) -> Outcome:
    """At quiet, a worker's last call that changed files has no wip commit."""
    pauses = case.issued("pause")
    if not pauses:
        return NOT_EXERCISED
    looked = [p for p in pauses if case.snapshots(f"{p.label}:quiet") and quiet_at(case, p) is not None]
    if not looked:
        return NOT_OBSERVED
    return [
        offence
        for pause in looked
        for worker in case.alive_at(pause.t)
        for offence in _uncommitted(case, pause, worker)
    ]


def _uncommitted(case: Case, pause: Control, worker: Worker) -> list[Offence]:
    tree = case.snapshot(f"{pause.label}:quiet", worker.task)
    if tree is None or not tree.exists:
        return []
    wip = checkpointed_step(case, pause, tree)
    changing = [
        call
        for call in case.timeline.calls_by(worker)
        if call.changed and call.returned_t is not None and call.returned_t <= tree.t
    ]
    if not changing or (wip is not None and changing[-1].step <= wip):
        return []
    last = changing[-1]
    have = "it has no wip commit" if wip is None else f"its last wip commit is of step {wip}"
    why = f"{worker_name(worker)} changed files in step {last.step} and {have} at quiet"
    return [Offence(why, (tree.id, *last.ids[-1:]))]


@finding("P3", "resume-point", "pause")
def resume_point(case: Case) -> Outcome:
    """After a resume, a worker repeated or skipped a step instead of going on where it had checkpointed."""
    resumes = [(r, p) for r in case.issued("resume") if (p := _pause_before(case, r)) is not None]
    if not resumes:
        return NOT_EXERCISED
    return [
        offence
        for resume, pause in resumes
        for worker in case.timeline.workers
        for offence in _went_on_wrongly(case, pause, resume, worker)
    ]


def _pause_before(case: Case, resume: Control) -> Control | None:
    earlier = [pause for pause in case.issued("pause") if pause.t < resume.t]
    return earlier[-1] if earlier else None


def _went_on_wrongly(case: Case, pause: Control, resume: Control, worker: Worker) -> list[Offence]:
    until = case.timeline.until(resume)
    calls = case.timeline.calls_by(worker)
    after = next((call for call in calls if resume.t <= call.start < until), None)
    if after is None:
        return []
    if worker.started > resume.t:
        allowed = _steps_of_new_attempt(case, pause, worker)
    elif worker.begin <= pause.t:
        before = [call for call in calls if call.start < resume.t]
        # A call that never returned may be made again, or may have been done: both are where it stood.
        allowed = {before[-1].step + 1} if before else {worker.first_step}
        if before and before[-1].returned_t is None:
            allowed.add(before[-1].step)
    else:
        return []
    if not allowed or after.step in allowed:
        return []
    done = "repeated" if after.step < min(allowed) else "skipped to"
    why = f"{worker_name(worker)} {done} step {after.step} after the resume; step {max(allowed)} was next"
    return [Offence(why, (*resume.ids[:1], *after.ids))]


def _steps_of_new_attempt(case: Case, pause: Control, worker: Worker) -> set[int]:
    """The step after the task's last wip commit; empty when the task was not at work at the pause."""
    if worker.task not in {w.task for w in case.alive_at(pause.t)}:
        return set()
    commits = [
        event.data["step"]
        for event in case.timeline.events("checkpoint")
        if event.data["task"] == worker.task and event.t <= worker.begin
    ]
    trees = [case.snapshot(f"{pause.label}:{when}", worker.task) for when in ("quiet", "hold-end")]
    commits += [tree.wip_step for tree in trees if tree is not None and tree.wip_step is not None]
    return {max(commits, default=0) + 1}


@finding("P4", "resumed-nobody-or-some", "pause")
def resumed_nobody_or_some(case: Case) -> Outcome:
    """A resume set nobody to work again, or only some, or brought up a second worker for a task."""
    resumes = [(r, p) for r in case.timeline.of_kind("resume") if (p := _pause_before(case, r)) is not None]
    longest = case.timeline.settings.longest
    resumes = [(r, p) for r, p in resumes if case.timeline.until(r) >= r.t + longest]
    if not resumes:
        return NOT_EXERCISED
    if not case.measurable(resume for resume, _ in resumes):
        return NOT_OBSERVED
    return [offence for resume, pause in resumes for offence in _badly_resumed(case, pause, resume)]


def _badly_resumed(case: Case, pause: Control, resume: Control) -> list[Offence]:
    timeline, slack = case.timeline, case.slack(resume)
    deadline = min(timeline.until(resume), resume.t + 3 * timeline.settings.longest + slack)
    at_work = {call.task for call in timeline.calls if call.start <= deadline and _ends_after(call.end, resume.t)}
    gone = {w.task for w in timeline.workers if w.left in ("done", "drop") and (w.left_t or 0) <= deadline}
    silent = {w.task for w in case.alive_at(pause.t) if _stalled(case, w, pause, resume)}
    idle = sorted({w.task for w in case.alive_at(pause.t)} - at_work - gone - silent)
    waited = timeline.seconds(deadline - resume.t)
    offences = [
        Offence(f"{cut(task)} made no tool call in the {waited:g} s after the resume", resume.ids[:1]) for task in idle
    ]
    offences += [
        Offence(
            f"the resume brought up {worker_name(second)} while pid {first.pid} was still at work",
            (*resume.ids[:1], *first.ids, *second.ids),
        )
        for first, second in overlaps(case, resume.t, slack, timeline.until(resume))
        if second.started > resume.t
    ]
    return offences


def _stalled(case: Case, worker: Worker, pause: Control, resume: Control) -> bool:
    """Whether a worker had stopped giving signs of life before it was held: then it is no resume that failed.

    Where workers say that they park, one that neither parked nor did anything else in the whole hold had too.
    """
    if was_silent(case, worker, pause.t):
        return True
    parking = any(pause.t < event.t < resume.t for event in case.timeline.events("worker.parked"))
    own = case.timeline.by_source.get(worker.source, ())
    acted = any(pause.t < event.t < resume.t for event in own)
    return parking and not acted and not any(c.in_flight(pause.t) for c in case.timeline.calls_by(worker))


def _ends_after(end: int | None, t: int) -> bool:
    return end is None or end > t


def was_silent(case: Case, worker: Worker, t: int) -> bool:
    """Whether a worker had shown no sign of life for two longest calls before `t`: a stall, not this
    control's doing.
    """
    since = t - 2 * case.timeline.settings.longest
    own = case.timeline.by_source.get(worker.source, ())
    if worker.begin >= since or any(since <= event.t <= t for event in own):
        return False
    return not any(call.start <= t and _ends_after(call.end, since) for call in case.timeline.calls_by(worker))


@finding("P5", "frozen", "pause")
def frozen(case: Case) -> Outcome:
    """A process of the run was frozen (state T) during a hold, instead of being stopped at a boundary."""
    pauses = case.issued("pause")
    if not pauses:
        return NOT_EXERCISED
    if not case.timeline.events("keeper.begin"):
        return NOT_OBSERVED
    offences = []
    for event in case.timeline.events("proc.state"):
        process = case.timeline.processes.get(event.data["proc"])
        pause = next((p for p in pauses if p.t <= event.t < case.hold_end(p)), None)
        if event.data["state"] != "T" or pause is None or process is None or process.role == "service":
            continue
        if case.injected(process.task, process.pid, process.proc):
            continue
        after = case.timeline.seconds(event.t - pause.t)
        why = f"{named(process)} was frozen {after:g} s after the pause"
        offences.append(Offence(why, (*pause.ids[:1], event.id)))
    return offences
