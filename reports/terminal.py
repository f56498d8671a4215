"""A scorecard on a terminal, and as plain lines for the logs of CI.

`render` gives something that rich prints: colour, but a word and a sign beside each colour. `plain` gives
lines of a fixed shape that survive any log: no colour, no box, one row a line, so that `grep` finds a row
by its id. Text from the subject is shown, never interpreted: no markup of rich's, no control character
reaches the terminal.
"""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from reports.text import count, one_line
from reports.words import amount, headline, limits, number, row_words, tally
from scoring.scorecard import Finding, Row, Scorecard
from scoring.verdict import Verdict

STYLES = {
    Verdict.PASS: "green",
    Verdict.INVESTIGATE: "yellow",
    Verdict.FAIL: "red",
    Verdict.BROKEN: "magenta",
}
_INDENT = 15
SIGNS = {Verdict.PASS: "✓", Verdict.INVESTIGATE: "▲", Verdict.FAIL: "✗", Verdict.BROKEN: "◆"}


def render(card: Scorecard) -> RenderableType:
    """The verdict, the six rows, findings, work lost and what was not observed, for a rich console."""
    parts: list[RenderableType] = [_title(card), Text(headline(card)), Text(""), _rows(card)]
    if card.findings:
        parts += [Text(""), _findings(card)]
    parts.append(Text(f"\n{_checks(card)}", style="dim"))
    for line in _losses(card.work_lost_s):
        parts.append(Text(line))
    parts += [Text(f"not observed: {one_line(what, 300)}", style="yellow") for what in card.not_observed]
    if not card.complete:
        parts.append(Text("the history is incomplete", style="yellow"))
    parts += [Text(f"harness: {one_line(why, 300)}", style="magenta") for why in card.trouble]
    return Group(*parts)


def plain(card: Scorecard) -> str:
    """The same in lines of text, ending with a line feed."""
    lines = [f"{card.verdict.value.upper()}  {_names(card)}", headline(card)]
    lines += [f"{_word(row)}  {one_line(row.id, 60):<20}{_measure(row)}  {one_line(row.why)}" for row in card.rows]
    for finding in card.findings:
        name = f"{one_line(finding.id, 12)} {one_line(finding.kind, 80)}"
        measure = f" ({', '.join([amount(finding), *limits(finding)])})" if finding.value is not None else ""
        lines.append(f"{_word(finding)}  {name}{one_line(measure, 120)}: {one_line(finding.why)}")
    lines.append(_checks(card))
    lines += _losses(card.work_lost_s)
    lines += [f"not observed: {one_line(what, 300)}" for what in card.not_observed]
    lines += [] if card.complete else ["the history is incomplete"]
    lines += [f"harness: {one_line(why, 300)}" for why in card.trouble]
    return "\n".join(lines) + "\n"


def _title(card: Scorecard) -> Text:
    verdict = card.verdict
    title = Text(f"{SIGNS[verdict]} {verdict.value.upper()}", style=f"bold {STYLES[verdict]}")
    return title.append(f"  {_names(card)}", style="not bold default")


def _rows(card: Scorecard) -> Group:
    """Verdict, row, value and limits in columns; below, over the whole width, the sentence."""
    titles = [row_words(row.id).title for row in card.rows]
    values = [one_line(amount(row), 40) for row in card.rows]
    wide, far = max(map(len, titles), default=0), max(map(len, values), default=0)
    parts: list[RenderableType] = []
    for row, title, value in zip(card.rows, titles, values, strict=True):
        limit = one_line(", ".join(limits(row)) or "–", 80)
        line = _says(row).append(f"{title:<{wide}}  {value:>{far}}", style="not dim bold default")
        parts += [line.append(f"  {limit}", style="not bold dim default"), _why(row)]
    return Group(*parts)


def _findings(card: Scorecard) -> Group:
    parts: list[RenderableType] = []
    for finding in sorted(card.findings, key=lambda f: -f.verdict.rank):
        name = f"{one_line(finding.id, 12)} {one_line(finding.kind, 80)}"
        parts += [_says(finding).append(name, style="bold default"), _why(finding)]
    return Group(*parts)


def _why(part: Row | Finding) -> Padding:
    return Padding(Text(one_line(part.why)), (0, 0, 0, _INDENT))


def _says(part: Row | Finding) -> Text:
    return Text(f"{SIGNS[part.verdict] + ' ' + part.verdict.value:<{_INDENT}}", style=STYLES[part.verdict])


def _word(part: Row | Finding) -> str:
    return f"{part.verdict.value.upper():<11}"


def _measure(part: Row | Finding) -> str:
    limit = ", ".join(limits(part))
    return one_line(amount(part) + (f" ({limit})" if limit else ""), 120)


def _names(card: Scorecard) -> str:
    names = (card.drill, card.subject, card.run_id)
    return " · ".join(one_line(name, 60) for name in names)


def _checks(card: Scorecard) -> str:
    return "checks: " + ", ".join(f"{n} {state}" for state, n in tally(card).items())


def _losses(lost: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One line a control that cost work: the sum, and the worst worker."""
    lines = []
    for control, tasks in lost.items():
        hit = {task: seconds for task, seconds in tasks.items() if seconds > 0}
        if hit:
            task = max(hit, key=lambda name: hit[name])
            lines.append(
                f"work lost at {one_line(control, 40)}: {number(sum(hit.values()))} drill s in "
                f"{count(len(hit), 'worker')}, most in {one_line(task, 40)} ({number(hit[task])} s)"
            )
    return lines
