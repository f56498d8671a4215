"""Waiting in tests: for the event itself, with a bound that says what was waited for."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T | None], within_s: float = 20.0, what: str = "the condition") -> T:
    """Call `look` until it returns something true, and return that; AssertionError with `what` after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:g} s for {what}; last seen: {seen!r}")
        time.sleep(0.005)
