"""One benchmark's result: a ratio, and the most that it may be."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Ours divided by the yardstick's, both measured in one run. Met when `value` is at most `goal`."""

    name: str
    value: float
    goal: float
    unit: str  # what was divided by what, with the two figures

    @property
    def met(self) -> bool:
        """Whether it is good enough."""
        return self.value <= self.goal


def show(ratios: Iterable[Ratio]) -> str:
    """A line for each: name, ratio, goal, whether it was met, what was measured."""
    return "\n".join(
        f"{ratio.name:<28} {ratio.value:8.3f}  goal {ratio.goal:.3f}  "
        f"{'met' if ratio.met else 'MISSED'}  ({ratio.unit})"
        for ratio in ratios
    )
