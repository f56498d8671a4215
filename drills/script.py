"""The drill file: what is done to which fleet, and when.

A drill is TOML, written in the drill's own time: `speed` divides all of it, tool calls and grace windows included, so
that thresholds stay relative. Every error is reported at once, each with file, key, line and what is allowed; an
unknown key is an error with a suggestion, because a misspelt threshold would otherwise pass in silence.

This module only reads and checks. What the times become in real seconds is `Drill.real`; who acts on them is
`drills.run`.
"""

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from drills.durations import Duration, show
from drills.errors import UsageProblem
from drills.script_errors import explain
from fakes import behaviours

Verb = Literal["pause", "resume", "redirect", "abort"]
Condition = Literal["all-mid-task", "all-mid-call", "any-mid-call", "quiet"]
Scope = Literal["turn", "agent", "run"]
TaskId = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,31}$")]


class Part(BaseModel):
    """A table of the drill file: unknown keys are errors, values are never changed after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Calls(Part):
    """How long tool calls take, before start-up overhead, which counts within them."""

    distribution: Literal["fixed", "uniform", "lognormal", "list"] = "lognormal"
    median: Duration = 12.0
    sigma: float = Field(0.5, ge=0, le=3)
    low: Duration = 6.0
    high: Duration = 24.0
    value: Duration = 12.0
    values: tuple[Duration, ...] = ()
    longest: Duration = 27.0

    @model_validator(mode="after")
    def _values_for_list(self) -> "Calls":
        if self.distribution == "list" and not self.values:
            raise ValueError('distribution = "list" needs values = ["10s", …]')
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Model(Part):
    """The model requests that a worker makes before each tool call."""

    tokens_in: int = Field(400, ge=0)
    tokens_out: int = Field(120, ge=0)
    latency: Duration = 1.0
    stream: Duration = 2.0
    chunks: int = Field(4, ge=1, le=100)


class Fleet(Part):
    """The workers. One task for each; a task has more steps than the drill has time, unless it is to end early."""

    workers: int = Field(16, ge=1, le=1024)
    steps: int = Field(400, ge=1)
    child_share: float = Field(0.6, ge=0, le=1)
    readonly_share: float = Field(0.15, ge=0, le=1)
    push_every: int = Field(25, ge=0)
    calls: Calls = Field(default_factory=lambda: Calls.model_validate({}))
    model: Model = Field(default_factory=lambda: Model.model_validate({}))
    start_within: Duration = 600.0


class Change(Part):
    """A constraint of the redirect that survives in some tasks as a delta."""

    tasks: tuple[TaskId, ...]
    delta: str


class Add(Part):
    """A task that the redirect asks for anew: part of the gap that it opens."""

    task: TaskId
    title: str
    files: tuple[str, ...] = ()


class Instruction(Part):
    """What the operator says at a redirect, and what it should come to.

    The subject is told paths, not task ids: it has to classify for itself. `expect` overrides what follows from
    `changes` and `drops` (all others are expected to be kept).
    """

    text: str
    changes: tuple[Change, ...] = ()
    drops: tuple[TaskId, ...] = ()
    adds: tuple[Add, ...] = ()
    expect: Mapping[TaskId, Literal["keep", "modify", "drop"]] = {}


class Step(Part):
    """One control: at a time of the drill clock, or when a condition comes true."""

    do: Verb
    at: Duration | None = None
    when: Condition | None = None
    after: Duration = 0.0
    within: Duration = 120.0
    scope: Scope = "run"
    answer_within: Duration = 180.0
    hold: Duration | None = None
    """Of a pause: how long until the drill resumes by itself, whenever the pause came."""
    instruction: Instruction | None = None

    @model_validator(mode="after")
    def _one_start(self) -> "Step":
        if (self.at is None) == (self.when is None):
            raise ValueError('give either at = "5m" or when = "all-mid-call" (with within = "60s")')
        if (self.do == "redirect") != (self.instruction is not None):
            raise ValueError("a redirect, and only a redirect, has an [controls.instruction]")
        if self.hold is not None and self.do != "pause":
            raise ValueError("only a pause has a hold")
        return self

    @property
    def earliest(self) -> float:
        """Drill seconds before which it is not issued."""
        return self.after if self.at is None else self.at

    @property
    def latest(self) -> float:
        """Drill seconds at which it has been issued, or given up, and a hold of its own is over."""
        return self.earliest + (self.within if self.when else 0.0) + (self.hold or 0.0)


class Fault(Part):
    """Something that the drill breaks on purpose: kill -9, and a restart where `restart_after` is given."""

    kill: Literal["coordinator", "provider", "canary"]
    at: Duration
    restart_after: Duration | None = None


class Misbehaviour(Part):
    """A scripted misbehaviour of the simulated worker of one task, or of all with `task = "*"`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    task: Annotated[str, Field(pattern=r"^(\*|[A-Za-z][A-Za-z0-9-]{0,31})$")] = "*"
    name: str

    @model_validator(mode="after")
    def _known(self) -> "Misbehaviour":
        behaviours.make({key: value for key, value in self.model_dump().items() if key != "task"})
        return self


