"""A4, A5, A6: what an abort leaves behind: the record of its kills, the evidence in git, and litter.

An abort deletes nothing. What stood in the worktrees when it was issued is compared with the last look at
them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from scoring.case import Case
from scoring.findings.check import NOT_EXERCISED, NOT_OBSERVED, Offence, Outcome, finding
from scoring.sentences import count, cut, listing, worker_name
from scoring.timeline import Control, Refs, Worker, Worktree
from scoring.verdict import Verdict


def _killed_entries(case: Case) -> list[tuple[Mapping[str, Any], str]]:
    events = case.timeline.events("claim.killed")
    return [(event.data["entry"], event.id) for event in events if isinstance(event.data["entry"], Mapping)]


@finding("A4", "killed-line", "abort")
def killed_line(case: Case) -> Outcome:
    """A worker that was killed has no complete `killed dirty` line: pid, task and branch."""
    abort = case.abort()
    if abort is None:
        return NOT_EXERCISED
    if not case.timeline.events("keeper.begin"):
        return NOT_OBSERVED
    entries = _killed_entries(case)
    return [
        offence
        for worker in case.timeline.workers
        if _was_killed(case, abort, worker)
        for offence in _without_line(case, worker, entries)
    ]


def _was_killed(case: Case, abort: Control, worker: Worker) -> bool:
    """Ended by SIGKILL after the abort, by the subject. Whoever a TERM was enough for was not killed dirty."""
    process = case.timeline.worker_process(worker)
    if process is None or process.end is None or process.role == "coordinator" or case.ended_by_us(process.end):
        return False
    if process.end <= abort.t + case.slack(abort) or case.injected(worker.task, worker.pid, worker.proc):
        return False
    if process.signal is not None:
        return process.signal == 9
    # Where the kernel's word is missing: one that was silent past the window did not leave by itself.
    silent = worker.left is None and process.status in (None, 137)
    return silent and process.end > abort.t + case.timeline.settings.grace


def _without_line(case: Case, worker: Worker, entries: list[tuple[Mapping[str, Any], str]]) -> Iterator[Offence]:
    branch = case.timeline.settings.branch_prefix + worker.task
    wanted = {"pid": worker.pid, "task": worker.task, "branch": branch}
    mine = [
        (entry, id)
        for entry, id in entries
        if entry.get("pid") == worker.pid or (entry.get("pid") is None and entry.get("task") == worker.task)
    ]
    if any(all(entry.get(key) == value for key, value in wanted.items()) for entry, _ in mine):
        return
    ids = (*worker.ids[-1:], *(id for _, id in mine))
    if mine:
        wrong = [key for key, value in wanted.items() if mine[0][0].get(key) != value]
        why = f"the killed line of {worker_name(worker)} lacks the right {listing(wrong)}"
        yield Offence(why, ids)
    else:
        yield Offence(f"{worker_name(worker)} was killed and no `killed dirty` line says so", ids)


def _last_look(case: Case, abort: Control, task: str) -> Worktree | None:
    looks = (f"{abort.label}:sweep", "end")
    found = [tree for when in looks if (tree := case.snapshot(when, task)) is not None]
    return found[-1] if found else None


@finding("A5", "evidence-gone", "abort")
def evidence_gone(case: Case) -> Outcome:
    """A worktree, a branch, a checkpoint or an uncommitted change that existed at the abort is gone."""
    abort = case.abort()
    if abort is None:
        return NOT_EXERCISED
    looks = [
        (then, now)
        for then in case.snapshots(f"{abort.label}:issue")
        if (now := _last_look(case, abort, then.task)) is not None
    ]
    if not looks:
        return NOT_OBSERVED
    return [offence for then, now in looks for offence in _losses(case, abort, then, now)]


def _losses(case: Case, abort: Control, then: Worktree, now: Worktree) -> Iterator[Offence]:
    ids, task = (then.id, now.id), cut(then.task)
    if then.exists and not now.exists:
        yield Offence(f"the worktree of {task} is gone", ids)
    if then.branch is not None and not _branch_is_there(case, abort, then, now):
        yield Offence(f"the branch of {task} ({cut(then.branch)}) is gone", ids)
    lost = [sha[:12] for sha in then.wips if sha not in now.wips]
    if lost and then.exists and now.exists:
        yield Offence(f"{task} lost {count(len(lost), 'checkpoint')} ({listing(lost)})", ids)
    changes = sorted(set(then.dirty) - set(now.dirty))
    # A worker that checkpoints while its worktree is read shows a change that its commit then takes in.
    kept = _committed_since(case, abort, then) or _stashed_since(case, abort)
    if now.exists and changes and then.head == now.head and not kept:
        yield Offence(f"uncommitted changes of {task} are gone ({listing(changes)})", ids)


def _branch_is_there(case: Case, abort: Control, then: Worktree, now: Worktree) -> bool:
    """Whether a branch that stood at the abort still stands; one that was gone before is not this abort's."""
    name = f"refs/heads/{(then.branch or '').removeprefix('refs/heads/')}"
    before = _refs_at(case, f"{abort.label}:issue")
    after = {**_refs_at(case, f"{abort.label}:sweep"), **_refs_at(case, "end")}
    if "repo" not in after:
        return now.branch is not None or not now.exists
    had = not before or any(name in refs.refs for refs in before.values())
    return not had or any(name in refs.refs for refs in after.values())


