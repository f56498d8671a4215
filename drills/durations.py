"""Human durations: `45s`, `5m`, `1h30m`, `250ms` to seconds, and back.

A bare number is refused on purpose: in a drill, "30" could be drill seconds, real seconds or minutes.
"""

import re
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)


def parse(text: object) -> float:
    """Seconds of a duration such as `1h30m`. Raises ValueError saying what is allowed."""
    if not isinstance(text, str) or not _WHOLE.fullmatch(text.replace(" ", "")):
        raise ValueError(f'{text!r} is no duration; write it with a unit, like "45s", "5m", "1h30m" or "250ms"')
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text.replace(" ", "")))


def show(seconds: float) -> str:
    """A short form for people: `45 s`, `5 min`, `1 h 30 min`, `250 ms`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


Duration = Annotated[float, BeforeValidator(parse)]
"""A pydantic field that is written as a human duration and read as seconds."""
