"""A scorecard as JUnit XML, for the test views of CI systems.

JUnit knows failure, error and skipped, and no third verdict. So: fail is a failure, investigate an error of
type `investigate`, broken an error of type `broken`. Nothing is ever `skipped`, because CI shows skipped as
fine. A check that was not exercised is left out and counted in a property, since an empty testcase would
look passed.
"""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from reports.text import xml_text
from reports.words import amount, headline, limits, row_words
from scoring.scorecard import Finding, Row, Scorecard
from scoring.verdict import Verdict, worst

NOT_EXERCISED = "not exercised"


def render(card: Scorecard) -> str:
    """The XML of one drill: one suite, a testcase per row and per check that had something to judge."""
    name = f"stopdrill.{xml_text(card.drill, 100)}"
    suite = ET.Element("testsuite", {"name": name, "time": "0"})
    _properties(suite, card)
    for row in card.rows:
        case = _case(suite, f"{name}.rows", row.id)
        _say(case, row.verdict, f"{row_words(row.id).title}: {_measure(row)}", [row.why, *_evidence([row])])
    for check in _checks(card):
        _check(suite, f"{name}.findings", check, card)
    _harness(suite, f"{name}.harness", card)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", "0")
    root = ET.Element(
        "testsuites", {key: suite.get(key, "") for key in ("name", "tests", "failures", "errors", "time")}
    )
    root.append(suite)
    ET.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, card: Scorecard) -> None:
    idle = sorted(check for check, state in card.checked.items() if state == NOT_EXERCISED)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("run_id", card.run_id),
        ("subject", card.subject),
        ("speed", card.speed),
        ("verdict", card.verdict.value),
        ("headline", headline(card)),
        ("complete", str(card.complete).lower()),
        ("checks_not_exercised", len(idle)),
        ("checks_not_exercised_ids", " ".join(idle)),
        *(("not_observed", what) for what in card.not_observed),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": xml_text(value, 1000)})


def _checks(card: Scorecard) -> list[str]:
    """Every check that had something to judge, and those that found something without being listed."""
    ran = [check for check, state in card.checked.items() if state != NOT_EXERCISED]
    return list(dict.fromkeys([*ran, *(finding.id for finding in card.findings)]))


def _check(suite: ET.Element, classname: str, check: str, card: Scorecard) -> None:
    found = [finding for finding in card.findings if finding.id == check]
    state = card.checked.get(check, "tripped")
    kind = found[0].kind if found else ""
    case = _case(suite, classname, f"{check} {kind}".rstrip())
    if state == "broken":
        _say(case, Verdict.BROKEN, f"{check}: the check itself did not work", [f.why for f in found])
    elif found:
        lines = [f"{finding.verdict.value}: {finding.why}" for finding in found]
        _say(
            case,
            worst(f.verdict for f in found),
            f"{check} {kind}: {found[0].why}",
            [*lines, *_evidence(found)],
        )
    elif state != "clean":
        # A state without a finding behind it is a fault of ours, and must not look passed.
        _say(case, Verdict.BROKEN, f"{check}: its state is {state!r}, without a finding", [])


def _harness(suite: ET.Element, classname: str, card: Scorecard) -> None:
    """Two more testcases, so that an incomplete history or a broken harness turns the suite red by itself."""
    complete = Verdict.PASS if card.complete else Verdict.INVESTIGATE
    _say(_case(suite, classname, "history is complete"), complete, "the history is cut short", [])
    trouble = Verdict.BROKEN if card.trouble else Verdict.PASS
    _say(
        _case(suite, classname, "harness did its job"),
        trouble,
        "; ".join(card.trouble[:3]),
        list(card.trouble),
    )


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    given = {"classname": classname, "name": xml_text(name, 200), "time": "0"}
    return ET.SubElement(suite, "testcase", given)


def _say(case: ET.Element, verdict: Verdict, message: str, lines: list[str]) -> None:
    text = "\n".join(xml_text(line) for line in lines)
    if verdict is Verdict.PASS:
        if text:
            ET.SubElement(case, "system-out").text = text
        return
    tag = "failure" if verdict is Verdict.FAIL else "error"
    ET.SubElement(case, tag, {"type": verdict.value, "message": xml_text(message, 600)}).text = text


def _measure(row: Row) -> str:
    limit = ", ".join(limits(row))
    return f"{amount(row)}{f' ({limit})' if limit else ''}"


def _evidence(parts: Iterable[Row | Finding]) -> list[str]:
    ids = list(dict.fromkeys(event for part in parts for event in part.evidence))
    if not ids:
        return []
    more = f" and {len(ids) - 20:,} more" if len(ids) > 20 else ""
    return [f"evidence: {' '.join(xml_text(event, 120) for event in ids[:20])}{more}"]
