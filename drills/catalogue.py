"""The catalogue: what there is, printed from the code itself so that it cannot be out of date."""

from collections.abc import Callable
from dataclasses import dataclass

from drills import script
from drills.adapters.subjects import names
from fakes.behaviours import BEHAVIOURS
from scoring.findings import FINDINGS
from scoring.rows import ROWS
from scoring.vocabulary import KINDS


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue."""

    name: str
    says: str
    more: str = ""


def drills() -> list[Entry]:
    """Shipped drills."""
    found = []
    for name, path in script.shipped().items():
        drill, _ = script.load(path)
        found.append(Entry(name, drill.title, f"{drill.fleet.workers} workers, speed {drill.speed:g}"))
    return found


def rows() -> list[Entry]:
    """The six rows of the rubric."""
    return [Entry(row.id, row.summary) for row in ROWS.values()]


def findings() -> list[Entry]:
    """All finding checks."""
    return [Entry(check.id, check.summary, check.family) for check in FINDINGS.values()]


def behaviours() -> list[Entry]:
    """Misbehaviours of simulated workers."""
    return [Entry(item.name, item.summary, "trips " + ", ".join(item.trips)) for item in BEHAVIOURS.values()]


def subjects() -> list[Entry]:
    """Subjects that come with the package."""
    return [Entry(name, says) for name, says in names().items()]


def events() -> list[Entry]:
    """Kinds of events in a history."""
    return [
        Entry(kind.name, kind.says, f"{kind.source}: {', '.join(sorted(kind.required))}") for kind in KINDS.values()
    ]


TOPICS: dict[str, Callable[[], list[Entry]]] = {
    "drills": drills,
    "rows": rows,
    "findings": findings,
    "behaviours": behaviours,
    "subjects": subjects,
    "events": events,
}