def _refs_at(case: Case, when: str) -> dict[str, Refs]:
    return {refs.where: refs for refs in case.timeline.refs if refs.when == when}


def _committed_since(case: Case, abort: Control, then: Worktree) -> bool:
    # A look is stamped when it is written down; git read the tree some time between the abort and that.
    since = min(then.t, abort.t) - case.timeline.settings.longest // 4
    commits = case.timeline.events("checkpoint")
    return any(event.data["task"] == then.task and event.t >= since for event in commits)


def _stashed_since(case: Case, abort: Control) -> bool:
    """Whether stash entries came up since: what is in one is no checkpoint, which A6 says, but it is not gone."""
    before = sum(len(refs.stashes) for refs in _refs_at(case, f"{abort.label}:issue").values())
    return any(
        sum(len(refs.stashes) for refs in _refs_at(case, when).values()) > before
        for when in (f"{abort.label}:sweep", "end")
    )


@finding("A6", "leftovers", "abort")
def leftovers(case: Case) -> Outcome:
    """Stash entries, lock files of dead processes, or half-written files that no killed line lists."""
    abort = case.abort()
    if abort is None:
        return NOT_EXERCISED
    when = f"{abort.label}:sweep"
    trees = case.snapshots(when)
    refs = [refs for refs in case.timeline.refs if refs.when == when]
    if not trees and not refs:
        return NOT_OBSERVED
    offences = [
        Offence(f"{count(len(one.stashes), 'stash entry', 'stash entries')} left", (one.id,), Verdict.INVESTIGATE)
        for one in refs
        if one.stashes
    ]
    return offences + [offence for tree in trees for offence in _litter(case, tree)]


def _litter(case: Case, tree: Worktree) -> Iterator[Offence]:
    task = cut(tree.task)
    if tree.dead_locks:
        why = f"{task} has {count(len(tree.dead_locks), 'lock')} of dead processes ({listing(tree.dead_locks)})"
        yield Offence(why, (tree.id,), Verdict.INVESTIGATE)
    named: set[object] = set()
    for entry, _ in _killed_entries(case):
        files = entry.get("files")
        if entry.get("task") == tree.task and isinstance(files, list):
            named.update(file for file in files if isinstance(file, str))
    for sweep in case.timeline.events("claim.sweep"):
        if isinstance(sweep.data["dirty"], list) and tree.path in sweep.data["dirty"]:
            named.update(tree.half_written)
    # Somebody who is still writing leaves nothing behind yet; that he lives is another finding.
    writing = any(worker.alive(tree.t) for worker in case.timeline.workers_of.get(tree.task, ()))
    unlisted = [path for path in tree.half_written if path not in named]
    if unlisted and not writing:
        why = f"{task} has half-written files that nobody listed ({listing(unlisted)})"
        yield Offence(why, (tree.id,), Verdict.INVESTIGATE)
