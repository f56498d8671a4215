"""The tables of a subject file: what an action, an acknowledgement, a question and a record may say.

Each table checks itself as far as it can be checked alone. The whole file is `drills.adapters.subject_file`.
"""

import re
import shlex
import signal
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from drills.adapters.base import Scope
from drills.durations import Duration
from drills.script import Part


def _command(value: object) -> object:
    """Arguments; a string is split as a shell splits it, and no shell ever sees it."""
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"cannot be split into arguments: {error}") from None
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value) or not value[0]:
        raise ValueError('write a command as ["program", "argument", …] or as one string')
    return value


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _signal(value: object) -> str:
    known = [one.name.removeprefix("SIG") for one in signal.Signals]
    name = str(value).upper().removeprefix("SIG")
    if name not in known:
        raise ValueError(f"no signal named {value!r}; there are {', '.join(known)}")
    return name


def _several(value: object) -> object:
    return value if isinstance(value, list) else [value]


Command = Annotated[tuple[str, ...], BeforeValidator(_command)]
Regex = Annotated[str, AfterValidator(_regex)]
Signal = Annotated[str, BeforeValidator(_signal)]
Statuses = Annotated[tuple[int, ...], BeforeValidator(_several), Field(min_length=1)]
Dotted = Annotated[str, Field(pattern=r"^[^.\s]+(\.[^.\s]+)*$")]
"""Names with dots between them: where in a JSON value to look."""
State = Literal["accepted", "paused", "running", "redirected", "aborted"]


class Ack(Part):
    """What has to be seen for a yes; all that is given, if it is several things."""

    exit: Statuses | None = None
    stdout: Regex | None = None
    file: str | None = None
    status: Statuses | None = None
    json_: Dotted | None = Field(None, alias="json")
    equals: Any = None

    @model_validator(mode="after")
    def _whole(self) -> "Ack":
        given = self.model_fields_set - {"within"}
        if not given:
            raise ValueError("says nothing; give exit, stdout, file, status, or json with equals")
        if ("json_" in given) != ("equals" in given):
            raise ValueError('json = "dotted.path" and equals = … belong together')
        return self


class Ready(Ack):
    """What the start command shows when it is ready."""

    within: Duration = 120.0

    @model_validator(mode="after")
    def _of_a_process(self) -> "Ready":
        if self.status is not None or (self.json_ is not None and self.file is None):
            raise ValueError("a start command is ready by exit, stdout or file (with json and equals, if you like)")
        return self


class Start(Part):
    """How the coordinator is started; `cwd` and `env` hold for every command in the file."""

    command: Command | None = None
    cwd: str = "{repo}"
    env: Mapping[str, str] = {}
    ready: Ready | None = None

    @model_validator(mode="after")
    def _can_start(self) -> "Start":
        if self.command is None:
            raise ValueError('needs command = ["program", "argument", …]')
        return self


class Http(Part):
    """One request. POST for an action and GET for a question, unless `method` says something else."""

    url: Annotated[str, Field(pattern=r"^https?://|^\{")]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    json_: Any = Field(None, alias="json")
    headers: Mapping[str, str] = {}


S = TypeVar("S", bound=Part)


def _one_of(table: S, keys: tuple[str, ...], least: int = 1) -> S:
    given = [key for key in keys if getattr(table, key) is not None]
    if not least <= len(given) <= 1:
        what = "exactly one" if least else "at most one"
        raise ValueError(f"give {what} of {', '.join(keys)}; this has {' and '.join(given) or 'none'}")
    return table


class Control(Part):
    """One action and its acknowledgement."""

    command: Command | None = None
    signal: Signal | None = None
    file: str | None = None
    text: str | None = None
    json_: Any = Field(None, alias="json")
    touch: Literal[True] | None = None
    http: Http | None = None
    ack: Ack | None = None
    within: Duration = 120.0
    scope: Scope | None = None
    state: State = "accepted"

    @model_validator(mode="after")
    def _one_action(self) -> "Control":
        _one_of(self, ("command", "signal", "file", "http"))
        content = [key for key in ("text", "json_", "touch") if getattr(self, key) is not None]
        if self.file is not None and len(content) != 1:
            raise ValueError("a file needs exactly one of text = …, json = {…}, touch = true")
        if self.file is None and content:
            raise ValueError("text, json and touch belong to file = …; what a request sends is in http = { json = … }")
        return self

    @model_validator(mode="after")
    def _ack_fits(self) -> "Control":
        ack = self.ack
        if ack is None:
            return self
        if ack.exit is not None and self.command is None:
            raise ValueError("ack.exit needs a command: nothing else has an exit status")
        if ack.status is not None and self.http is None:
            raise ValueError("ack.status needs http: nothing else has an HTTP status")
        if ack.json_ is not None and ack.file is None and self.command is None and self.http is None:
            raise ValueError("ack.json looks into a command's output, an HTTP answer or ack.file; there is none here")
        return self


class Query(Part):
    """Where something can be read: a command's output, an HTTP answer or a file, at `json` in it or all of it."""

    command: Command | None = None
    file: str | None = None
    http: Http | None = None
    json_: Dotted | None = Field(None, alias="json")

    @model_validator(mode="after")
    def _one_source(self) -> "Query":
        return _one_of(self, ("command", "file", "http"))


class Sweep(Query):
    """As `Query`; without a source it is in the answer to the abort itself."""

    @model_validator(mode="after")
    def _one_source(self) -> "Sweep":
        return _one_of(self, ("command", "file", "http"), least=0)


class Abort(Control):
    """As every control, and where the coordinator's own list of what is left can be read."""

    sweep: Sweep | None = None

    @model_validator(mode="after")
    def _has_an_answer(self) -> "Abort":
        sweep = self.sweep
        if sweep and not (sweep.command or sweep.file or sweep.http or self.command or self.http):
            raise ValueError("sweep needs file, command or http: this abort has no answer that it could be in")
        return self


class ManifestFields(Part):
    """What the subject calls the fields of its manifest; dotted paths reach into a line."""

    run_id: Dotted = "run_id"
    task_id: Dotted = "task_id"
    attempt: Dotted = "attempt"
    pid: Dotted = "pid"
    host: Dotted = "host"
    branch: Dotted = "branch"
    worktree: Dotted = "worktree"
    started_at: Dotted = "started_at"


class WorkerFields(Part):
    """What the subject calls the fields of its records of killed and stalled workers."""

    run_id: Dotted = "run_id"
    pid: Dotted = "pid"
    task: Dotted = "task"
    branch: Dotted = "branch"


class Manifest(Part):
    """A file of JSON lines, one for each worker at its spawn."""

    file: str
    fields: ManifestFields = ManifestFields()


class Workers(Part):
    """A file of JSON lines, one for each worker that something happened to."""

    file: str
    fields: WorkerFields = WorkerFields()


class Table(Part):
    """One JSON file, or one for each redirect where the name has a `*`: {task: keep | modify | drop} at `json`."""

    file: str
    json_: Dotted | None = Field(None, alias="json")
