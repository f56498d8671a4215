"""The subject file: a coordinator in any language, described from outside, in TOML.

This module only reads and checks; docs/subject-file.md has every key. All errors are told at once, each with file,
line, key and what is allowed. What is left out does not exist: a control without a table is no control.
Carrying out what is described is `drills.adapters.toml_subject`.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from drills.adapters import templates
from drills.adapters.base import CONTROLS, Scope
from drills.adapters.subject_parts import Abort, Control, Manifest, Query, Start, Table, Workers
from drills.errors import UsageProblem
from drills.script import Part
from drills.script_errors import explain

_TEMPLATED = frozenset({"command", "cwd", "env", "file", "text", "json", "url", "headers"})
_BYTES_MAX = 1 << 20


class SubjectFile(Part):
    """A whole subject file. Durations are drill seconds."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")]
    scope: Scope = "run"
    pause_means: Literal["quiesce", "hold"] = "quiesce"
    success_exit: tuple[int, ...] = (0,)
    shims: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_][\w.-]{0,63}$")], ...] = ()
    """Names of agent CLIs, besides those known, that are simulated workers in the subject's PATH."""
    start: Start = Field(default=None, validate_default=True)
    pause: Control | None = None
    resume: Control | None = None
    redirect: Control | None = None
    abort: Abort | None = None
    close: Control | None = None
    status: Query | None = None
    usage: Query | None = None
    manifest: Manifest | None = None
    killed: Workers | None = None
    stalled: Workers | None = None
    table: Table | None = None

    @field_validator("start", mode="before")
    @classmethod
    def _there(cls, value: object) -> object:
        if value is None:
            raise ValueError('there is no [start]; it needs at least command = ["program", "argument", …]')
        return value

    @property
    def controls(self) -> dict[str, Scope]:
        """The controls that there are, each with its scope."""
        there = {verb: getattr(self, verb) for verb in CONTROLS}
        return {verb: control.scope or self.scope for verb, control in there.items() if control is not None}


def load(path: Path) -> SubjectFile:
    """Read and check a subject file. Raises UsageProblem with every error."""
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
        if len(data) > _BYTES_MAX:
            raise UsageProblem(f"{path}: more than {_BYTES_MAX:,} bytes is no subject file")
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read: {error}") from None
    return parse(text, str(path))


def parse(text: str, source: str = "subject.toml") -> SubjectFile:
    """Check a subject file given as text; its name is the file's unless it says another. Raises UsageProblem."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{source}: not valid TOML: {error}") from None
    data.setdefault("name", re.sub(r"[^\w.-]", "-", Path(source).stem).lstrip("_.-") or "subject")
    problems: list[str] = []
    try:
        subject = SubjectFile.model_validate(data)
    except ValidationError as error:
        problems.append(_explained(error, source, text))
    if strangers := list(_strangers(data)):
        problems.append(_explained(ValidationError.from_exception_data("subject", strangers), source, text))
    if problems:
        raise UsageProblem("\n".join(problems))
    return subject


def _explained(error: ValidationError, source: str, text: str) -> str:
    # `json` is a method of every pydantic model, so that the fields of this name carry an underscore.
    return re.sub(r"\bjson_\b", "json", explain(error, SubjectFile, source, text))


def _strangers(data: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """An error for each unknown placeholder. Looked for in the plain data, so that they are told with all others."""
    for section, table in data.items():
        allowed = {**templates.EVERYWHERE, **(templates.REDIRECT_ONLY if section == "redirect" else {})}
        for loc, value in _templated(table, (section,)):
            for name in templates.unknown(value, allowed):
                close = difflib.get_close_matches(name, allowed, 1)
                hint = f"no such placeholder; did you mean {{{close[0]}}}?" if close else "no such placeholder"
                hint = "only a redirect has one" if name in templates.REDIRECT_ONLY else hint
                why = f"{{{name}}}: {hint}; allowed here: {', '.join(allowed)} ({{{{{name}}}}} is the text itself)"
                # The context, not the template, because pydantic formats the template.
                yield InitErrorDetails(
                    type=PydanticCustomError("placeholder", "{why}", {"why": why}), loc=loc, input=value
                )


def _templated(table: object, loc: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Key and value of everything in a table that may hold placeholders."""
    if not isinstance(table, Mapping):
        return
    for key, value in table.items():
        if key in _TEMPLATED:
            yield (*loc, key), value
        else:
            yield from _templated(value, (*loc, key))
