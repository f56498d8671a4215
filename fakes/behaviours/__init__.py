"""Misbehaviours: what a worker can be scripted to do wrong, as data in the plan and as a small class each.

A drill names them in a task's plan, `{"name": "slow", "times": 3, "at_step": 2}`, and the worker's loop meets
them only at its hook points (`fakes.worker.hooks`). Each one exists because some row or finding must be
tripped by it: a check that nothing can trip proves nothing. `trips` names those that it is expected to trip
under a coordinator which itself does everything right; none, where such a coordinator is expected to cope.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fakes.behaviours import checkpoints, helpers, listening, pace, resuming
from fakes.worker.hooks import Hooks


@dataclass(frozen=True)
class Behaviour:
    """One misbehaviour: name in plans, a sentence, parameters with defaults, ids of what it trips."""

    name: str
    summary: str
    params: Mapping[str, object]
    trips: tuple[str, ...]
    hooks: type[Hooks]


_ALL = (
    Behaviour(
        "never-looks",
        "never reads its control files, so that only signals reach it",
        {},
        ("time-to-quiet", "D4", "D5", "A1"),
        listening.NeverLooks,
    ),
    Behaviour(
        "ignores-sigterm",
        "logs SIGTERM and SIGINT and goes on; its tool children ignore both",
        {},
        (),
        listening.IgnoresSigterm,
    ),
    Behaviour(
        "detaches",
        "starts a quiet server that leaves the worker's session, parent or environment behind",
        {"how": "all", "at_step": 1},
        ("orphans",),
        helpers.Detaches,
    ),
    Behaviour(
        "ignores-eof",
        "starts an stdio tool server that holds a credential and outlives the worker",
        {},
        ("orphans", "A7"),
        helpers.IgnoresEof,
    ),
    Behaviour(
        "respawned",
        "has a supervisor of its own, outside the worker, that starts it again whenever it ends",
        {"delay_s": 0.05},
        ("orphans", "duplicate-workers", "A14"),
        helpers.Respawned,
    ),
    Behaviour("no-wip", "never commits", {}, ("dirty-worktrees", "P2"), checkpoints.NoWip),
    Behaviour(
        "dirty-at-boundary",
        "changes a file again after the commit, outside any call",
        {"at_step": 1},
        ("dirty-worktrees",),
        checkpoints.DirtyAtBoundary,
    ),
    Behaviour("stashes", "stashes its changes instead of committing them", {}, ("P2", "A6"), checkpoints.Stashes),
    Behaviour(
        "pushes-to-main",
        "pushes its branch straight to main",
        {"at_step": 1},
        ("direct-pushes",),
        checkpoints.PushesToMain,
    ),
    Behaviour(
        "spends-on",
        "told to leave, it asks the model without pause until it is killed",
        {"tokens_in": 50_000, "on": "any"},
        ("tokens-after-abort",),
        pace.SpendsOn,
    ),
    Behaviour(
        "stops-heartbeat",
        "stalls: no call, no event, no status, no look; SIGTERM still ends it",
        {"at_step": 1},
        ("A11",),
        pace.StopsHeartbeat,
    ),
    Behaviour(
        "slow",
        "from a step on, every call takes a multiple of the longest legitimate call",
        {"times": 3.0, "at_step": 1},
        ("time-to-quiet",),
        pace.Slow,
    ),
    Behaviour("repeats-on-resume", "does the last step again after a hold", {}, ("P3",), resuming.Repeats),
    Behaviour("skips-on-resume", "leaves a step out after a hold", {}, ("P3",), resuming.Skips),
)

BEHAVIOURS: dict[str, Behaviour] = {behaviour.name: behaviour for behaviour in _ALL}


def make(scripted: Mapping[str, object]) -> Hooks:
    """The hooks of one entry of a plan's `misbehaviours`. ValueError for an unknown name or parameter."""
    name = str(scripted.get("name"))
    if name not in BEHAVIOURS:
        raise ValueError(f"no misbehaviour is called {name!r}; there are {', '.join(BEHAVIOURS)}")
    behaviour = BEHAVIOURS[name]
    given = {key: value for key, value in scripted.items() if key != "name"}
    for key, value in given.items():
        default = behaviour.params.get(key)
        if default is None:
            raise ValueError(f"{name} has no parameter {key!r}; it has {', '.join(behaviour.params) or 'none'}")
        wanted = (str,) if isinstance(default, str) else (int, float)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ValueError(f"{name}: {key} must be like {default!r}, not {value!r}")
    hooks = behaviour.hooks()
    hooks.name = name
    for key, value in {**behaviour.params, **given}.items():
        setattr(hooks, key, value)
    hooks.check()
    return hooks
