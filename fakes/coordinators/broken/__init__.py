"""Broken coordinators: each is the reference coordinator with one decision made wrongly.

They are the negative twins of the checks: a check that none of them can trip proves nothing. `BROKEN` can
be read without starting or importing any of them; `python -I -m fakes.coordinators.broken NAME serve
--config FILE` runs one.

`trips` are the rows and findings that a twin is built to trip. `also` are those that cannot be kept clean
when it does, because the same act breaks them too (workers that nobody stops also spend). Anything else
that a drill finds against a twin is an accusation without ground.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """One twin. `misbehaviours` are to be put into the plan: {"task": "*" or an id, "name": …, parameters}.

    `make` names the class as `module:Class`, relative to this package; empty for the reference coordinator
    itself, where the workers alone misbehave.
    """

    name: str
    summary: str
    trips: tuple[str, ...]
    misbehaviours: tuple[Mapping[str, object], ...] = ()
    make: str = ""
    also: tuple[str, ...] = ()


# A worker that only SIGKILL ends. It never looks, so it also works through holds and past a stop.
_DEAF = ({"task": "t02", "name": "never-looks"}, {"task": "t02", "name": "ignores-sigterm"})
_DEAF_ALSO = ("time-to-quiet", "tokens-after-abort", "A1", "A6", "D4", "D5", "V1")

_ALL = (
    # pause and resume
    Broken(
        "pause-is-a-flag-nobody-reads",
        "says paused and keeps a flag to itself",
        ("time-to-quiet",),
        make="pause:FlagNobodyReads",
        also=("dirty-worktrees", "P2", "V1"),
    ),
    Broken(
        "never-commits",
        "has workers that make no checkpoints",
        ("dirty-worktrees", "P2"),
        ({"task": "*", "name": "no-wip"},),
        also=("P3",),
    ),
    Broken("pause-starts-task", "starts one more task during the hold", ("P1",), make="pause:StartsTask"),
    Broken(
        "resume-repeats",
        "has workers that repeat their last step after a hold",
        ("P3",),
        ({"task": "*", "name": "repeats-on-resume"},),
    ),
    Broken("resume-half", "releases only every other worker", ("P4",), make="pause:ResumesHalf"),
    Broken(
        "pause-by-sigstop",
        "freezes workers in mid-call instead of waiting for their boundary",
        ("time-to-quiet", "P5"),
        make="pause:BySigstop",
        also=("dirty-worktrees", "P2", "V1"),
    ),
    # redirect
    Broken(
        "replan-storm",
        "starts every task once more while its first worker lives",
        ("duplicate-workers", "D1", "D3", "D6"),
        make="redirect:ReplanStorm",
        also=("D4", "D5", "D7"),
    ),
    Broken(
        "redirect-without-table",
        "acts on a table that it shows nobody",
        ("D1",),
        make="redirect:NoTable",
        also=("D7",),
    ),
    Broken(
        "table-after-the-fact",
        "writes the table when the workers have moved",
        ("D1",),
        make="redirect:LateTable",
    ),
    Broken(
        "misclassifies",
        "drops a task that was to be kept",
        ("D2",),
        make="redirect:Misclassifies",
        also=("D3",),
    ),
    Broken(
        "prompts-everyone",
        "tells the delta to keep-workers too",
        ("D3",),
        make="redirect:PromptsEveryone",
        also=("duplicate-workers",),
    ),
    Broken(
        "whole-objective",
        "gives modify-workers the whole instruction",
        ("D4",),
        make="redirect:WholeObjective",
        also=("D8",),
    ),
    Broken("forgets-the-delta", "tells modify-workers nothing", ("D4",), make="redirect:ForgetsTheDelta"),
    Broken("drops-untagged", "lets dropped branches go without a tag", ("D5",), make="redirect:DropsUntagged"),
    Broken(
        "plans-first",
        "starts the new task before there is a table",
        ("D7",),
        make="redirect:PlansFirst",
        also=("D1",),
    ),
    # abort
    Broken(
        "ctrl-c-only",
        "sends SIGINT to its own process group and says aborted",
        ("orphans", "A2", "A9", "A15"),
        make="abort:CtrlCOnly",
        also=("tokens-after-abort", "A1", "A8", "A13", "V1"),
    ),
    Broken(
        "says-stopped",
        "answers the abort at once and carries it out behind the answer",
        ("A9", "V1"),
        make="abort:SaysStopped",
        also=("A8",),
    ),
    Broken(
        "spends-on",
        "has workers that ask the model on when told to leave",
        ("tokens-after-abort",),
        ({"task": "*", "name": "spends-on", "on": "stop"},),
        also=("A6",),
    ),
    Broken("keeps-dispatching", "starts one more attempt after STOP", ("A1",), make="abort:KeepsDispatching"),
    Broken("no-grace", "kills everybody at once", ("A2",), make="abort:NoGrace", also=("A6",)),
    Broken(
        "never-escalates",
        "leaves a worker alone that does not leave by itself",
        ("A2", "orphans"),
        _DEAF,
        make="abort:NeverEscalates",
        also=(*_DEAF_ALSO, "A13", "A15"),
    ),
    Broken(
        "kills-by-name",
        "ends by command line, and so hits a run whose id begins like its own",
        ("A3",),
        make="abort:KillsByName",
    ),
    Broken(
        "kills-silently",
        "writes down nobody whom it killed",
        ("A4",),
        _DEAF,
        make="abort:KillsSilently",
        also=_DEAF_ALSO,
    ),
    Broken(
        "cleans-up",
        "removes the worktrees of those whom it killed",
        ("A5",),
        _DEAF,
        make="abort:CleansUp",
        also=_DEAF_ALSO,
    ),
    Broken("no-sweep", "does not look what is left", ("A8",), make="abort:NoSweep"),
    Broken("asks-first", "wants the abort confirmed", ("A10",), make="abort:AsksFirst"),
    Broken(
        "blind-to-stalls",
        "does not notice a worker without a heartbeat",
        ("A11",),
        ({"task": "t02", "name": "stops-heartbeat", "at_step": 3},),
        make="abort:BlindToStalls",
        also=("time-to-quiet", "D4", "D5"),
    ),
    Broken("says-completed", "calls an aborted run completed", ("A15",), make="abort:SaysCompleted", also=("V1",)),
    # at any time
    Broken("pushes-to-main", "pushes a worker's branch to main", ("direct-pushes",), make="pushes:PushesToMain"),
)

BROKEN: dict[str, Broken] = {twin.name: twin for twin in _ALL}
