"""Tool calls and model requests: what was in flight from when to when.

A tool call is in flight from the earlier of "issued" and "started". It ends when the tool says so; without
that word it ends with its process, because a dead process writes nothing.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from scoring.history import Event
from scoring.lives import Pids
from scoring.reading import Reader, integer, optional_text, strings, text
from scoring.records import ModelRequest, ToolCall, Worker

_Key = tuple[str, str]  # the worker, as the common end of `worker-…` and `tools-…`; the call


def read_calls(reader: Reader, pids: Pids, workers: list[Worker]) -> list[ToolCall]:
    builder = _CallBuilder(reader, pids, workers)
    calls = reader.each("tool.issue", builder.issued)
    calls += builder.never_issued()
    calls.sort(key=lambda call: (call.start, call.source, call.call))
    return calls


class _CallBuilder:
    """Joins what the worker says of a call with what the tool says of it.

    Two workers on one task may use the same call ids, so a call belongs to the worker whose journal has the
    same ending as the tool's. Where a tool writes under another name, the call id alone must do.
    """

    def __init__(self, reader: Reader, pids: Pids, workers: list[Worker]) -> None:
        self._reader, self._pids = reader, pids
        self._workers = {_ending(worker.source): worker for worker in workers}
        self._owner: dict[str, str] = {}
        self._issues: set[_Key] = set()
        for event in reader.of("tool.issue"):
            call = event.data.get("call")
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
            call, ending = event.data.get("call"), _ending(event.source)
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
        """Calls that only the tool knows of, because their worker's own line was torn: they ran all the
        same.
        """
        calls = []
        for key in self._starts.keys() - self._issues:
            event = self._starts[key]
            worker = self._workers.get(key[0])
            task, attempt = (worker.task, worker.attempt) if worker else (key[1].partition(".")[0], 0)
            source = worker.source if worker else event.source
            pid = event.data.get("pid")
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


_TOKENS_MAX = 10**12


def _tokens(data: Mapping[str, Any], key: str) -> int:
    number = integer(data, key)
    if not 0 <= number < _TOKENS_MAX:
        raise ValueError(f"{key} is no number of tokens")
    return number


def _ending(source: str) -> str:
    return source.partition("-")[2]


def read_requests(reader: Reader) -> tuple[ModelRequest, ...]:
    chunks: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    # Spelled out, because a third of a history is chunks.
    for event in reader.of("model.chunk"):
        req, tokens = event.data.get("req"), event.data.get("tokens")
        if type(req) is str and type(tokens) is int and 0 <= tokens < _TOKENS_MAX:
            chunks[req].append((event.t, tokens))
        else:
            reader.malformed.append((event.id, "model.chunk: no request, or no number of tokens"))
    closes = dict(reader.each("model.close", lambda event: (text(event.data, "req"), event)))

    def make(event: Event) -> ModelRequest:
        data = event.data
        req = text(data, "req")
        close, streamed = closes.get(req), chunks.get(req, [])
        said = 0 if close is None else _tokens(close.data, "tokens_out")
        return ModelRequest(
            req=req,
            run=optional_text(data, "run") or "",
            task=optional_text(data, "task") or "",
            t=event.t,
            tokens_in=_tokens(data, "tokens_in"),
            chunks=tuple(streamed),
            close=None if close is None else close.t,
            outcome=None if close is None else text(close.data, "outcome"),
            marks=strings(data, "marks"),
            id=event.id,
            tokens_out=max(said, sum(tokens for _, tokens in streamed)),
        )

    return tuple(reader.each("model.open", make))
