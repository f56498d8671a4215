"""The drill file says everything that is wrong with it at once, with file, key, line and what is allowed."""

from pathlib import Path

import pytest

from drills import script
from drills.errors import UsageProblem

GOOD = """\
name = "mine"
[[controls]]
do = "pause"
at = "5m"
[[controls]]
do = "abort"
at = "12m"
"""


def refused(text: str) -> str:
    """The text of the refusal."""
    with pytest.raises(UsageProblem) as caught:
        script.parse(text, "mine.toml")
    return str(caught.value)


def test_a_minimal_drill_is_accepted_with_documented_defaults() -> None:
    """Hazard: a first drill that needs thirty lines is never written."""
    drill = script.parse(GOOD)
    assert (drill.fleet.workers, drill.speed, drill.longest_call) == (16, 40, 30)
    assert [step.do for step in drill.controls] == ["pause", "abort"]


def test_an_unknown_key_is_refused_with_a_suggestion_and_its_line() -> None:
    """Hazard: a misspelt threshold that silently keeps its default."""
    message = refused(GOOD + "[abort]\ngrce = '40s'\n")
    assert "mine.toml:9" in message and "abort.grce: unknown key; did you mean grace?" in message


def test_all_errors_are_told_at_once() -> None:
    """Hazard: one error a run, ten runs to a working file."""
    message = refused('name = "x"\nsped = 1\n[[controls]]\ndo = "puase"\nat = 5\n[fleet]\nworkers = "many"\n')
    assert len(message.splitlines()) == 4
    assert "mine.toml:2: sped" in message and "'pause', 'resume', 'redirect' or 'abort'" in message
    assert "mine.toml:5: controls[1].at: 5 is no duration" in message
    assert "mine.toml:7: fleet.workers" in message


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('[abort]\ngrace = "10s"', "must not be shorter than longest_call"),
        ('[abort]\nsweep_after = "45s"', "must come after the end of the ladder"),
        ('[fleet]\ncalls = { longest = "90s" }', "the longest legitimate call must be declared"),
        ('[[controls]]\ndo = "resume"\nat = "13m"', "resume at 13 min has no pause before it"),
        ('[[controls]]\ndo = "pause"\nat = "1m"', "stands after"),
        ('[[controls]]\ndo = "redirect"\nat = "13m"', "a redirect, and only a redirect"),
        ('[[controls]]\ndo = "pause"\nat = "13m"\nwhen = "quiet"', "give either at"),
        ('[[controls]]\ndo = "pause"', "give either at"),
        ('[[controls]]\ndo = "abort"\nat = "13m"\nhold = "2m"', "only a pause has a hold"),
        ('[[controls]]\ndo = "pause"\nat = "13m"\nhold = "20s"', "the hold of 20 s is too short"),
        (
            '[[controls]]\ndo = "pause"\nat = "13m"\nhold = "2m"\n[[controls]]\ndo = "abort"\nat = "14m"',
            "abort at 14 min stands after the hold of pause, which ends at 15 min",
        ),
        ('[[misbehaviours]]\nname = "never-look"', "no misbehaviour is called 'never-look'"),
        ('[[misbehaviours]]\ntask = "../x"\nname = "slow"', "misbehaviours[1].task"),
    ],
)
def test_what_would_make_a_verdict_meaningless_is_refused(lines: str, says: str) -> None:
    """Hazard: a drill that accuses an honest subject, or can't fail, because of its own times."""
    assert says in refused(GOOD + lines + "\n")


def test_a_hold_too_short_to_tell_late_from_never_is_refused() -> None:
    """Hazard: time-to-quiet cannot be judged when work goes on before two longest calls have passed."""
    text = GOOD.replace('at = "12m"', 'at = "12m"\n[[controls]]\ndo = "pause"\nat = "13m"')
    text += '[[controls]]\ndo = "resume"\nat = "13m30s"\n'
    assert "the hold of 30 s is too short" in refused(text)


def test_what_is_no_toml_and_what_is_no_file_is_said_plainly(tmp_path: Path) -> None:
    """Hazard: a traceback for a missing quote."""
    assert "mine.toml: not valid TOML" in refused('name = "x')
    with pytest.raises(UsageProblem, match="cannot be read"):
        script.load(tmp_path / "missing.toml")


def test_a_misspelt_shipped_drill_is_answered_with_what_there_is() -> None:
    """Hazard: "file not found" for a typo."""
    with pytest.raises(UsageProblem, match="did you mean tabletop"):
        script.find("tabeltop")


@pytest.mark.parametrize("name", sorted(script.shipped()))
def test_shipped_drills_are_valid_with_any_fleet(name: str) -> None:
    """Hazard: --workers 4 breaks a drill that names task t11."""
    drill, _ = script.load(script.find(name))
    for workers in (1, 2, 4, 64):
        assert len(drill.with_options(workers=workers).task_ids) == workers


def test_options_are_validated_like_the_file() -> None:
    """Hazard: the command line as a way around the checks."""
    drill = script.parse(GOOD)
    assert drill.with_options(speed=80, seed=3).speed == 80
    assert drill.with_options(speed=80).abort == drill.abort
    with pytest.raises(UsageProblem):
        drill.with_options(workers=5000)
