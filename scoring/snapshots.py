"""What the drill was set to, what the operator asked for, and what git, the keeper and the subject said at
an instant.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from scoring.history import Event
from scoring.reading import (
    Reader,
    flag,
    integer,
    mapping,
    number,
    optional_integer,
    optional_text,
    strings,
    text,
)
from scoring.records import Audit, Canary, Control, Listed, Process, Refs, Settings, Table, Worktree


def read_settings(reader: Reader) -> tuple[Settings, Mapping[str, Any]]:
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
        pause_means=text(config, "pause_means", "quiesce"),
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


_ANSWERS = {"control.ack": "ack", "control.error": "error", "control.timeout": "timeout"}
_CONTROL_KINDS = ("control.issue", "control.delivered", *_ANSWERS, "control.question", "control.absent")


def read_controls(reader: Reader) -> tuple[Control, ...]:
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


def audit_of(event: Event, processes: Mapping[int, Process]) -> Audit:
    """What was alive: numbers of the keeper's, or descriptions where it (or a platform) gives them."""
    described = (_known(item, processes) if isinstance(item, int) else _listed(item) for item in event.data["alive"])
    listed = tuple(item for item in described if not item.state.startswith(("Z", "X")))
    return Audit(text(event.data, "when"), event.t, tuple(item.proc for item in listed), event.id, listed)


def _known(proc: int, processes: Mapping[int, Process]) -> Listed:
    process = processes.get(proc)
    if process is None:
        # The line that announced it is lost; that it lives is no less true.
        return Listed(proc, -1, "run", None, (), "")
    return Listed(proc, process.pid, process.role, process.task, process.cmdline, "")


def _listed(item: Mapping[str, Any]) -> Listed:
    return Listed(
        proc=integer(item, "proc", -1),
        pid=integer(item, "pid"),
        role=text(item, "role", "run"),
        task=optional_text(item, "task"),
        cmdline=strings(item, "cmdline"),
        state=optional_text(item, "state") or "",
    )


def worktree_of(event: Event) -> Worktree:
    data = event.data
    return Worktree(
        when=text(data, "when"),
        t=event.t,
        task=text(data, "task"),
        path=text(data, "path"),
        exists=flag(data, "exists"),
        branch=optional_text(data, "branch"),
        head=optional_text(data, "head"),
        wip_step=optional_integer(data, "wip_step"),
        wips=strings(data, "wips"),
        dirty=strings(data, "dirty"),
        half_written=strings(data, "half_written"),
        dead_locks=tuple(text(lock, "path") for lock in data["locks"] or () if lock.get("alive") is False),
        id=event.id,
    )


def refs_of(event: Event) -> Refs:
    data = event.data
    refs = {name: str(sha) for name, sha in mapping(data, "refs").items()}
    return Refs(text(data, "when"), event.t, text(data, "where"), refs, strings(data, "stashes"), event.id)


def table_of(event: Event) -> Table:
    data = event.data
    tasks = {str(task): str(move) for task, move in mapping(data, "tasks").items()}
    written_t = integer(data, "written_t", event.t) if data["written_t"] is not None else event.t
    return Table(integer(data, "n"), written_t, tasks, event.id)


def canary_of(event: Event) -> Canary:
    window = round(number(event.data, "window_s") * 1e9)
    return Canary(event.t - window, event.t, round(number(event.data, "p99_us") * 1e3))
