"""What a finding's check is: a clause's id and name, the function that reads a case, and what comes of it.

A check returns the offences that it saw, or says why it could not look: the drill never exercised the
clause, or what it rests on was not observed. Offences of one clause make one finding, as bad as its worst
offence, because a fleet of sixteen that breaks a clause sixteen times has broken one clause.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scoring.case import Case
from scoring.scorecard import Finding
from scoring.sentences import joined
from scoring.verdict import Verdict, worst

CLEAN, TRIPPED, BROKEN = "clean", "tripped", "broken"
NOT_EXERCISED = "not exercised"
NOT_OBSERVED = "not observed"
EVIDENCE_MAX = 40


@dataclass(frozen=True)
class Offence:
    """One breach: a sentence, the events that show it, and how bad it is."""

    why: str
    evidence: Sequence[str] = ()
    verdict: Verdict = Verdict.FAIL


Outcome = list[Offence] | str
"""Offences, or NOT_EXERCISED, or NOT_OBSERVED."""


@dataclass(frozen=True)
class Check:
    """One clause of the contract, as code. `summary` says it in words; `separate` gives each offence a
    finding.
    """

    id: str
    kind: str
    family: str
    summary: str
    function: Callable[[Case], Outcome]
    separate: bool = False

    def run(self, case: Case) -> tuple[str, list[Finding]]:
        """What became of it (`clean`, `tripped`, `not exercised`, `not observed`), and its findings."""
        outcome = self.function(case)
        if isinstance(outcome, str):
            return outcome, []
        if not outcome:
            return CLEAN, []
        groups = [[offence] for offence in outcome] if self.separate else [outcome]
        return TRIPPED, [self._finding(offences) for offences in groups]

    def _finding(self, offences: list[Offence]) -> Finding:
        # The worst first, so that a cut list shows what decides.
        ranked = sorted(offences, key=lambda offence: -offence.verdict.rank)
        evidence = dict.fromkeys(id for offence in ranked for id in offence.evidence)
        return Finding(
            id=self.id,
            kind=self.kind,
            verdict=worst(offence.verdict for offence in ranked),
            value=len(ranked),
            unit="offences",
            limits={"pass": 0, "investigate": None},
            why=joined(offence.why for offence in ranked),
            evidence=tuple(evidence)[:EVIDENCE_MAX],
        )


def finding(id: str, kind: str, family: str, *, separate: bool = False) -> Callable[[Callable[[Case], Outcome]], Check]:
    """Make a check of a function whose docstring states the clause."""

    def made(function: Callable[[Case], Outcome]) -> Check:
        summary = " ".join((function.__doc__ or "").split())
        return Check(id, kind, family, summary, function, separate)

    return made
