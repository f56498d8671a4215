"""A3, A7, A8: how far a stop reached: not beyond its run, and to everything of it.

The keeper's process table is the truth. Processes are told apart by the keeper's own numbers, since pids
are recycled.
"""

from scoring.case import Case
from scoring.findings.check import NOT_EXERCISED, NOT_OBSERVED, Offence, Outcome, finding
from scoring.sentences import cut, listing, process_name
from scoring.timeline import Audit, Control, Listed, Process


@finding("A3", "reached-outside", "abort")
def reached_outside(case: Case) -> Outcome:
    """A signal reached something outside the declared scope."""
    if not case.timeline.controls:
        return NOT_EXERCISED
    if not case.timeline.events("bystander.begin") and not case.timeline.events("keeper.begin"):
        return NOT_OBSERVED
    return [*_bystanders(case), *_services(case)]


def _bystanders(case: Case) -> list[Offence]:
    dismissed: dict[str, int] = {}
    for event in case.timeline.events("bystander.end"):
        dismissed.setdefault(event.source, event.t)
    keepers = [event.data["pid"] for event in case.timeline.events("keeper.begin")]
    return [
        Offence(
            f"{cut(str(event.data['name']))}, which is not of the run, got signal {event.data['signal']} "
            f"{case.timeline.clock(event.t):g} s into the drill",
            (event.id,),
        )
        for event in case.timeline.events("bystander.signal")
        if event.t < dismissed.get(event.source, event.t + 1)
        and not case.ended_by_us(event.t)
        and event.data["sender"] not in keepers
    ]


def _services(case: Case) -> list[Offence]:
    return [
        Offence(
            f"a service of the harness, {process_name(process.task, process.pid, process.cmdline)}, "
            f"was ended by signal {process.signal} {case.timeline.clock(process.end):g} s into the drill",
            process.ids,
        )
        for process in case.timeline.processes.values()
        if process.role == "service" and process.signal and process.end is not None
        if process.end < case.timeline.end_t and not _broken_on_purpose(case, process)
    ]


def _broken_on_purpose(case: Case, process: Process) -> bool:
    targets = [event.data.get("target") for event in case.timeline.events("fault.inject")]
    words = " ".join(process.cmdline)
    return case.injected(None, process.pid, process.proc) or any(
        isinstance(t, str) and t and (t in words or t == process.task) for t in targets
    )


@finding("A7", "ghost", "abort")
def ghost(case: Case) -> Outcome:
    """A helper outlived its worker and holds a credential, which is named and never shown. A security
    finding.
    """
    abort = case.abort()
    if abort is None:
        return NOT_EXERCISED
    looks = [a for a in case.timeline.audits if a.when in (f"{abort.label}:sweep", "end")]
    looks = [audit for audit in looks if not case.ended_by_us(audit.t)]
    if not looks:
        return NOT_OBSERVED
    ghosts: dict[int, Offence] = {}
    for audit in looks:
        for listed in audit.listed:
            process = case.timeline.processes.get(listed.proc)
            if process is not None and _outlived(case, audit, listed, process):
                ghosts.setdefault(process.proc, _ghost(case, abort, audit, listed, process))
    return list(ghosts.values())


def _ghost(case: Case, abort: Control, audit: Audit, listed: Listed, process: Process) -> Offence:
    name = process_name(_owner(case, process), process.pid, listed.cmdline or process.cmdline)
    after = case.timeline.seconds(audit.t - abort.t)
    why = (
        f"security: {name} outlived its worker, was alive {after:g} s after the abort and "
        f"holds the credential named {listing(process.cred_names)}"
    )
    return Offence(why, (audit.id, *process.ids))


def _outlived(case: Case, audit: Audit, listed: Listed, process: Process) -> bool:
    workers = case.timeline.workers
    if listed.role != "run" or not process.cred_names or any(w.proc == process.proc for w in workers):
        return False
    owner = _owner(case, process)
    # One that nobody can be named for outlived its worker when none is left at all.
    mine = [worker for worker in workers if owner is None or worker.task == owner]
    return bool(mine) and not any(worker.alive(audit.t) for worker in mine)


def _owner(case: Case, process: Process) -> str | None:
    """The task that a process works for: its own word, otherwise that of the worker it descends from."""
    if process.task is not None:
        return process.task
    by_proc = {worker.proc: worker.task for worker in case.timeline.workers if worker.proc is not None}
    seen: set[int] = set()
    parent: Process | None = process
    while parent is not None and parent.proc not in seen:
        seen.add(parent.proc)
        if parent.proc in by_proc:
            return by_proc[parent.proc]
        begun = parent.start
        above = [p for p in case.timeline.processes.values() if p.pid == (parent.ppid if parent else 0)]
        parent = next((p for p in above if p.alive(begun)), None)
    return None


@finding("A8", "sweep-differs", "abort")
def sweep_differs(case: Case) -> Outcome:
    """There was no sweep after the abort, or its list differs from what really lived at that instant."""
    abort = case.abort()
    if abort is None:
        return NOT_EXERCISED
    sweeps = [event for event in case.timeline.events("claim.sweep") if event.t > abort.t]
    if not sweeps and abort.answer == "none" and case.timeline.end_t < abort.t + case.timeline.settings.sweep_after:
        return NOT_OBSERVED  # the run was cut off before anybody could have swept
    if not sweeps:
        return [Offence("no sweep was made after the abort", abort.ids[:1])]
    sweep = sweeps[-1]
    if sweep.t > case.timeline.keeper_until:
        return NOT_OBSERVED
    claimed = _claimed_pids(sweep.data["alive"])
    # The subject looked at some instant before its answer: only what lived, or did not, all that time counts.
    # It takes a while to look, as long as a call: what began or ended in that time may be listed or not.
    unsure = case.unsure(abort)
    first = max(abort.t, sweep.t - case.timeline.settings.longest - unsure)
    last = sweep.t + unsure
    run = [p for p in case.timeline.processes.values() if p.role == "run"]
    steady = {p.pid for p in run if p.alive(first) and p.alive(last)}
    possible = {p.pid for p in run if p.start <= last and (p.end is None or p.end >= first)}
    possible |= {p.pid for p in case.timeline.processes.values() if p.role == "coordinator"}
    steady -= _below(run, claimed)
    offences = []
    if steady - claimed:
        why = f"the sweep lacks {_pids(steady - claimed)}, alive at that instant; it listed {_pids(claimed)}"
        offences.append(Offence(why, (sweep.id, *_ids(run, steady - claimed))))
    if claimed - possible:
        extra = _pids(claimed - possible)
        why = f"the sweep lists {extra}, not alive at that instant; alive were {_pids(steady)}"
        offences.append(Offence(why, (sweep.id, *_ids(run, claimed - possible))))
    return offences


def _below(run: list[Process], claimed: set[int]) -> set[int]:
    """Pids of processes below those that the sweep lists: who names a worker has named what runs in it."""
    covered = set(claimed)
    for process in sorted(run, key=lambda process: process.start):
        if process.ppid in covered:
            covered.add(process.pid)
    return covered - claimed


def _claimed_pids(alive: object) -> set[int]:
    """Pids of a sweep, given as numbers or as objects; remote jobs have none."""
    items = alive if isinstance(alive, list) else []
    pids = [item.get("pid") if isinstance(item, dict) else item for item in items]
    return {pid for pid in pids if type(pid) is int}


def _pids(pids: set[int]) -> str:
    if not pids:
        return "no pid"
    return f"pid {listing(sorted(pids))}"


def _ids(run: list[Process], pids: set[int]) -> list[str]:
    return [id for process in run if process.pid in pids for id in process.ids]
