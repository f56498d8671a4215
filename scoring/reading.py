"""Taking a value out of an event: the right type, or a TypeError that says which key was wrong.

Events come from many programs, and some of what they carry is a subject's own words: nothing is trusted to have the
type that the vocabulary suggests. Numbers that no drill can mean (beyond 10^15 s, not a number) are refused too, since
they would overflow later, far from the line that carries them.
"""

import math
from collections.abc import Mapping
from typing import Any

_HUGE = 10**24


def text(data: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A string; `default` when the key is missing, TypeError when it is something else or there is no default."""
    value = data.get(key, default)
    if type(value) is not str:
        raise TypeError(f"{key} is no string")
    return value


def optional_text(data: Mapping[str, Any], key: str) -> str | None:
    """A string or None."""
    return None if data.get(key) is None else text(data, key)


def integer(data: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """An integer of a size that can be meant; `default` when the key is missing."""
    value = data.get(key, default)
    if type(value) is not int or not -_HUGE < value < _HUGE:
        raise TypeError(f"{key} is no integer")
    return value


def optional_integer(data: Mapping[str, Any], key: str) -> int | None:
    """An integer or None."""
    return None if data.get(key) is None else integer(data, key)


def number(data: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """A finite number, not negative; `default` when the key is missing."""
    value = data.get(key, default)
    if type(value) not in (int, float) or not 0 <= value < 1e15 or not math.isfinite(value):
        raise TypeError(f"{key} is no number")
    return float(value)


def flag(data: Mapping[str, Any], key: str) -> bool:
    """True or false; false when the key is missing."""
    value = data.get(key, False)
    if type(value) is not bool:
        raise TypeError(f"{key} is neither true nor false")
    return value


def strings(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A tuple of strings; a lone string is one, a missing key or null none."""
    value = data.get(key)
    if value is None:
        return ()
    if type(value) is str:
        return (value,)
    if type(value) not in (list, tuple) or any(type(item) is not str for item in value):
        raise TypeError(f"{key} is no list of strings")
    return tuple(value)


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping; empty when the key is missing or null."""
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{key} is no mapping")
    return value
