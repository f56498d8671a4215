"""The conformance kit: the reference is fit to be drilled with, each mistake is told to its author in a sentence."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from drills.adapters.base import Capabilities
from drills.adapters.bundled import BundledAdapter
from drills.adapters.registry import Shape, shape_of
from drills.conformance import CHECKS, check
from drills.conformance.apart import check_apart
from drills.conformance.checks import judge
from drills.conformance.evidence import Called, Evidence, Finding
from drills.errors import UsageProblem
from drills.testing import AdapterConformance
from tests.drills import adapters_for_tests as bad
from tests.drills.harness import STOPDRILL

HERE = "tests.drills.adapters_for_tests"
GOOD = Evidence(
    Shape("good"),
    (
        Called("claims", "before the start", "claims", 5),
        Called("starts", "the first start", "start", 15),
        Called("answers", "the pause", "pause", 4.5, state="paused"),
        Called("close", "at the end", "close", 5),
    ),
)


@pytest.mark.real
class TestReference(AdapterConformance):
    """The reference passes every check, through the class that authors derive from."""

    def adapter(self) -> BundledAdapter:
        return BundledAdapter()


def outcome(evidence: Evidence) -> dict[str, Finding]:
    """Findings by id."""
    return {finding.id: finding for finding in judge(evidence)}


def with_call(**changes: object) -> Evidence:
    """The good evidence, its pause changed."""
    calls = tuple(replace(call, **changes) if call.method == "pause" else call for call in GOOD.calls)  # type: ignore[arg-type]
    return replace(GOOD, calls=calls)


LINE = {"run_id": "r", "task_id": "t01", "attempt": 1, "pid": 1, "host": "h", "branch": "b", "worktree": "w"}
WRONG = [
    (replace(GOOD, shape=Shape("x", missing=("start", "claims"))), "is-adapter", "it has no start, claims"),
    (replace(GOOD, shape=Shape("x", blocking=("pause",))), "async", "not async: pause"),
    (replace(GOOD, shape=Shape("x", wrong=("it declares 'stop'",))), "capabilities", "it declares 'stop'"),
    (replace(GOOD, shape=Shape("x", hollow=("abort",))), "implements", "declares abort and does not implement it"),
    (replace(GOOD, idle=("the first start: 0 of 3 tasks",)), "starts", "0 of 3 tasks"),
    (with_call(kind="starts", method="start", timed_out=True), "starts", "start() did not return within 4.5 s"),
    (with_call(kind="starts-again", method="start", error="OSError: x"), "starts-again", "start() raised OSError: x"),
    (
        with_call(error="WrongAnswer: pause() returned str ('ok'), not an Ack"),
        "answers",
        "the pause: pause() returned str ('ok'), not an Ack",
    ),
    (with_call(error="ValueError: no"), "answers", "the pause: pause() raised ValueError: no"),
    (with_call(delivered=False), "delivered", "pause never called site.delivered()"),
    (with_call(untrue="it said 'paused' while"), "true-states", "the pause: it said 'paused' while"),
    (with_call(kind="twice", error="KeyError: 1"), "twice", "raised KeyError"),
    (with_call(kind="odd-orders", error="KeyError: 1"), "odd-orders", "raised KeyError"),
    (with_call(kind="in-a-hold", error="KeyError: 1"), "in-a-hold", "raised KeyError"),
    (with_call(kind="overlapping", error="KeyError: 1"), "overlapping", "raised KeyError"),
    (with_call(kind="coordinator-dies", error="KeyError: 1"), "coordinator-dies", "raised KeyError"),
    (with_call(kind="second-abort", changed=("started workers (t01)",)), "second-abort", "started workers (t01)"),
    (with_call(kind="after-abort", changed=("made worktrees (n01)",)), "after-abort", "made worktrees (n01)"),
    (with_call(method="claims", error="AssertionError: "), "claims", "claims() raised AssertionError"),
    (replace(GOOD, not_json=("the manifest of claims() cannot be",)), "claims", "the manifest of claims() cannot be"),
    (replace(GOOD, manifest=(LINE,)), "claims", "manifest lines lack started_at"),
    (with_call(timed_out=True), "bounded", "the pause: pause() did not return within 4.5 s"),
    (with_call(blocked_s=3.04), "awaits", "the pause: pause() blocked the event loop for 3.0 s"),
    (replace(GOOD, left=("it started sleep by itself",)), "leaves-nothing", "it started sleep by itself"),
    (replace(GOOD, printed="starting\nmore"), "no-stdout", "prints to standard output ('starting')"),
]


@pytest.mark.parametrize(("evidence", "name", "says"), WRONG, ids=[f"{i}-{one[1]}" for i, one in enumerate(WRONG)])
def test_a_mistake_is_told_in_its_own_check_and_in_words(evidence: Evidence, name: str, says: str) -> None:
    """Hazard: an author who only learns that something is wrong."""
    found = outcome(evidence)
    assert found[name].ok is False
    assert says in found[name].sentence


def test_good_evidence_accuses_nobody_and_every_check_has_a_wrong_twin() -> None:
    """Hazard: a check that fires always, or never."""
    assert [finding for finding in judge(GOOD) if finding.ok is False] == []
    assert {name for _, name, _ in WRONG} | {"process"} == set(CHECKS)


def test_what_was_not_tried_is_said_and_not_passed() -> None:
    """Hazard: a control that does not exist counts as right."""
    shape = Shape("x", Capabilities(controls={"abort": "run"}))
    found = outcome(Evidence(shape, (Called("starts", "the first start", "start", 15),)))
    assert found["odd-orders"] == Finding("odd-orders", None, "not tried: it declares no pause, resume, redirect")
    idle = outcome(Evidence(Shape("x"), (Called("starts", "", "start", 15, error="OSError: x"),)))
    assert idle["answers"] == Finding("answers", None, "not tried: it did not start")


def test_shapes_of_wrong_adapters_are_told_without_a_fleet(tmp_path: Path) -> None:
    """Hazard: half a minute of fleets for an adapter that lacks a method."""
    assert shape_of(bad.NoAdapter()).blocking == ("start",)
    assert shape_of(bad.Hollow()).hollow == ("pause",)
    found = {finding.id: finding for finding in check(bad.NoAdapter, tmp_path)}
    assert found["is-adapter"].ok is False and found["async"].ok is False
    assert found["answers"] == Finding("answers", None, "not tried: it is no adapter yet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_a_careless_adapter_is_told_everything_at_once(tmp_path: Path) -> None:
    """Hazard: one mistake an evening."""
    try:
        found = {finding.id: finding for finding in check(bad.Careless, tmp_path)}
    finally:
        bad.Careless.clean_up()
    told = {
        "answers": "the resume: resume() returned str ('running'), not an Ack",
        "delivered": "pause never called site.delivered()",
        "true-states": "the pause: it said 'paused'",
        "second-abort": "the second abort: abort() raised RuntimeError: already aborted",
        "claims": "manifest lines lack branch",
        "leaves-nothing": "it started /bin/sleep 60 by itself",
        "no-stdout": "'starting'",
    }
    for name, says in told.items():
        assert found[name].ok is False
        assert says in found[name].sentence
    assert "cannot be written as JSON" in found["claims"].sentence
    assert "its coordinator is still alive" in found["leaves-nothing"].sentence
    follows = {"twice", "odd-orders", "after-abort"}  # from the resume that gives no Ack
    assert {name for name, finding in found.items() if finding.ok is False} - set(told) <= follows


@pytest.mark.real
def test_a_blocking_call_is_named_and_what_follows_is_not_accused(tmp_path: Path) -> None:
    """Hazard: a kit that hangs with the adapter, or blames ten innocent calls for one."""
    found = {finding.id: finding for finding in check(bad.Hangs, tmp_path, answer_within_s=1.0)}
    assert {name for name, finding in found.items() if finding.ok is False} == {"bounded", "awaits"}
    assert "the pause: pause() did not return within 1 s" in found["bounded"].sentence
    assert found["after-abort"].sentence == "not tried: a call before it never gave its thread back"


@pytest.mark.real
def test_an_adapter_that_ends_its_interpreter_is_told_where(tmp_path: Path) -> None:
    """Hazard: the kit dies with the adapter, without a word."""
    found = {finding.id: finding for finding in check_apart(f"{HERE}:Exits", tmp_path)}
    assert found["process"].ok is False
    assert "ended (status 7) in scene in-order" in found["process"].sentence
    assert "about to exit" in (tmp_path / "adapter.txt").read_text()


@pytest.mark.real
def test_an_adapter_that_never_comes_back_is_given_up(tmp_path: Path) -> None:
    """Hazard: `check-adapter` waits for ever."""
    started = time.monotonic()
    found = {finding.id: finding for finding in check_apart(f"{HERE}:Deaf", tmp_path, within_s=3.0)}
    assert "did not come back within 3 s" in found["process"].sentence
    assert time.monotonic() - started < 10


def test_a_bad_name_is_a_usage_problem(tmp_path: Path) -> None:
    """Hazard: a typing error that looks like a broken adapter."""
    with pytest.raises(UsageProblem, match="there is no 'Raise'"):
        check_apart(f"{HERE}:Raise", tmp_path)


@pytest.mark.parametrize(("name", "status"), [(f"{HERE}:NoAdapter", 1), (f"{HERE}:Raise", 2), ("nonsense", 2)])
def test_the_command_says_by_its_status_whose_fault_it_is(name: str, status: int, tmp_path: Path) -> None:
    """Hazard: CI that takes a typing error for a broken adapter, or a broken adapter for success."""
    command, env = [*STOPDRILL, "check-adapter", name], {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    if status == 1:
        assert "WRONG is-adapter        it has no capabilities, pause" in done.stdout
