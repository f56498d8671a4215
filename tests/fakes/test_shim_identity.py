"""How a shim finds its task, and that the reading by hand reads what `json` would."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.shim.identity import branch_of, find, in_folder, in_prompt, planned
from fakes.shim.memory import told_as
from fakes.shim.start import quoted

TASKS = ["t01", "t02", "t03", "t1", "t1-b", "lint"]
TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)
NAMES = st.text("abt01-_é", min_size=1, max_size=6)


def nothing() -> str:
    """A prompt that must not be asked for."""
    raise AssertionError("the prompt was read although something stronger tells the task")


@given(st.dictionaries(NAMES, JSON), st.dictionaries(NAMES, JSON), JSON, st.sampled_from([None, 1]))
def test_the_plans_tasks_are_found_as_json_finds_them(
    tasks: dict[str, object], adds: dict[str, object], other: object, indent: int | None
) -> None:
    """Hazard: a string in the plan that looks like a task or a bracket."""
    plan = {"seed": other, "tasks": tasks, "x": {"tasks": other}, "adds": adds, "y": other}
    assert planned(json.dumps(plan, indent=indent, ensure_ascii=False)) == (list(tasks), list(adds))


@given(st.text() | st.text(st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)))
def test_the_first_event_quotes_as_json_does(text: str) -> None:
    """Hazard: a flag's name that makes the first event unreadable."""
    assert json.loads(quoted(text)).encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


def test_the_strongest_sign_decides(tmp_path: Path) -> None:
    """Hazard: a worker that works on its neighbour's task."""
    tree = tmp_path / "worktrees" / "t02" / "src"
    tree.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/agent/r1/t03\n")
    elsewhere = str(tmp_path / "worktrees")
    assert find(TASKS, "t01", str(tree), nothing) == ("t01", "TASK_ID")
    assert find(TASKS, "PROJ-7", str(tree), nothing) == ("t02", "folder")
    assert find(TASKS, "", elsewhere, nothing) == ("t03", "branch")
    assert find(TASKS, "", str(tmp_path.parent), lambda: "task lint, please") == ("lint", "prompt")
    assert find(TASKS, "", str(tmp_path.parent), lambda: "hello") == ("", "")


@pytest.mark.parametrize(
    ("folder", "task"),
    [
        ("/x/world/worktrees/t01", "t01"),
        ("/x/world/worktrees/t01/packages/t02", "t01"),
        ("/x/t01/t02/src", "t02"),
        ("/x/t011/at01", ""),
        ("/", ""),
    ],
)
def test_a_folder_is_named_after_its_task(folder: str, task: str) -> None:
    """Hazard: a folder inside the worktree that bears another task's name."""
    assert in_folder(folder, TASKS) == task


def test_the_branch_of_a_linked_worktree_is_read_without_git(tmp_path: Path) -> None:
    """Hazard: a git process at every start, or a worktree that is taken for no repository."""
    real = tmp_path / "repo/.git/worktrees/one"
    real.mkdir(parents=True)
    (real / "HEAD").write_text("ref: refs/heads/agent/r1/t01\n")
    inside = tmp_path / "one/src"
    inside.mkdir(parents=True)
    for pointer in (f"gitdir: {real}\n", "gitdir: ../repo/.git/worktrees/one\n"):
        (tmp_path / "one/.git").write_text(pointer)
        assert branch_of(str(inside)) == "agent/r1/t01"
    (real / "HEAD").write_text("6f1c2d3e\n")
    assert branch_of(str(inside)) == ""


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("[task:t03] leave t01 alone", "t03"),
        ("t01 is done; now do task t02.", "t02"),
        ("TASK T02", "t02"),
        ("see t01, then t03: migrate", "t03"),
        ("work on agent/r1/t02-migration", "t02"),
        ("first t02, then t01", "t02"),
        ("t1-b please", "t1-b"),
        ("xt01 t011 t01_x", ""),
        ("splint", ""),
        ("", ""),
    ],
)
def test_a_prompt_names_its_task(prompt: str, task: str) -> None:
    """Hazard: a part of a longer word, or a task that is only mentioned, decides."""
    assert in_prompt(prompt, TASKS) == task


@pytest.mark.parametrize(
    ("prompt", "last", "what"),
    [
        ("Do step 4 of t01.", "Do step 3 of t01.", None),
        ("Do step 4.\n[[delta-r1.2]] use 5.0", "Do step 3.", "delta"),
        ("Do step 5.\n[[delta-r1.2]] use 5.0", "Do step 4.\n[[delta-r1.2]] use 5.0", None),
        ("Do step 5.\n[[delta-r1.3]] use 5.0", "Do step 4.\n[[delta-r1.2]] use 5.0", "delta"),
        ("All of it: [[instruction-r1.2]]", "Do step 3.", "instruction"),
        ("Write a poem.", "Do step 3.", "objective"),
        ("Do step 4.\nSo far: a, b", "Do step 3.\nSo far: a", "prompt"),
    ],
)
def test_a_later_prompt_is_told_as_what_it_changes(prompt: str, last: str, what: str | None) -> None:
    """Hazard: a kept worker that is said to have been prompted again because its loop counts."""
    assert told_as(prompt, last) == what
