"""A history that is cut short accuses nobody: what was not written down is unknown, not a fail."""

import pytest

from scoring.history import merge
from scoring.judge import judge
from scoring.rubric import Rubric
from scoring.verdict import Verdict
from tests.scoring.story import healthy

SOURCES = healthy().sources()


def fails(sources: dict[str, bytes]) -> list[str]:
    """Rows and findings that fail, and `pass` if the whole thing passes."""
    card = judge(merge(sources), Rubric())
    assert not card.trouble
    failed = [part.id + ": " + part.why for part in (*card.rows, *card.findings) if part.verdict is Verdict.FAIL]
    return failed + (["pass"] if card.verdict is Verdict.PASS else [])


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_a_missing_source_is_no_accusation_and_no_pass(source: str) -> None:
    """Hazard: the provider's file is lost and the subject is accused of unknown spending."""
    assert fails({name: text for name, text in SOURCES.items() if name != source}) == []


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("source", sorted(SOURCES))
def test_a_source_that_stops_early_is_no_accusation_and_no_pass(source: str, share: float) -> None:
    """Hazard: after the keeper's last word every worker seems to live for ever."""
    text = SOURCES[source]
    assert fails({**SOURCES, source: text[: int(len(text) * share)]}) == []


@pytest.mark.parametrize("drill_s", range(-19, 409, 9))
def test_a_run_that_ends_at_once_everywhere_is_no_accusation_and_no_pass(drill_s: int) -> None:
    """Hazard: the driver is killed and its own clean-up looks like the subject's doing."""
    story = healthy()
    story.lines = [line for line in story.lines if line.s <= drill_s]
    if story.lines:
        assert fails(story.sources()) == []
