"""The page: hostile text stays text, nothing is loaded, everything can be found, and it stays small."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from reports import page
from scoring.history import Damage, History
from scoring.timeline import Process
from scoring.verdict import Verdict
from tests.reports import literal

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'><a href=javascript:alert(1)>x</a>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u200f",
    "nul\x00esc\x1b[31m",
    "lone\ud800surrogate\udfff",
    "$\\frac{1}{0}$ ]]> --> </style></svg>",
]


class Reader(HTMLParser):
    """Collects what a browser would make of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value for _, key, value in self.attributes if key == name]


def _read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def _hostile_page(text: str) -> str:
    """A page in which every place that a subject can write to holds `text`."""
    time = literal.fleet(2, survivors=1, prefix=text)
    tampered = [event._replace(data={**event.data, "text": text, text: text}) for event in time.history.events]
    ghost = Process(9, 9, 1, "run", text, (text, text), (text,), literal.at(1), None, None, None, ())
    history = History(tuple(tampered), (Damage(text, 1, text, True),), {})
    audits = tuple(replace(audit, alive=(*audit.alive, 9)) for audit in time.audits)
    time = replace(time, history=history, processes={**time.processes, 9: ghost}, audits=audits)
    ids = tuple(event.id for event in tampered[:5])
    rows = tuple(replace(row, why=text, evidence=(*ids, text)) for row in literal.ROWS)
    card = literal.scorecard(
        run_id=text,
        drill=text,
        subject=text,
        rows=rows,
        findings=(literal.found(why=text, kind=text, evidence=ids), literal.found(id=text)),
        checked={text: text, "A9": "tripped"},
        work_lost_s={text: {text: 3.0}, "abort": {text: 2.0}},
        tolerance={text: text},
        not_observed=(text,),
        trouble=(text,),
    )
    hostile = {text: text, "nested": {text: [text]}}
    return page.render(
        literal.material(
            card,
            time,
            environment=hostile,
            subject=hostile,
            drill_text=text,
            git={text: text},
            rerun=text,
            facts=hostile,
        )
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    """A task may be called anything; a report is opened by people with sessions to lose."""
    html = _hostile_page(text)
    html.encode("utf-8")
    reader = _read(html)
    assert set(reader.tags).isdisjoint({"script", "iframe", "object", "embed", "base", "form", "link"})
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    assert reader.tags.count("img") == 3
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\ud800-\udfff]", html)
    assert all(value.startswith("#") for tag, name, value in reader.attributes if name == "href")
    assert "49{% raw" not in html


def test_every_svg_image_is_inert() -> None:
    """Charts are images: whatever a task is called, they must be well-formed and load nothing."""
    for uri in _read(_hostile_page(HOSTILE[1] + HOSTILE[5] + HOSTILE[6])).of("src"):
        kind, _, body = uri.partition(",")
        assert kind == "data:image/svg+xml;base64"
        root = ET.fromstring(base64.b64decode(body))
        assert not [el for el in root.iter() if el.tag.endswith(("script", "foreignObject", "}image"))]
        assert not [key for el in root.iter() for key in el.attrib if key.startswith("on")]


def test_a_megabyte_of_text_is_cut_everywhere() -> None:
    """One worker that prints a megabyte must not make a report that no browser opens."""
    html = _hostile_page("</script>" + "A" * 1_000_000)
    assert len(html) < 1_000_000
    assert "more characters]" in html


def test_the_page_forbids_itself_everything_and_loads_nothing() -> None:
    """It opens from disk, offline, with nothing to phone."""
    reader = _read(page.render(literal.material(time=literal.fleet(4))))
    policy = next(v for v in reader.of("content") if "default-src" in v)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    for name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href"):
        assert all(value.startswith(("#", "data:image/svg+xml;base64,")) for value in reader.of(name))
    html = page.render(literal.material())
    assert not re.search(r"@import|url\(|https?://", html)


def test_every_row_and_worker_is_an_anchor_and_every_link_has_one() -> None:
    """A colleague can be sent the very row."""
    ids = _read(page.render(literal.material(time=literal.fleet(16)))).of("id")
    assert {row.id for row in literal.ROWS} <= set(ids)
    assert {f"worker-t{i:02d}" for i in range(1, 17)} <= set(ids)
    assert len(ids) == len(set(ids))
    reader = _read(page.render(literal.material(literal.scorecard(findings=(literal.found(),)))))
    assert {value[1:] for value in reader.of("href")} <= set(reader.of("id"))


def test_the_verdict_comes_first_with_its_word() -> None:
    """Colour alone says nothing to some readers."""
    card = literal.scorecard(findings=(literal.found(),))
    text = " ".join("".join(_read(page.render(literal.material(card))).text).split())
    assert "fail This coordinator cannot be stopped as promised: 1 finding failed." in text
    assert text.index("cannot be stopped") < text.index("The six rows") < text.index("Findings How")


def test_evidence_is_capped_and_counts_the_rest() -> None:
    """A row may rest on a thousand events."""
    time = literal.fleet(4)
    rows = (replace(literal.ROWS[0], evidence=tuple(event.id for event in time.history.events[:100])),)
    html = page.render(literal.material(literal.scorecard(rows=rows), time))
    assert html.count("<li><code") == 40
    assert "and 60 more events" in html


def test_an_empty_run_renders_with_its_gaps_named() -> None:
    """A run that died at once has unknown values, and a report that says so."""
    rows = (
        replace(literal.ROWS[0], value=None, verdict=Verdict.FAIL),
        replace(literal.ROWS[5], value=None, verdict=Verdict.INVESTIGATE),
    )
    card = literal.scorecard(rows=rows, complete=False, checked={}, trouble=("the keeper died",))
    empty = literal.material(card, environment={}, subject={}, git={}, drill_text="", rerun="", facts={})
    html = page.render(empty)
    for words in (
        "never",
        "not measurable",
        "The history is incomplete",
        "the keeper died",
        "no worker and no tool",
    ):
        assert words in html
    assert page.render(literal.material(literal.scorecard(rows=(), findings=(), checked={})))


def test_rendering_twice_gives_the_same_bytes() -> None:
    """A stored run shown again must not differ."""
    given = literal.material(literal.scorecard(work_lost_s={"abort": {"t01": 3.0}}), literal.fleet(4))
    assert page.render(given) == page.render(given)


@pytest.mark.parametrize(("workers", "most"), [(16, 1_000_000), (256, 3_000_000), (1024, 8_000_000)])
def test_the_page_stays_small(workers: int, most: int) -> None:
    """A report is mailed and kept; its size follows the picture, not the number of calls."""
    html = page.render(literal.material(time=literal.fleet(workers, survivors=3, killed=2)))
    assert len(html.encode()) < most
    assert html.count('class="survivors" d="M') == 3
    assert html.count('class="killed" d="M') == 2