class Abort(Part):
    """The ladder: grace window, then TERM, then KILL; and when the orphans are counted."""

    grace: Duration = 40.0
    kill_after: Duration = 10.0
    sweep_after: Duration = 60.0
    hold_after: Duration = 30.0


class Drill(Part):
    """A whole drill file. Durations are drill seconds."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    title: str = ""
    speed: float = Field(40.0, gt=0, le=1000)
    seed: int = 1
    longest_call: Duration = 30.0
    fleet: Fleet = Field(default_factory=lambda: Fleet.model_validate({}))
    abort: Abort = Field(default_factory=Abort)
    controls: tuple[Step, ...] = Field(min_length=1)
    faults: tuple[Fault, ...] = ()
    misbehaviours: tuple[Misbehaviour, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "Drill":
        problems = [*self._windows(), *self._order(), *self._names()]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _windows(self) -> list[str]:
        """The windows that the contract relates to each other."""
        found = []
        if self.fleet.calls.longest > self.longest_call:
            found.append(
                f"fleet.calls.longest is {show(self.fleet.calls.longest)}, above longest_call"
                f" ({show(self.longest_call)}): the longest legitimate call must be declared"
            )
        if self.abort.grace < self.longest_call:
            found.append(
                f"abort.grace is {show(self.abort.grace)}; it must not be shorter than longest_call"
                f" ({show(self.longest_call)}), otherwise an honest call is cut"
            )
        ladder = self.abort.grace + self.abort.kill_after
        if self.abort.sweep_after <= ladder:
            found.append(
                f"abort.sweep_after is {show(self.abort.sweep_after)}; it must come after the end of the"
                f" ladder (grace + kill_after = {show(ladder)})"
            )
        return found

    def _order(self) -> list[str]:
        """Controls in the order of their times, holds long enough to be judged."""
        found = []
        pause: Step | None = None
        for before, step in zip((None, *self.controls[:-1]), self.controls, strict=True):
            if before is not None and step.earliest < before.earliest + (before.hold or 0):
                late = show(before.earliest + (before.hold or 0))
                what = f"the hold of {before.do}, which ends" if before.hold else before.do
                found.append(f"{step.do} at {show(step.earliest)} stands after {what} at {late}")
            if step.do == "resume" and pause is None:
                found.append(f"resume at {show(step.earliest)} has no pause before it")
            if step.do == "resume" and pause is not None:
                found += self._too_short(step.earliest - pause.earliest) if pause.at is not None else []
            if step.hold is not None:
                found += self._too_short(step.hold)
            if step.do != "redirect":
                pause = step if step.do == "pause" and step.hold is None else None
        return found

    def _too_short(self, hold: float) -> list[str]:
        least = 2.5 * self.longest_call
        if hold >= least:
            return []
        return [
            f"the hold of {show(hold)} is too short: it takes 2.5 longest calls ({show(least)}) to tell late from never"
        ]

    def _names(self) -> list[str]:
        known = set(self.task_ids)
        found = []
        for step in self.controls:
            said = step.instruction
            if said is None:
                continue
            new = [add.task for add in said.adds]
            found += [f"redirect adds {name}, which the plan has already" for name in new if name in known]
            texts = [said.text, *(change.delta for change in said.changes)]
            if any("[[" in text for text in texts):
                found.append("instruction texts must not contain [[: marks are put in by the drill")
        return found

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Ids of the planned tasks: t01, t02 …"""
        width = max(2, len(str(self.fleet.workers)))
        return tuple(f"t{number:0{width}d}" for number in range(1, self.fleet.workers + 1))

    @property
    def end(self) -> float:
        """Drill seconds at which the drill is over, counted from the fleet being at work."""
        times = []
        for step in self.controls:
            latest = step.latest
            if step.do == "abort":
                latest += self.abort.sweep_after
            times.append(latest + self.abort.hold_after)
        return max(times)

    def real(self, seconds: float) -> float:
        """Real seconds of a drill duration."""
        return seconds / self.speed

    def with_options(self, workers: int | None = None, speed: float | None = None, seed: int | None = None) -> "Drill":
        """The drill with options of the command line. Raises UsageProblem as `load` does."""
        options: dict[str, Any] = {
            "speed": speed,
            "seed": seed,
            "fleet": {"workers": workers} if workers else None,
        }
        return self.changed({key: value for key, value in options.items() if value is not None}, "the options")

    def changed(self, patch: Mapping[str, Any], source: str) -> "Drill":
        """The drill with tables merged in and other values replaced, validated like a file named `source`."""
        merged = _merged(_written(self.model_dump(mode="python", exclude_unset=True)), patch)
        try:
            return Drill.model_validate(merged)
        except ValidationError as error:
            raise UsageProblem(explain(error, Drill, source, "")) from None

    def to_toml(self) -> str:
        """The drill as a file, without what is left at its default."""
        return tomli_w.dumps(_written(self.model_dump(mode="json", exclude_unset=True)))


