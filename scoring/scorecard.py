"""The scorecard: what a drill found, as a value and as the JSON that other programs read.

The JSON schema is version 1 and stable: keys are only ever added. Writing it is deterministic, so that
scoring a stored bundle again gives the same bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.verdict import Verdict, worst

SCHEMA = 1


@dataclass(frozen=True)
class Row:
    """One row of the rubric. `value` and `limits` are in `unit`; times are in the drill's own seconds."""

    id: str
    verdict: Verdict
    value: float | int | None
    unit: str
    limits: Mapping[str, float | int | None]
    """`{"pass": …, "investigate": …}`: the largest values that still pass, and that are still worth a look.
    """
    why: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One finding of the contract. `id` is the clause (P1, A9 …), `kind` its name in words."""

    id: str
    kind: str
    verdict: Verdict
    value: float | int | None
    unit: str
    limits: Mapping[str, float | int | None]
    why: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scorecard:
    """Everything that scoring says about one run."""

    run_id: str
    drill: str
    subject: str
    speed: float
    complete: bool
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    checked: Mapping[str, str]
    """Finding id to `clean`, `tripped`, `not exercised`, `not observed` or `broken`."""
    work_lost_s: Mapping[str, Mapping[str, float]]
    """Control (`pause@1`, `redirect@3` …) to task to drill seconds of work that no checkpoint holds."""
    tolerance: Mapping[str, Any]
    not_observed: tuple[str, ...]
    trouble: tuple[str, ...] = field(default=())
    """Why the harness could not do its job; anything here makes the verdict broken."""

    @property
    def verdict(self) -> Verdict:
        """The worst of rows and findings; at best investigate when the history is cut short."""
        parts = [row.verdict for row in self.rows] + [finding.verdict for finding in self.findings]
        if not self.complete:
            parts.append(Verdict.INVESTIGATE)
        if self.trouble:
            parts.append(Verdict.BROKEN)
        return worst(parts)

    def to_json(self) -> dict[str, Any]:
        """The stable JSON form, see ARCHITECTURE in `docs/`."""
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "drill": self.drill,
            "subject": self.subject,
            "speed": self.speed,
            "verdict": self.verdict.value,
            "complete": self.complete,
            "rows": [_part(row) for row in self.rows],
            "findings": [_part(finding) for finding in self.findings],
            "checked": dict(self.checked),
            "work_lost_s": {control: dict(tasks) for control, tasks in self.work_lost_s.items()},
            "tolerance": dict(self.tolerance),
            "not_observed": list(self.not_observed),
            "trouble": list(self.trouble),
        }

    def dumps(self) -> str:
        """The text of `scorecard.json`. Half a surrogate pair, which a hostile name may hold and UTF-8
        can't, is escaped.
        """
        text = json.dumps(self.to_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _part(part: Row | Finding) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": part.id,
        "verdict": part.verdict.value,
        "value": part.value,
        "unit": part.unit,
        "limits": dict(part.limits),
        "why": part.why,
        "evidence": list(part.evidence),
    }
    if isinstance(part, Finding):
        out["kind"] = part.kind
    return out
