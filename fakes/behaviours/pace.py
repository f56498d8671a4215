"""Workers out of step: calls that take too long, a heart that stops, a model that is asked after the stop."""

import time

from fakes.worker.hooks import Hooks
from fakes.worker.loop import Leave, Worker

STALL_S_MAX = 600.0
SPEND_S_MAX = 120.0


class Slow(Hooks):
    """Calls take `times` the longest legitimate call from `at_step` on."""

    times: float
    at_step: int

    def duration_s(self, worker: Worker, step: int, planned_s: float) -> float:
        if step < self.at_step:
            return planned_s
        self.sets_in(worker)
        return self.times * worker.plan.longest_call_s


class StopsHeartbeat(Hooks):
    """Stalls before `at_step`. Bounded, so that a forgotten worker does not sleep for ever."""

    at_step: int

    def before_step(self, worker: Worker, step: int) -> None:
        if step < self.at_step:
            return
        self.sets_in(worker)
        time.sleep(STALL_S_MAX)
        raise Leave("error", 1, f"stalled for {STALL_S_MAX:g} s and nobody came")


class SpendsOn(Hooks):
    """Asks the model again and again instead of leaving, each time with `tokens_in`. Makes no tool calls.

    `on` says which order it does that upon: `stop`, `drop`, or `any` of them.
    """

    tokens_in: int
    on: str

    def check(self) -> None:
        if self.on not in ("stop", "drop", "any"):
            raise ValueError(f"spends-on: on must be stop, drop or any, not {self.on!r}")

    def leaving(self, worker: Worker, reason: str) -> None:
        if self.on not in ("any", reason):
            return
        self.sets_in(worker)
        metadata = {**worker.plan.model, "tokens_in": int(self.tokens_in)}
        deadline = time.monotonic() + SPEND_S_MAX
        while time.monotonic() < deadline:
            if not worker.ask(metadata):
                time.sleep(0.05)  # a provider that is down must not turn this into a busy loop