_DURATIONS = frozenset(
    name
    for part in (Calls, Model, Fleet, Step, Fault, Abort, Drill)
    for name, field in part.model_fields.items()
    if "BeforeValidator" in repr(field.metadata) or "BeforeValidator" in repr(field.annotation)
)


def _written(value: Any, key: str = "") -> Any:
    """Durations as they are written, so that a changed drill goes through the same validation as a file."""
    if isinstance(value, Mapping):
        return {name: _written(inner, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner, key) for inner in value]
    if key in _DURATIONS and isinstance(value, int | float):
        return f"{value:.9f}".rstrip("0").rstrip(".") + "s"
    return value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def shipped() -> dict[str, Path]:
    """The drills that come with the package: name to file."""
    folder = Path(str(resources.files("drills") / "library"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find(name_or_path: str) -> Path:
    """The file of a shipped drill or a path. Raises UsageProblem with what there is."""
    if name_or_path in (known := shipped()):
        return known[name_or_path]
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.exists():
        return path
    close = difflib.get_close_matches(name_or_path, known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UsageProblem(f"no drill named {name_or_path!r}{hint} Shipped: {', '.join(known)}. Or give a .toml file.")


def load(path: Path) -> tuple[Drill, str]:
    """Read and check a drill file; returns the drill and the file's text. Raises UsageProblem with every error."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read: {error}") from None
    return parse(text, str(path)), text


def parse(text: str, source: str = "drill") -> Drill:
    """Check a drill given as TOML text. Raises UsageProblem with every error, each naming `source`, key and line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{source}: not valid TOML: {error}") from None
    try:
        return Drill.model_validate(data)
    except ValidationError as error:
        raise UsageProblem(explain(error, Drill, source, text)) from None
