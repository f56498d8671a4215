"""JUnit: three verdicts in a format that knows two, and no check that looks passed without having run."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from reports import junit
from scoring.scorecard import Scorecard
from scoring.verdict import Verdict
from tests.reports import literal
from tests.reports.test_page import HOSTILE


def _suite(card: Scorecard) -> ET.Element:
    suite = ET.fromstring(junit.render(card).encode()).find("testsuite")
    assert suite is not None
    return suite


def _cases(card: Scorecard) -> dict[str, ET.Element]:
    return {case.get("name", ""): case for case in _suite(card).findall("testcase")}


def test_each_row_and_each_check_that_ran_is_a_testcase() -> None:
    """CI shows what was tested, by the ids that the documents use."""
    cases = _cases(literal.scorecard())
    assert {row.id for row in literal.ROWS} | {"P1", "P2", "D1", "A1", "A10"} <= set(cases)
    assert not [case for case in cases.values() if case.find("failure") is not None or case.find("error") is not None]


def test_a_check_that_was_not_exercised_is_counted_and_never_looks_passed() -> None:
    """An empty testcase is green."""
    suite = _suite(literal.scorecard())
    assert "P6" not in [case.get("name") for case in suite.findall("testcase")]
    values = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert (values["checks_not_exercised"], values["checks_not_exercised_ids"]) == ("1", "P6")


@pytest.mark.parametrize(
    ("verdict", "tag"), [(Verdict.FAIL, "failure"), (Verdict.INVESTIGATE, "error"), (Verdict.BROKEN, "error")]
)
def test_a_verdict_becomes_the_tag_that_ci_understands(verdict: Verdict, tag: str) -> None:
    """Investigate as skipped would be shown as fine."""
    rows = (replace(literal.ROWS[0], verdict=verdict),)
    suite = _suite(literal.scorecard(rows=rows))
    part = suite.find(f"testcase[@name='time-to-quiet']/{tag}")
    assert part is not None and part.get("type") == verdict.value
    assert (suite.get("failures"), suite.get("errors")) == (("1", "0") if tag == "failure" else ("0", "1"))
    assert suite.get("skipped") == "0" and suite.find(".//skipped") is None


def test_findings_of_one_id_become_one_testcase_with_the_worst_verdict() -> None:
    """Names of testcases must be unique, otherwise CI keeps only one of them."""
    findings = (literal.found(verdict=Verdict.INVESTIGATE, why="first"), literal.found(why="second"))
    case = _cases(literal.scorecard(findings=findings, checked={"A9": "tripped"}))[
        "A9 said stopped while something ran"
    ]
    failure = case.find("failure")
    assert failure is not None and "second" in (failure.text or "") and "first" in (failure.text or "")


def test_a_broken_check_an_incomplete_history_and_trouble_turn_the_suite_red() -> None:
    """Each makes the verdict worse than pass, so none may hide behind green rows."""
    cases = _cases(literal.scorecard(checked={"P1": "broken", "P2": "?"}, complete=False, trouble=("keeper died",)))
    types = {name: error.get("type") for name, case in cases.items() if (error := case.find("error")) is not None}
    assert types == {
        "P1": "broken",
        "P2": "broken",
        "history is complete": "investigate",
        "harness did its job": "broken",
    }


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 1_000_000])
def test_hostile_text_is_parsed_back_as_text(text: str) -> None:
    """XML 1.0 cannot carry NUL or surrogates at all, not even escaped."""
    card = literal.scorecard(
        run_id=text,
        drill=text,
        subject=text,
        findings=(literal.found(kind=text, why=text),),
        not_observed=(text,),
    )
    xml = junit.render(card)
    assert len(xml) < 60_000
    suite = ET.fromstring(xml.encode("utf-8")).find("testsuite")
    assert suite is not None
    assert {el.tag for el in suite.iter()} <= {
        "testsuite",
        "properties",
        "property",
        "testcase",
        "failure",
        "system-out",
    }
