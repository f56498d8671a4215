"""How records are made from events: which event starts a thing, which one ends it, and what to believe when one is missing.

Three decisions matter. A tool call is in flight from the earlier of "issued" and "started", and ends when the tool
says so; without that word it ends with its process, because a dead process writes nothing. A worker ends when the
keeper saw its process end; pids are recycled, so a process is found by pid *and* time. And an event that has its keys
but no sense in them is set aside in `malformed`, so that one hostile line can neither stop the scoring nor vanish.

Speed matters: a drill has a hundred thousand events, so each kind is read in one plain loop.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scoring.history import Event, History
from scoring.reading import flag, integer, mapping, number, optional_integer, optional_text, strings, text
from scoring.records import (
    Audit,
    Canary,
    Control,
    Listed,
    ModelRequest,
    Process,
    Refs,
    Settings,
    Table,
    ToolCall,
    Worker,
    Worktree,
)

_SENSELESS = (TypeError, ValueError, KeyError, AttributeError, OverflowError)


class _Reader:
    """One history being read: its events by kind, and what made no sense so far."""

    def __init__(self, history: History) -> None:
        by_kind: defaultdict[str, list[Event]] = defaultdict(list)
        by_source: defaultdict[str, list[Event]] = defaultdict(list)
        for event in history.events:
            by_kind[event.kind].append(event)
            by_source[event.source].append(event)
        self.by_kind = {kind: tuple(events) for kind, events in by_kind.items()}
        self.by_source = {source: tuple(events) for source, events in by_source.items()}
        self.malformed: list[tuple[str, str]] = []

    def of(self, kind: str) -> tuple[Event, ...]:
        return self.by_kind.get(kind, ())

    def each(self, kind: str, make: Callable[[Event], T]) -> list[T]:
        """What `make` makes of every event of one kind; where it finds no sense, the event is set aside."""
        made: list[T] = []
        for event in self.by_kind.get(kind, ()):
            try:
                made.append(make(event))
            except _SENSELESS as error:
                self.malformed.append((event.id, f"{kind}: {error}"))
        return made


def assemble(history: History) -> dict[str, Any]:
    """The fields of a Timeline, without `history`."""
    reader = _Reader(history)
    events = history.events
    settings, config = _settings(reader)
    processes = _processes(reader)
    workers = _workers(reader, processes)
    calls = _calls(reader, processes, workers)
    killed_t = next((event.t for event in reader.of("keeper.kill")), None)
    first_t, last_t = (events[0].t, events[-1].t) if events else (0, 0)
    begun = reader.of("fleet.at-work") or reader.of("run.begin")
    ended = [event.t for event in reader.of("run.end")] + ([] if killed_t is None else [killed_t])
    controls = _controls(reader)
    audits = tuple(reader.each("audit", _audit))
    return {
        "config": config,
        "settings": settings,
        "controls": controls,
        "calls": tuple(calls),
        "workers": tuple(workers),
        "processes": processes,
        "requests": _requests(reader),
        "audits": audits,
        "worktrees": tuple(reader.each("worktree.state", _worktree)),
        "refs": tuple(reader.each("refs.state", _refs)),
        "tables": tuple(sorted(reader.each("claim.table", _table), key=lambda table: table.written_t)),
        "canaries": tuple(reader.each("canary", _canary)),
        "by_kind": reader.by_kind,
        "by_source": reader.by_source,
        "calls_of": _grouped(calls, lambda call: call.source),
        "workers_of": _grouped(workers, lambda worker: worker.task),
        "malformed": tuple(reader.malformed),
        "begin_t": begun[0].t if begun else first_t,
        "end_t": min(ended, default=last_t),
        "killed_t": killed_t,
    }


def _grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, tuple[T, ...]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return {name: tuple(group) for name, group in groups.items()}


# --- the drill's own settings ---------------------------------------------------------------------------------------


def _settings(reader: _Reader) -> tuple[Settings, Mapping[str, Any]]:
    made = reader.each("run.begin", lambda event: (_settings_of(event), mapping(event.data, "config")))
    return made[0] if made else (Settings(), {})


def _settings_of(event: Event) -> Settings:
    config = mapping(event.data, "config")
    marks = mapping(config, "marks")
    speed = number(config, "speed", 1.0)
    if not 1e-6 < speed < 1e9:
        raise ValueError("speed is out of range")
    exits = config.get("success_exit", (0,))
    return Settings(
        run=text(event.data, "run"),
        drill=_name(event.data["drill"]),
        subject=_name(event.data["subject"]),
        speed=speed,
        longest=_ns(config, "L_s"),
        grace=_ns(config, "grace_s"),
        kill_after=_ns(config, "kill_after_s"),
        sweep_after=_ns(config, "sweep_after_s"),
        tasks=strings(config, "tasks"),
        main_ref=text(config, "main_ref", "refs/heads/main"),
        branch_prefix=text(config, "branch_prefix", ""),
        tag_prefix=text(config, "tag_prefix", ""),
        new_tasks_max=optional_integer(config, "new_tasks_max"),
        success_exit=tuple(status for status in exits if type(status) is int),
        instruction_marks=_marks(marks.get("instruction")),
        delta_marks=_marks(marks.get("deltas")),
    )


def _ns(config: Mapping[str, Any], key: str) -> int:
    return round(number(config, key, 0.0) * 1e9)


def _name(value: object) -> str:
    """A drill's or subject's name, given as such or in a mapping that tells more."""
    return str(value.get("name", "")) if isinstance(value, Mapping) else str(value)


def _marks(value: object) -> frozenset[str]:
    """Marks, given as one, as a list, or by task."""
    if isinstance(value, Mapping):
        return frozenset().union(*(_marks(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return frozenset().union(*(_marks(item) for item in value))
    return frozenset([value]) if isinstance(value, str) and value else frozenset()


# --- controls -------------------------------------------------------------------------------------------------------

_ANSWERS = {"control.ack": "ack", "control.error": "error", "control.timeout": "timeout"}
_CONTROL_KINDS = ("control.issue", "control.delivered", *_ANSWERS, "control.question", "control.absent")


def _controls(reader: _Reader) -> tuple[Control, ...]:
    """One per number, from its issue; a subject that has no such control may never see an issue at all."""
    about: defaultdict[int, dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for kind in _CONTROL_KINDS:
        for n, event in reader.each(kind, lambda event: (_numbered(event), event)):
            about[n][kind].append(event)
    made = (_control(n, events) for n, events in about.items())
    return tuple(sorted((c for c in made if c is not None), key=lambda control: (control.t, control.n)))


def _numbered(event: Event) -> int:
    text(event.data, "control")
    if event.kind == "control.ack" and event.data["state"] is not None:
        text(event.data, "state")
    return integer(event.data, "n")


def _control(n: int, events: Mapping[str, list[Event]]) -> Control | None:
    issued = events.get("control.issue") or events.get("control.absent")
    if not issued:
        return None
    answers = sorted((e for kind in _ANSWERS for e in events.get(kind, [])), key=lambda event: event.t)
    answer = answers[0] if answers else None
    absent = bool(events.get("control.absent"))
    delivered = events.get("control.delivered")
    scope = issued[0].data.get("scope")
    return Control(
        kind=issued[0].data["control"],
        n=n,
        t=issued[0].t,
        scope=scope if isinstance(scope, str) else "run",
        data=issued[0].data,
        delivered_t=delivered[0].t if delivered else None,
        answer="absent" if absent else (_ANSWERS[answer.kind] if answer else "none"),
        answer_t=answer.t if answer else None,
        state=answer.data["state"] if answer and answer.kind == "control.ack" else None,
        questions=tuple(events.get("control.question", ())),
        ids=tuple(event.id for group in events.values() for event in group),
    )


# --- processes and workers ------------------------------------------------------------------------------------------


def _processes(reader: _Reader) -> dict[int, Process]:
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


class _Pids:
    """Which process had a pid at an instant."""

    def __init__(self, processes: Mapping[int, Process]) -> None:
        by_pid: defaultdict[int, list[Process]] = defaultdict(list)
        for process in sorted(processes.values(), key=lambda process: (process.start, process.proc)):
            by_pid[process.pid].append(process)
        self._by_pid = by_pid

    def find(self, pid: int, first_t: int, last_t: int) -> Process | None:
        """The process with this pid that was alive at `first_t`, or was first seen before `last_t`.

        The keeper may see a process a moment after it began to act, so the first one that ends after `first_t` is
        it, unless that one began only after everything that the actor is known to have done: then the pid had been
        recycled and the actor itself was never seen.
        """
        for process in self._by_pid.get(pid, ()):
            if process.end is None or process.end > first_t:
                return process if process.start <= last_t else None
        return None


def _workers(reader: _Reader, processes: Mapping[int, Process]) -> list[Worker]:
    goodbyes = dict(reader.each("worker.end", lambda event: (event.source, event)))
    pids = _Pids(processes)

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


# --- tool calls -----------------------------------------------------------------------------------------------------

_Key = tuple[str, str]  # the worker, as the common end of `worker-…` and `tools-…`; the call


def _calls(reader: _Reader, processes: Mapping[int, Process], workers: list[Worker]) -> list[ToolCall]:
    builder = _CallBuilder(reader, _Pids(processes), workers)
    calls = reader.each("tool.issue", builder.issued)
    calls += builder.never_issued()
    calls.sort(key=lambda call: (call.start, call.source, call.call))
    return calls


class _CallBuilder:
    """Joins what the worker says of a call with what the tool says of it.

    Two workers on one task may use the same call ids, so a call belongs to the worker whose journal has the same
    ending as the tool's. Where a tool writes under another name, the call id alone must do.
    """

    def __init__(self, reader: _Reader, pids: _Pids, workers: list[Worker]) -> None:
        self._reader, self._pids = reader, pids
        self._workers = {_ending(worker.source): worker for worker in workers}
        self._owner: dict[str, str] = {}
        self._issues: set[_Key] = set()
        for event in reader.of("tool.issue"):
            call = event.data["call"]
            if type(call) is str:
                ending = _ending(event.source)
                self._owner[call] = ending
                self._issues.add((ending, call))
        self._starts = self._keyed("tool.start")
        self._ends = self._keyed("tool.end")
        self._returns = self._keyed("tool.return")

    def _keyed(self, kind: str) -> dict[_Key, Event]:
        keyed: dict[_Key, Event] = {}
        for event in self._reader.of(kind):
            call, ending = event.data["call"], _ending(event.source)
            if type(call) is not str:
                self._reader.malformed.append((event.id, f"{kind}: call is no string"))
                continue
            if (ending, call) not in self._issues and ending not in self._workers:
                ending = self._owner.get(call, ending)
            keyed[ending, call] = event
        return keyed

    def issued(self, event: Event) -> ToolCall:
        """The call that a worker issued."""
        data = event.data
        call = text(data, "call")
        return self._call(
            (_ending(event.source), call),
            event,
            event.source,
            text(data, "task"),
            integer(data, "attempt"),
            integer(data, "step"),
            integer(data, "pid"),
        )

    def never_issued(self) -> list[ToolCall]:
        """Calls that only the tool knows of, because their worker's own line was torn: they ran all the same."""
        calls = []
        for key in self._starts.keys() - self._issues:
            event = self._starts[key]
            worker = self._workers.get(key[0])
            task, attempt = (worker.task, worker.attempt) if worker else (key[1].partition(".")[0], 0)
            source = worker.source if worker else event.source
            pid = event.data["pid"]
            if type(pid) is int:
                calls.append(self._call(key, None, source, task, attempt, 0, worker.pid if worker else pid))
        return calls

    def _call(
        self, key: _Key, issue: Event | None, source: str, task: str, attempt: int, step: int, worker_pid: int
    ) -> ToolCall:
        began, ended, returned = self._starts.get(key), self._ends.get(key), self._returns.get(key)
        pid = worker_pid if began is None else integer(began.data, "pid")
        seen = [event for event in (issue, began, ended, returned) if event is not None]
        start = min(event.t for event in seen[:2]) if issue and began else seen[0].t
        end: int | None
        if ended is not None:
            end, cut = ended.t, False
        elif returned is not None:
            end, cut = returned.t, False
        else:
            end = self._end_of_process(key[0], pid, worker_pid, start, seen[-1].t)
            cut = end is not None
        return ToolCall(
            call=key[1],
            task=task,
            attempt=attempt,
            step=step,
            worker_pid=worker_pid,
            pid=pid,
            start=start,
            end=end if end is None else max(end, start),
            cut=cut,
            changed=None if returned is None else strings(returned.data, "changed"),
            returned_t=None if returned is None else returned.t,
            ids=tuple(event.id for event in seen),
            source=source,
        )

    def _end_of_process(self, ending: str, pid: int, worker_pid: int, start: int, last_t: int) -> int | None:
        """When the process of a call that never said that it was done was gone."""
        worker = self._workers.get(ending)
        if pid != worker_pid or worker is None:
            process = self._pids.find(pid, start, last_t)
            if process is not None:
                return process.end
        return None if worker is None else worker.end


_endings: dict[str, str] = {}
