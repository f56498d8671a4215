"""The report page: one HTML file that opens from disk, loads nothing and runs nothing.

The verdict comes first, then the six rows, the findings, and what could not be observed; pictures and raw
evidence follow. Everything from a worker or a subject is hostile: the template engine escapes every
expression, and its `finalize` hook writes out control characters, direction marks and lone surrogates
wherever they come from, so that no template can forget it. The page forbids itself scripts and requests
(CSP), because a report is often opened by the one person whose browser is logged in everywhere.

Rendering is deterministic and takes a `Material`: no clock, no files except the templates beside this
module.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import lanes, plots, svg, words
from reports.evidence import Evidence, Shelf
from reports.lanes import Lane, Picture
from reports.material import Material
from reports.text import compact, count, one_line, slug, visible
from scoring.scorecard import Finding, Row, Scorecard
from scoring.verdict import Verdict

DRILL_MAX = 24_000
GIT_FILES_MAX = 48
GIT_FILE_MAX = 6_000
LISTINGS_MAX = 24
WORKER_ROWS_MAX = 1_200


@dataclass(frozen=True)
class RowView:
    """A row of the rubric as the page shows it."""

    row: Row
    title: str
    question: str
    amount: str
    limits: list[str]
    evidence: Evidence


@dataclass(frozen=True)
class FindingView:
    """A finding as the page shows it."""

    finding: Finding
    anchor: str
    amount: str
    limits: list[str]
    evidence: Evidence


@dataclass(frozen=True)
class GroupView:
    """All checks of one group: what was found, and what the others say."""

    title: str
    findings: list[FindingView]
    checks: list[tuple[str, str, str]]
    """Id, state, and the verdict that colours it: that of its worst finding."""
    summary: str


@dataclass(frozen=True)
class WorkerView:
    """One worker in words: the text behind its lane."""

    anchor: str
    task: str
    attempt: int
    pid: str
    begin: str
    end: str
    ending: str
    calls: int
    checkpoints: int
    parked: str
    lost: str


def render(material: Material) -> str:
    """The page of one run, as text to be stored as UTF-8."""
    card, shelf = material.scorecard, Shelf(material)
    shown = lanes.picture(material.timeline)
    drawing = svg.draw(shown)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            card=card,
            material=material,
            headline=words.headline(card),
            facts=_facts(material),
            verdict_says=words.VERDICT_SAYS,
            rows=[_row(row, shelf) for row in card.rows],
            groups=_groups(card, shelf),
            tally=words.tally(card),
            worst=[row for row in card.rows if row.verdict is not Verdict.PASS],
            d=drawing,
            workers=[_worker(lane, shown, card) for lane in shown.lanes[:WORKER_ROWS_MAX]],
            charts=plots.charts(material, shown),
            listings=shelf.listings()[:LISTINGS_MAX],
            listings_more=max(0, len(material.timeline.audits) - LISTINGS_MAX),
            git=[(name, visible(material.git[name], GIT_FILE_MAX)) for name in sorted(material.git)[:GIT_FILES_MAX]],
            git_more=max(0, len(material.git) - GIT_FILES_MAX),
            damage=_damage(material),
            environment=_pairs(material.environment),
            subject=_pairs(material.subject),
            tolerance=_pairs(card.tolerance),
            drill_text=visible(material.drill_text, DRILL_MAX),
        )
    )


def timeline_svg(picture: Picture) -> str:
    """The lanes alone, as the page embeds them."""
    return _environment().get_template("timeline.svg.j2").render(d=svg.draw(picture))


@cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(count=count, compact=compact)
    env.filters.update(slug=slug, one_line=one_line)
    return env


def _finalize(value: Any) -> Any:
    """The last word on every expression of a template: nothing unseen, nothing without an end."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value, 600_000)


def _row(row: Row, shelf: Shelf) -> RowView:
    about = words.row_words(row.id)
    return RowView(row, about.title, about.question, words.amount(row), words.limits(row), shelf.of(row))


