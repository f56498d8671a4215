"""The rubric: the thresholds that a user may tune, and the rows that nobody can remove.

A rubric is a mapping as TOML gives it (`default_rubric.toml` holds every key with its default). What is
written wrong is refused as a whole, every mistake at once, with the place and, where one is close, the key
that was meant: a threshold that silently kept its default would be a wrong verdict later. Reading the file
is the caller's business.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class RubricError(ValueError):
    """A rubric that says something it can't. `errors` are sentences, each with source and key path."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, populate_by_name=True)


class TimeToQuiet(_Part):
    """Limits in longest tool calls."""

    pass_longest_calls: Annotated[float, Field(ge=0)] = 1.0
    investigate_longest_calls: Annotated[float, Field(ge=0)] = 2.0

    @model_validator(mode="after")
    def _ordered(self) -> "TimeToQuiet":
        if self.investigate_longest_calls < self.pass_longest_calls:
            raise ValueError("investigate_longest_calls is below pass_longest_calls")
        return self


class DirtyWorktrees(_Part):
    """How many tool boundaries old the last checkpoint of a changed worktree may be, to be only worth a
    look.
    """

    investigate_boundaries: Annotated[int, Field(ge=0)] = 1


class Count(_Part):
    """The largest number that still passes."""

    pass_: Annotated[int, Field(ge=0, alias="pass")] = 0


class TokensAfterAbort(_Part):
    """Limits: tool calls' worth of tokens for each worker, and drill minutes of the fleet's burn."""

    pass_calls_per_worker: Annotated[float, Field(ge=0)] = 1.0
    investigate_burn_minutes: Annotated[float, Field(ge=0)] = 5.0


class Rows(_Part):
    """The six rows. All of them, always."""

    time_to_quiet: Annotated[TimeToQuiet, Field(alias="time-to-quiet")] = TimeToQuiet()
    dirty_worktrees: Annotated[DirtyWorktrees, Field(alias="dirty-worktrees")] = DirtyWorktrees()
    duplicate_workers: Annotated[Count, Field(alias="duplicate-workers")] = Count()
    direct_pushes: Annotated[Count, Field(alias="direct-pushes")] = Count()
    orphans: Annotated[Count, Field(alias="orphans")] = Count()
    tokens_after_abort: Annotated[TokensAfterAbort, Field(alias="tokens-after-abort")] = TokensAfterAbort()


class ToleranceLimit(_Part):
    """The share of the longest tool call up to which the machine's own lateness leaves a row measurable."""

    max_share_of_longest_call: Annotated[float, Field(ge=0, le=1)] = 0.25


class Rubric(_Part):
    """Every threshold, with the contract's defaults."""

    rows: Rows = Rows()
    tolerance: ToleranceLimit = ToleranceLimit()

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], source: str) -> "Rubric":
        """The rubric that `data` describes. `source` names the file in errors. Raises RubricError with all
        of them.
        """
        removed = [f"{source}: {path}: {_REMOVAL}" for path in _removals(data)]
        if removed:
            raise RubricError(removed)
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise RubricError([f"{source}: {_sentence(dict(one))}" for one in error.errors()]) from None


_REMOVAL = "rows can't be removed; thresholds can be tuned"
_SWITCHES = frozenset({"enabled", "enable", "disabled", "disable", "remove", "removed", "skip", "ignore", "off"})


def _removals(data: Mapping[str, Any]) -> Iterator[str]:
    """Key paths that try to take a row away: a list of rows, a row that is no table, a switch."""
    for switch in _SWITCHES & data.keys():
        yield switch
    rows = data.get("rows", {})
    if not isinstance(rows, Mapping):
        yield "rows"
        return
    for switch in sorted(_SWITCHES & rows.keys()):
        yield f"rows.{switch}"
    for name, row in rows.items():
        if isinstance(row, Mapping):
            yield from (f"rows.{name}.{switch}" for switch in sorted(_SWITCHES & row.keys()))
        elif name not in _SWITCHES and (row is None or isinstance(row, bool | str | list)):
            yield f"rows.{name}"


_KEYS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Rubric,
    ("rows",): Rows,
    ("tolerance",): ToleranceLimit,
    **{("rows", field.alias or name): type(field.default) for name, field in Rows.model_fields.items()},
}


def _sentence(error: dict[str, Any]) -> str:
    """One of pydantic's errors in our words."""
    path = tuple(str(part) for part in error["loc"])
    where = ".".join(path) or "the rubric"
    if error["type"] != "extra_forbidden":
        return f"{where}: {error['msg'].removeprefix('Value error, ')}, got {error['input']!r}"
    known = _names(_KEYS[path[:-1]])
    close = get_close_matches(path[-1], known, n=1)
    hint = f"did you mean {close[0]}?" if close else "known here: " + ", ".join(known)
    return f"{where}: unknown key; {hint}"


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
