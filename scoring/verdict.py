"""Verdicts, and how they combine: the worst one wins.

`pass < investigate < fail < broken`. *Broken* means that the harness could not do its own job, which says
nothing about the subject, and which must never look like a pass.
"""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What a row, a finding or a whole drill says."""

    PASS = "pass"
    INVESTIGATE = "investigate"
    FAIL = "fail"
    BROKEN = "broken"

    @property
    def rank(self) -> int:
        """0 for pass up to 3 for broken; used to compare."""
        return _RANKS[self]

    @property
    def exit_status(self) -> int:
        """Exit status of the command line: 0 pass, 1 fail, 3 investigate, 4 broken."""
        return _EXITS[self]


_RANKS = {Verdict.PASS: 0, Verdict.INVESTIGATE: 1, Verdict.FAIL: 2, Verdict.BROKEN: 3}
_EXITS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INVESTIGATE: 3, Verdict.BROKEN: 4}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; pass when there are none."""
    return max(verdicts, key=lambda v: v.rank, default=Verdict.PASS)
