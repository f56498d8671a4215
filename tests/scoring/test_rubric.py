"""The rubric: thresholds are the user's, rows are not, and a mistake is never silent."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import scoring
from scoring.rubric import Rubric, RubricError
from tests.scoring.story import healthy, row, tripped

DEFAULT = Path(scoring.__file__).parent / "default_rubric.toml"


def errors(data: dict[str, Any]) -> list[str]:
    with pytest.raises(RubricError) as caught:
        Rubric.from_mapping(data, "my.toml")
    return caught.value.errors


def test_defaults_are_those_of_the_packaged_file() -> None:
    """The file is what users copy: every key is in it, each with the default that the code has."""
    data = tomllib.loads(DEFAULT.read_text(encoding="utf-8"))
    assert Rubric().model_dump(by_alias=True) == data
    assert Rubric.from_mapping(data, str(DEFAULT)) == Rubric()


def test_thresholds_can_be_tuned() -> None:
    """Hazard: a user's threshold is read and changes neither the verdict nor the limits shown."""
    rubric = Rubric.from_mapping({"rows": {"time-to-quiet": {"pass_longest_calls": 0.5}}}, "my.toml")
    card = healthy().judge(rubric)
    assert tripped(card) == {"time-to-quiet": "investigate"}
    assert row(card, "time-to-quiet").limits == {"pass": 15.0, "investigate": 60.0}


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"rows": {"orphans": False}}, "rows.orphans"),
        ({"rows": {"orphans": "off"}}, "rows.orphans"),
        ({"rows": {"orphans": {"enabled": False}}}, "rows.orphans.enabled"),
        ({"rows": {"disable": ["orphans"]}}, "rows.disable"),
        ({"rows": ["time-to-quiet"]}, "rows"),
        ({"disabled": ["orphans"]}, "disabled"),
    ],
)
def test_rows_can_not_be_removed(data: dict[str, Any], path: str) -> None:
    """Hazard: a row that would fail is switched off in the rubric."""
    assert errors(data) == [f"my.toml: {path}: rows can't be removed; thresholds can be tuned"]


def test_every_mistake_is_named_with_its_place_and_the_key_that_was_meant() -> None:
    """Hazard: a misspelt key leaves the default in force, or hides the mistakes after it."""
    data = {
        "rows": {"time-to-quiet": {"pass_longest_call": 2, "investigate_longest_calls": "x"}, "orphan": {}},
        "tolerence": {},
    }
    assert errors(data) == [
        "my.toml: rows.time-to-quiet.investigate_longest_calls: Input should be a valid number, got 'x'",
        "my.toml: rows.time-to-quiet.pass_longest_call: unknown key; did you mean pass_longest_calls?",
        "my.toml: rows.orphan: unknown key; did you mean orphans?",
        "my.toml: tolerence: unknown key; did you mean tolerance?",
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"orphans": {"pass": -1}}, {"orphans": {"pass": 1.5}}, {"orphans": {"pass": True}},
        {"time-to-quiet": {"pass_longest_calls": 3.0}},
        {"time-to-quiet": {"pass_longest_calls": float("nan")}},
    ],
)  # fmt: skip
def test_thresholds_that_mean_nothing_are_refused(row: dict[str, Any]) -> None:
    """Hazard: a threshold of -1, of NaN or above the next one is taken, and its row judges nonsense."""
    assert len(errors({"rows": row})) == 1


def test_scoring_s_limit_of_what_is_measurable_can_be_tuned() -> None:
    """Hazard: a stricter limit of what is measurable is ignored, and times are judged all the same."""
    strict = Rubric.from_mapping({"tolerance": {"max_share_of_longest_call": 0.0}}, "my.toml")
    assert tripped(healthy().judge(strict))["V3"] == "investigate"
