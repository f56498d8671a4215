"""The tool call's pure part, and the plan's steps: what is edited, in which parts, how long it takes."""

import json
from pathlib import Path

import pytest

from fakes.worker.plan import Plan, PlanError, Step
from fakes.worker.tool import edited, parts, perform
from scoring.journal import Journal

LOCK = b"amber==3.1.0\nbirch==3.2.1\ncedar==3.3.2\n"


def test_an_edit_moves_one_pin_and_renews_the_end_line() -> None:
    """Hazard: end lines that pile up, or a step whose work can't be told from another's."""
    once = edited(LOCK, "t01", 1, "4.0.0")
    assert once == b"amber==3.1.0\nbirch==4.0.0\ncedar==3.3.2\n# stopdrill t01 1 end\n"
    twice = edited(once, "t01", 3, "5.0")
    assert twice == b"amber==5.0\nbirch==4.0.0\ncedar==3.3.2\n# stopdrill t01 3 end\n"


def test_an_edit_bears_any_bytes() -> None:
    """Hazard: a user's file that is not UTF-8, has no final line feed, or has Windows line ends."""
    assert edited(b"\xff\xfe", "t01", 1, "4") == b"\xff\xfe\n# stopdrill t01 1 end\n"
    assert edited(b"a==1\r\n", "t01", 1, "4") == b"a==4\r\n# stopdrill t01 1 end\n"
    assert edited(b"", "t01", 1, "4") == b"# stopdrill t01 1 end\n"


@pytest.mark.parametrize("lines", [0, 1, 4, 25])
def test_five_parts_are_the_text_and_only_the_last_has_the_end_line(lines: int) -> None:
    """Hazard: a file that looks whole before its call is over."""
    text = edited(b"x\n" * lines, "t01", 7, "4")
    five = parts(text)
    assert len(five) == 5
    assert b"".join(five) == text
    assert b"end" in five[4]
    assert b"end" not in b"".join(five[:4])


def test_a_link_in_the_files_place_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: an edit inside the worktree that lands outside of it."""
    monkeypatch.chdir(tmp_path)
    Path("outside").write_text("keep")
    Path("inside").symlink_to("outside")
    journal = Journal(str(tmp_path), "tools-x", shared=True)
    with pytest.raises(OSError, match="inside"):
        perform(Step(1, "edit", "inside", 0.0, False), "t01.1/1", 0, b"gone\n", journal)
    journal.close()
    assert Path("outside").read_text() == "keep"


def _plan(folder: Path, changes: dict[str, object], task: str = "t01") -> Plan:
    mine = {"files": ["a", "b"], "steps": 9, "calls": {"distribution": "fixed", "value_s": 0.5}, **changes}
    whole = {
        "seed": 7,
        "base": "main",
        "longest_call_s": 1,
        "kill_after_s": 1,
        "objective": {"text": "go"},
        "tasks": {task: mine},
    }
    (folder / "plan.json").write_text(json.dumps(whole))
    return Plan(str(folder / "plan.json"), task)


def test_a_step_is_the_same_in_every_attempt_and_differs_between_tasks(tmp_path: Path) -> None:
    """Hazard: a resumed run that can't be compared with an unpaused one of the same seed."""
    calls = {"distribution": "lognormal", "median_s": 0.5, "sigma": 0.5, "longest_s": 0.9}
    mine: dict[str, object] = {"calls": calls, "child_share": 0.6, "readonly_share": 0.15}
    forwards = [_plan(tmp_path, mine).step(number) for number in range(1, 200)]
    again = _plan(tmp_path, mine).step(150)
    assert (again.duration_s, again.child, again.tool) == (
        forwards[149].duration_s,
        forwards[149].child,
        forwards[149].tool,
    )
    assert max(step.duration_s for step in forwards) == 0.9
    assert 90 < sum(step.child for step in forwards) < 150
    assert 10 < sum(step.tool == "test" for step in forwards) < 55
    other = _plan(tmp_path, mine, "t02").step(1)
    assert other.duration_s != forwards[0].duration_s


@pytest.mark.parametrize(
    ("calls", "durations"),
    [
        ({"distribution": "fixed", "value_s": 0.5}, [0.5, 0.5, 0.5]),
        ({"distribution": "list", "values_s": [0.1, 0.2]}, [0.1, 0.2, 0.1]),
        ({"distribution": "uniform", "low_s": 0.3, "high_s": 0.3}, [0.3, 0.3, 0.3]),
        ({"distribution": "fixed", "value_s": 0.5, "longest_s": 0.4}, [0.4, 0.4, 0.4]),
    ],
)
def test_durations_follow_the_plans_distribution(
    tmp_path: Path, calls: dict[str, object], durations: list[float]
) -> None:
    """Hazard: a drill that scales its times and calls that don't follow."""
    plan = _plan(tmp_path, {"calls": calls})
    assert [plan.step(number).duration_s for number in (1, 2, 3)] == durations


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../b", ".git/config", "a//b", ""])
def test_paths_out_of_the_worktree_are_refused(tmp_path: Path, path: str) -> None:
    """Hazard: a plan is data, and a worker truncates what it is told to edit."""
    with pytest.raises(PlanError, match="not a plain path"):
        _plan(tmp_path, {"files": [path]})


def test_an_unknown_distribution_is_named(tmp_path: Path) -> None:
    """Hazard: a typing error that becomes a call of no duration."""
    with pytest.raises(PlanError, match="'normal' is not fixed, uniform, lognormal or list"):
        _plan(tmp_path, {"calls": {"distribution": "normal"}}).step(1)
