"""Every finding's check, by id, in the contract's order: pause, redirect, abort, then the observer's own."""

from types import ModuleType

from scoring.findings import abort, claims, observer, pause, reach, redirect, remains
from scoring.findings.check import Check

FAMILIES = ("pause", "redirect", "abort", "observer")


def _collected(*modules: ModuleType) -> dict[str, Check]:
    found = {check.id: check for m in modules for check in vars(m).values() if isinstance(check, Check)}
    return dict(sorted(found.items(), key=lambda item: (FAMILIES.index(item[1].family), int(item[0][1:]))))


FINDINGS: dict[str, Check] = _collected(pause, redirect, abort, remains, reach, claims, observer)
