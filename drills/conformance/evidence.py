"""What a conformance run saw of an adapter: records, so that the checks can be pure functions over them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drills.adapters.registry import Shape

WRONG_ANSWER = "WrongAnswer: "


@dataclass(frozen=True)
class Called:
    """One call of an adapter's method. `kind` is the id of the check that it was made for; times in real seconds.

    `error` is what it raised, or how its answer is malformed. `untrue` says how the state that it claims contradicts
    what the world saw, `changed` what the call did although it had to do nothing.
    """

    kind: str
    when: str
    method: str
    bound_s: float
    error: str | None = None
    timed_out: bool = False
    state: str | None = None
    delivered: bool = True
    blocked_s: float = 0.0
    untrue: str | None = None
    changed: tuple[str, ...] = ()

    @property
    def wrong(self) -> str | None:
        """What is wrong with it apart from its duration, in a sentence; None when nothing is."""
        if self.error is not None and self.error.startswith(WRONG_ANSWER):
            return f"{self.when}: {self.error.removeprefix(WRONG_ANSWER)}"
        if self.error is not None:
            return f"{self.when}: {self.method}() raised {self.error}"
        return f"{self.when}: {self.method}() {'; '.join(self.changed)}" if self.changed else None


@dataclass(frozen=True)
class Evidence:
    """All that was seen. `idle` says why a fleet was not at work after a start that returned, `left` what stayed."""

    shape: Shape
    calls: tuple[Called, ...] = ()
    manifest: tuple[Mapping[str, Any], ...] = ()
    not_json: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    printed: str = ""

    def of(self, kind: str) -> tuple[Called, ...]:
        """Calls that were made for one check."""
        return tuple(call for call in self.calls if call.kind == kind)


@dataclass(frozen=True)
class Finding:
    """A check's outcome in a sentence. `ok` is None when it could not be tried."""

    id: str
    ok: bool | None
    sentence: str
