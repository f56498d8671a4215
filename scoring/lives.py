"""Processes and workers: who lived from when to when.

A worker ends when the keeper saw its process end. Pids are recycled, so a process is found by pid *and*
time; and the keeper may see a process a little after it began to act.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from scoring.history import Event
from scoring.reading import Reader, integer, optional_integer, optional_text, strings, text
from scoring.records import NEVER_HEARD, Process, Worker


def read_processes(reader: Reader) -> dict[int, Process]:
    ends = dict(reader.each("proc.end", lambda event: (integer(event.data, "proc"), event)))
    execs = dict(reader.each("proc.exec", lambda event: (integer(event.data, "proc"), event)))
    made = reader.each("proc.start", lambda event: _process(event, ends, execs))
    return {process.proc: process for process in made}


def _process(event: Event, ends: Mapping[int, Event], execs: Mapping[int, Event]) -> Process:
    data = event.data
    proc = integer(data, "proc")
    end, exec_ = ends.get(proc), execs.get(proc)
    # Between fork and exec a process wears its parent's environment, so what it executed says more of it.
    said = {**data, **{key: value for key, value in exec_.data.items() if value is not None}} if exec_ else data
    return Process(
        proc=proc,
        pid=integer(data, "pid"),
        ppid=integer(data, "ppid"),
        role=text(data, "role"),
        task=optional_text(said, "task"),
        cmdline=strings(said, "cmdline"),
        cred_names=strings(data, "cred_names"),
        start=event.t,
        end=None if end is None else end.t,
        signal=None if end is None else optional_integer(end.data, "signal"),
        status=None if end is None else optional_integer(end.data, "status"),
        ids=(event.id,) if end is None else (event.id, end.id),
        attempt=optional_integer(said, "attempt"),
    )


class Pids:
    """Which process had a pid at an instant."""

    def __init__(self, processes: Mapping[int, Process], lag: int) -> None:
        """`lag` is how late the keeper may see a process, on a loaded machine."""
        self._lag = lag
        by_pid: defaultdict[int, list[Process]] = defaultdict(list)
        for process in sorted(processes.values(), key=lambda process: (process.start, process.proc)):
            by_pid[process.pid].append(process)
        self._by_pid = by_pid

    def find(self, pid: int, first_t: int, last_t: int) -> Process | None:
        """The process with this pid that was alive at `first_t`, or was first seen before `last_t`.

        The keeper may see a process a moment after it began to act, so the first one that ends after
        `first_t` is it, unless that one began only after everything that the actor is known to have done:
        then the pid had been recycled and the actor itself was never seen.
        """
        for process in self._by_pid.get(pid, ()):
            if process.end is None or process.end > first_t:
                return process if process.start <= last_t + self._lag else None
        return None


def with_tasks(processes: Mapping[int, Process], workers: list[Worker]) -> dict[int, Process]:
    """The processes, with the task of those that are workers and carry none in their environment."""
    tasks = {worker.proc: worker.task for worker in workers if worker.proc is not None}
    return {
        proc: replace(process, task=tasks[proc])
        if process.task is None and proc in tasks and process.role == "run"
        else process
        for proc, process in processes.items()
    }


def read_workers(reader: Reader, pids: Pids, processes: Mapping[int, Process]) -> list[Worker]:
    """Workers that were heard, and those that only the keeper saw, in the order in which they began."""
    heard = _heard(reader, pids)
    silent = _silent(reader, processes, {(worker.task, worker.attempt) for worker in heard})
    return sorted([*heard, *silent], key=lambda worker: worker.begin)


def _silent(reader: Reader, processes: Mapping[int, Process], heard: set[tuple[str, int]]) -> list[Worker]:
    """Attempts that were started and ended before they could say so: of each, its first process.

    An attempt that is started after an abort and killed while its interpreter starts was started all the same.
    """
    first: dict[tuple[str, int], Process] = {}
    for process in sorted(processes.values(), key=lambda process: process.start):
        if process.role == "run" and process.task is not None and process.attempt is not None:
            first.setdefault((process.task, process.attempt), process)
    goodbyes = dict(reader.each("worker.end", _goodbye))
    return [
        _unheard(task, attempt, process, goodbyes.get((task, attempt, process.pid)))
        for (task, attempt), process in first.items()
        if (task, attempt) not in heard
    ]


Goodbye = tuple[Event, str]
"""A worker.end and its reason."""


def _goodbye(event: Event) -> tuple[tuple[str, int, int], Goodbye]:
    data = event.data
    who = (text(data, "task"), integer(data, "attempt"), integer(data, "pid"))
    return who, (event, text(data, "reason"))


def _unheard(task: str, attempt: int, process: Process, said: Goodbye | None) -> Worker:
    goodbye, reason = said if said is not None else (None, None)
    return Worker(
        task=task,
        attempt=attempt,
        pid=process.pid,
        proc=process.proc,
        first_step=NEVER_HEARD,
        begin=process.start,
        end=process.end,
        left=reason,
        left_t=None if goodbye is None else goodbye.t,
        ids=process.ids[:1] if goodbye is None else (*process.ids[:1], goodbye.id),
        source="" if goodbye is None else goodbye.source,
        started=process.start,
        last_t=process.start if goodbye is None else goodbye.t,
    )


def _heard(reader: Reader, pids: Pids) -> list[Worker]:
    goodbyes = dict(reader.each("worker.end", lambda event: (event.source, event)))

    def make(event: Event) -> Worker:
        data, goodbye = event.data, goodbyes.get(event.source)
        pid = integer(data, "pid")
        last_t = reader.by_source[event.source][-1].t
        process = pids.find(pid, event.t, last_t)
        # A worker inside the coordinator's process does not end with it: there its own word is all there is.
        own = process is not None and process.role != "coordinator"
        left_t = None if goodbye is None else goodbye.t
        return Worker(
            task=text(data, "task"),
            attempt=integer(data, "attempt"),
            pid=pid,
            proc=None if process is None else process.proc,
            first_step=integer(data, "step"),
            begin=event.t,
            end=process.end if process is not None and (own or left_t is None) else left_t,
            left=None if goodbye is None else text(goodbye.data, "reason"),
            left_t=left_t,
            ids=(event.id,) if goodbye is None else (event.id, goodbye.id),
            source=event.source,
            started=min(event.t, process.start) if process is not None and own else event.t,
            last_t=last_t,
        )

    return reader.each("worker.begin", make)
