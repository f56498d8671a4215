"""Assembling a timeline: which reader makes which records, and the indexes that many checks ask for.

Speed matters: a drill has a hundred thousand events, so they are sorted by kind once and each kind is read
in one plain loop. How a thing's beginning and end are decided stands with its readers, in `lives`, `calls`
and `snapshots`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from scoring.calls import read_calls, read_requests
from scoring.history import History
from scoring.lives import Pids, read_processes, read_workers, with_tasks
from scoring.reading import Reader
from scoring.snapshots import (
    audit_of,
    canary_of,
    read_controls,
    read_settings,
    refs_of,
    table_of,
    worktree_of,
)

T = TypeVar("T")


def assemble(history: History) -> dict[str, Any]:
    """The fields of a Timeline, without `history`."""
    reader = Reader(history)
    events = history.events
    settings, config = read_settings(reader)
    processes = read_processes(reader)
    pids = Pids(processes, lag=settings.longest // 4)
    workers = read_workers(reader, pids, processes)
    processes = with_tasks(processes, workers)
    calls = read_calls(reader, pids, workers)
    killed_t = next((event.t for event in reader.of("keeper.kill")), None)
    first_t, last_t = (events[0].t, events[-1].t) if events else (0, 0)
    begun = reader.of("fleet.at-work") or reader.of("run.begin")
    ended = [event.t for event in reader.of("run.end")] + ([] if killed_t is None else [killed_t])
    controls = read_controls(reader)
    requests = read_requests(reader)
    audits = tuple(reader.each("audit", lambda event: audit_of(event, processes)))
    return {
        "config": config,
        "settings": settings,
        "controls": controls,
        "calls": tuple(calls),
        "workers": tuple(workers),
        "processes": processes,
        "requests": requests,
        "requests_of": _grouped(requests, lambda request: request.task),
        "audits": audits,
        "worktrees": tuple(reader.each("worktree.state", worktree_of)),
        "refs": tuple(reader.each("refs.state", refs_of)),
        "tables": tuple(sorted(reader.each("claim.table", table_of), key=lambda table: table.written_t)),
        "canaries": tuple(reader.each("canary", canary_of)),
        "by_kind": reader.by_kind,
        "by_source": reader.by_source,
        "calls_of": _grouped(calls, lambda call: call.source),
        "workers_of": _grouped(workers, lambda worker: worker.task),
        "malformed": tuple(reader.malformed),
        "begin_t": begun[0].t if begun else first_t,
        "end_t": min(ended, default=last_t),
        "killed_t": killed_t,
        "keeper_until": _keeper_until(reader, last_t),
    }


def _keeper_until(reader: Reader, last_t: int) -> int:
    """To the end, when the keeper came to its own end; otherwise to its last word."""
    if reader.of("keeper.end"):
        return last_t
    return max(
        (events[-1].t for source, events in reader.by_source.items() if source == "keeper" and events),
        default=0,
    )


def _grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, tuple[T, ...]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return {name: tuple(group) for name, group in groups.items()}
