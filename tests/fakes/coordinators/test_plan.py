"""The classification table: what an instruction means for each task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.coordinators.reference.plan import DROP, KEEP, MODIFY, Change, Instruction, Refused, Task, classify

TASKS = (
    Task("t01", "one", ("packages/p01/deps.lock",)),
    Task("t02", "two", ("packages/p02/deps.lock", "docs/two.md")),
    Task("t03", "three", ("packages/p03/deps.lock", "packages/p04/deps.lock")),
    Task("t04", "four", ()),
)


def instruct(changes: tuple[Change, ...] = (), drops: tuple[str, ...] = ()) -> Instruction:
    return Instruction("do other things", changes, drops, ())


def test_a_task_that_the_instruction_does_not_touch_is_kept() -> None:
    """A keep that is called modify disturbs a worker for nothing."""
    table = classify(instruct((Change(("packages/p02/*",), "version 5"),)), TASKS)
    assert table.tasks == {"t01": KEEP, "t02": MODIFY, "t03": KEEP, "t04": KEEP}
    assert table.deltas == {"t02": ("version 5",)}


def test_a_task_is_dropped_only_when_all_its_files_are() -> None:
    """A task that has lost half of its premise still has the other half; one without files has lost
    nothing.
    """
    table = classify(instruct(drops=("packages/p01/*", "packages/p03/*")), TASKS)
    assert table.tasks == {"t01": DROP, "t02": KEEP, "t03": KEEP, "t04": KEEP}


def test_a_dropped_task_gets_no_delta() -> None:
    """Telling a worker what to change before it is told to go wastes a step on a dead goal."""
    table = classify(instruct((Change(("packages/*",), "5"),), ("packages/p01/*",)), TASKS)
    assert (table.tasks["t01"], "t01" in table.deltas) == (DROP, False)


def test_two_changes_give_two_deltas() -> None:
    """The second delta must not replace the first."""
    table = classify(instruct((Change(("docs/*",), "a"), Change(("packages/p02/*",), "b"))), TASKS)
    assert table.deltas["t02"] == ("a", "b")


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"text": "please do better"},
        {"text": "x", "changes": [{"delta": "no paths"}]},
        {"text": "x", "changes": [{"paths": "not/a/list", "delta": "d"}]},
        {"text": "x", "drops": "packages/*"},
        {"text": "x", "drops": [7]},
        {"text": "x", "adds": [{"title": "no id"}]},
    ],
)
def test_an_instruction_without_a_table_is_refused(args: dict[str, object]) -> None:
    """A redirect that cannot produce its table is an abort with a friendlier name."""
    with pytest.raises(Refused):
        Instruction.read(args)


def test_an_instruction_is_read_from_its_args() -> None:
    """Everything in the args arrives, and unknown keys do no harm."""
    read = Instruction.read(
        {
            "n": 1,
            "text": "[[instruction-1]] go",
            "changes": [{"paths": ["a/*"], "delta": "d"}],
            "drops": ["b/*"],
            "adds": [{"task": "t17", "title": "new", "files": ["c/x"]}],
        }
    )
    assert read.changes == (Change(("a/*",), "d"),)
    assert (read.drops, [(t.id, t.files) for t in read.adds]) == (("b/*",), [("t17", ("c/x",))])


paths = st.sampled_from(["a/x", "a/y", "b/x", "b/y", "c/x"])
patterns = st.sampled_from(["a/*", "b/*", "*/x", "c/x", "d/*", "*"])


@given(
    files=st.lists(st.lists(paths, max_size=3), max_size=6),
    changes=st.lists(st.lists(patterns, max_size=2), max_size=3),
    drops=st.lists(patterns, max_size=2),
)
def test_every_task_appears_once_and_is_kept_only_if_untouched(
    files: list[list[str]], changes: list[list[str]], drops: list[str]
) -> None:
    """An incomplete table leaves a worker that nobody has thought about."""
    from fnmatch import fnmatchcase

    tasks = [Task(f"t{i}", "", tuple(names)) for i, names in enumerate(files)]
    instruction = instruct(tuple(Change(tuple(p), "d") for p in changes), tuple(drops))
    table = classify(instruction, tasks)
    assert list(table.tasks) == [task.id for task in tasks]
    assert set(table.deltas) == {t for t, what in table.tasks.items() if what == MODIFY}
    for task in tasks:
        changed = any(fnmatchcase(f, p) for f in task.files for c in changes for p in c)
        gone = bool(task.files) and all(any(fnmatchcase(f, p) for p in drops) for f in task.files)
        assert (table.tasks[task.id] == KEEP) == (not changed and not gone)
