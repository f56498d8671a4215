"""Durations are read as people write them, and a number without a unit is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drills.durations import parse, show


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1.5s", 1.5), ("1m 30s", 90)],
)
def test_human_durations_are_seconds(text: str, seconds: float) -> None:
    """Hazard: a factor of sixty between what was written and what is measured."""
    assert parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["30", 30, 1.5, "", "s", "5 minutes", "-5s", "5m!", None, [], "１s "])
def test_everything_else_is_refused_with_the_remedy(text: object) -> None:
    """Hazard: a bare 30 could be drill seconds, real seconds or minutes."""
    with pytest.raises(ValueError, match="write it with a unit"):
        parse(text)


@given(st.integers(1, 10**6))
def test_whole_seconds_survive_being_shown(seconds: int) -> None:
    """Hazard: an error message that names another limit than the one in force."""
    written = show(seconds).replace(" min", "m").replace(" h", "h").replace(" s", "s").replace(" ", "")
    assert parse(written) == pytest.approx(seconds, rel=0.01)
