"""The values of the adapter interface as JSON, for an adapter in a process of its own.

Paths, tuples and the records of `drills.adapters.base` come out as what they were; other sequences as lists. What JSON
does not have becomes its repr, as in the history, and is never an exception: it is a claim, read by nobody but people.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from drills.adapters import base

_RECORDS: dict[str, type] = {
    record.__name__: record
    for record in (base.Ack, base.Capabilities, base.Claims, base.Redirect, base.Spawned, base.Table)
}
_TAG = "$"


def pack(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return {_TAG: "Path", "is": str(value)}
    if is_dataclass(value) and type(value).__name__ in _RECORDS:
        return {_TAG: type(value).__name__, "is": {f.name: pack(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Mapping):
        plain = {str(key): pack(inner) for key, inner in value.items()}
        return {_TAG: "dict", "is": plain} if _TAG in plain else plain
    if isinstance(value, tuple):
        return {_TAG: "tuple", "is": [pack(inner) for inner in value]}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        return [pack(inner) for inner in value]
    return repr(value)


def unpack(value: Any) -> Any:
    """What `pack` was given. Raises ValueError, KeyError or TypeError for what it never wrote."""
    if isinstance(value, list):
        return [unpack(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(_TAG)
    if tag is None:
        return {key: unpack(inner) for key, inner in value.items()}
    if tag == "Path":
        return Path(value["is"])
    if tag == "tuple":
        return tuple(unpack(inner) for inner in value["is"])
    inside = {key: unpack(inner) for key, inner in value["is"].items()}
    return inside if tag == "dict" else _RECORDS[tag](**inside)


def line(message: Mapping[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message).encode("ascii") + b"\n"
