"""Whether what an adapter returned is what its interface says, told in a sentence for its author.

Checked as soon as a call returns, because a wrong type that travels on would show as a fault of the harness.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drills.adapters.base import Ack, Claims, Table


class WrongAnswer(Exception):
    """An adapter's method returned something else than it has to; the text says what."""


def ack_from(verb: str, value: object) -> Ack:
    """`value` if it is a well-formed `Ack`. Raises WrongAnswer."""
    if not isinstance(value, Ack):
        raise WrongAnswer(f"{verb}() returned {_show(value)}, not an Ack")
    wanted: dict[str, tuple[type, ...]] = {
        "state": (str,),
        "question": (str, type(None)),
        "sweep": (Mapping, type(None)),
        "changed": (bool, type(None)),
        "detail": (Mapping,),
    }
    _check_fields(f"{verb}() returned an Ack", value, wanted)
    return value


def claims_from(value: object) -> Claims:
    """`value` if it is a well-formed `Claims`. Raises WrongAnswer."""
    if not isinstance(value, Claims):
        raise WrongAnswer(f"claims() returned {_show(value)}, not Claims")
    wanted: dict[str, tuple[type, ...]] = {"usage_tokens": (int, type(None)), "state": (str, type(None))}
    _check_fields("claims() returned Claims", value, wanted)
    for name, kind in (("manifest", Mapping), ("killed", Mapping), ("stalled", Mapping), ("tables", Table)):
        entries = getattr(value, name)
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            raise WrongAnswer(f"claims() returned Claims whose {name} is {_show(entries)}, not a sequence")
        for entry in entries:
            if not isinstance(entry, kind):
                what = "a mapping" if kind is Mapping else "a Table"
                raise WrongAnswer(f"claims() returned Claims with {_show(entry)} among its {name}, which is not {what}")
    for table in value.tables:
        _check_fields("claims() returned a Table", table, {"n": (int,), "tasks": (Mapping,), "written_t": (int,)})
    return value


def _check_fields(what: str, record: Any, wanted: Mapping[str, tuple[type, ...]]) -> None:
    for name, kinds in wanted.items():
        value = getattr(record, name)
        if not isinstance(value, kinds):
            allowed = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise WrongAnswer(f"{what} whose {name} is {_show(value)}, not {allowed}")


def _show(value: object) -> str:
    """A value for a sentence: its type, and as much of it as fits."""
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception as error:  # an author's own __repr__
        text = f"its repr raises {type(error).__name__}"
    return f"{type(value).__name__} ({text[:80]})"