def _groups(card: Scorecard, shelf: Shelf) -> list[GroupView]:
    """Groups in the contract's order; a group without any check is left out."""
    out = []
    for letter, (title, _) in words.GROUPS.items():
        found = [f for f in card.findings if words.group_of(f.id) == letter]
        checks = sorted(
            ((name, state) for name, state in card.checked.items() if words.group_of(name) == letter),
            key=_natural,
        )
        if not found and not checks:
            continue
        found.sort(key=lambda f: (-f.verdict.rank, _natural((f.id, ""))))
        views = [
            FindingView(f, f"finding-{slug(f.id)}-{i}", words.amount(f), words.limits(f), shelf.of(f))
            for i, f in enumerate(found, 1)
        ]
        colours = {f.id: f.verdict.value for f in reversed(found)}
        tinted = [(name, state, colours.get(name, "")) for name, state in checks]
        out.append(GroupView(title, views, tinted, _summary(checks)))
    return out


def _natural(check: tuple[str, str]) -> tuple[str, int, str]:
    """P2 before P10."""
    rest = check[0][1:]
    return check[0][:1], int(rest) if rest.isdecimal() and len(rest) < 9 else 0, check[0]


def _summary(checks: list[tuple[str, str]]) -> str:
    states = [state for _, state in checks]
    order = ("tripped", "broken", "clean", "not exercised")
    parts = [f"{states.count(state)} {state}" for state in order if state in states]
    return ", ".join(parts) or "no check ran"


def _worker(lane: Lane, shown: Picture, card: Scorecard) -> WorkerView:
    parked_s = sum(span.end - span.start for span in lane.parked) / 1e9 * shown.clock.speed
    lost = [(control, tasks.get(lane.task or "", 0.0)) for control, tasks in card.work_lost_s.items()]
    return WorkerView(
        anchor=lane.anchor,
        task=one_line(lane.task if lane.task is not None else "no task", 120),
        attempt=lane.attempt,
        pid="–" if lane.pid is None else str(lane.pid),
        begin=shown.clock.label(lane.alive.start if lane.alive else None),
        end=shown.clock.label(lane.alive.end if lane.alive else None),
        ending=svg.ending(lane),
        calls=len(lane.child) + len(lane.own),
        checkpoints=len(lane.checkpoints),
        parked=f"{words.number(parked_s)} s" if lane.parked else "–",
        lost=", ".join(f"{words.number(s)} s at {one_line(control, 24)}" for control, s in lost if s > 0) or "–",
    )


def _facts(material: Material) -> list[tuple[str, str]]:
    card, timeline = material.scorecard, material.timeline
    facts = [
        ("drill", one_line(card.drill, 80)),
        ("subject", one_line(card.subject, 80)),
        ("run", one_line(card.run_id, 80)),
        ("workers", f"{timeline.config.get('workers', len(timeline.workers))}"),
        ("speed", f"{words.number(card.speed)}×"),
        (
            "history",
            f"{len(timeline.history.events):,} events, {'complete' if card.complete else 'incomplete'}",
        ),
    ]
    return facts + [(one_line(name, 40), one_line(value, 120)) for name, value in material.facts.items()]


def _damage(material: Material) -> list[str]:
    damage = material.timeline.history.damage
    lines = [f"{d.source}:{d.line}: {d.what}{' (torn last line of a killed writer)' if d.last else ''}" for d in damage]
    shown = [one_line(line, 240) for line in lines[:20]]
    return shown + ([f"and {len(lines) - 20:,} more"] if len(lines) > 20 else [])


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A mapping as rows of text; nested values as JSON."""
    return [
        (one_line(key, 60), one_line(json.dumps(value, ensure_ascii=False, default=str), 600).strip('"'))
        for key, value in list(values.items())[:80]
    ]
