"""Processes and workers: who lived from when to when.

A worker ends when the keeper saw its process end. Pids are recycled, so a process is found by pid *and*
time; and the keeper may see a process a little after it began to act.
"""

from collections import defaultdict
from collections.abc import Mapping

from scoring.history import Event
from scoring.reading import Reader, integer, optional_integer, optional_text, strings, text
from scoring.records import Process, Worker


def read_processes(reader: Reader) -> dict[int, Process]:
    ends = dict(reader.each("proc.end", lambda event: (integer(event.data, "proc"), event)))
    execs = dict(reader.each("proc.exec", lambda event: (integer(event.data, "proc"), event)))
    made = reader.each("proc.start", lambda event: _process(event, ends, execs))
    return {process.proc: process for process in made}


def _process(event: Event, ends: Mapping[int, Event], execs: Mapping[int, Event]) -> Process:
    data = event.data
    proc = integer(data, "proc")
    end, exec_ = ends.get(proc), execs.get(proc)
    return Process(
        proc=proc,
        pid=integer(data, "pid"),
        ppid=integer(data, "ppid"),
        role=text(data, "role"),
        task=optional_text(data, "task"),
        cmdline=strings(data if exec_ is None else exec_.data, "cmdline"),
        cred_names=strings(data, "cred_names"),
        start=event.t,
        end=None if end is None else end.t,
        signal=None if end is None else optional_integer(end.data, "signal"),
        status=None if end is None else optional_integer(end.data, "status"),
        ids=(event.id,) if end is None else (event.id, end.id),
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


def read_workers(reader: Reader, pids: Pids) -> list[Worker]:
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
