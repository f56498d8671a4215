"""What must hold for any history: order, determinism, cuts, shifts, speeds, tolerance, garbage."""

import json
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoring.history import Event, from_events, merge
from scoring.judge import judge
from scoring.rubric import Rubric
from scoring.verdict import Verdict
from scoring.vocabulary import KINDS
from tests.scoring.story import Story, healthy, tripped

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WHOLE = healthy().sources()
BYTES = b"".join(WHOLE[name] for name in sorted(WHOLE))


def variants() -> list[Story]:
    """A clean drill and three dirty ones."""
    asked = healthy().at(341, "driver", "control.question", control="abort", n=4, text="?")
    frozen = healthy().at(61, "keeper", "proc.state", proc=201, pid=201, state="T")
    slow = healthy().end_call("t03", 3, 125).move("control.ack", {"control": "pause"}, to=130)
    return [healthy(), asked, frozen, slow]


@FEW
@given(st.randoms(use_true_random=False))
def test_merge_does_not_depend_on_the_order_of_files(random: random.Random) -> None:
    """Hazard: a verdict depends on the order in which a folder lists its files."""
    names = list(WHOLE)
    random.shuffle(names)
    assert merge({name: WHOLE[name] for name in names}) == merge(WHOLE)


def test_judging_again_gives_the_same_bytes() -> None:
    """Hazard: the same bundle gets another scorecard next time, and no verdict can be checked."""
    for story in variants():
        assert story.judge().dumps() == judge(story.history(), Rubric()).dumps()


@FEW
@given(st.integers(0, len(merge(WHOLE).events) - 1))
def test_history_cut_at_any_event_never_passes(keep: int) -> None:
    """The machine died there: whatever stood before is no proof."""
    card = judge(from_events(merge(WHOLE).events[:keep]), Rubric())
    assert card.verdict is not Verdict.PASS
    assert card.trouble == ()


@FEW
@given(st.sampled_from(sorted(WHOLE)), st.floats(0, 1))
def test_source_cut_at_any_byte_never_passes(name: str, share: float) -> None:
    """A file is shorter than it was, wherever the cut is, a torn line included."""
    cut = WHOLE[name][: int(share * (len(WHOLE[name]) - 2))]
    card = judge(merge({**WHOLE, name: cut}), Rubric())
    assert card.verdict is not Verdict.PASS
    assert card.trouble == ()


def test_any_missing_source_never_passes() -> None:
    """Hazard: a file that is lost from the bundle takes its accusation along, and the drill passes."""
    for name in WHOLE:
        card = judge(merge({other: text for other, text in WHOLE.items() if other != name}), Rubric())
        assert card.verdict is Verdict.INVESTIGATE or name == "provider" or "fail" in tripped(card).values(), name
        assert (card.verdict is not Verdict.PASS, card.complete, card.trouble) == (True, False, ()), name


@FEW
@given(st.integers(-(10**9), 10**15))
def test_shifting_every_stamp_changes_nothing(by: int) -> None:
    """Hazard: a verdict depends on how long the machine had been up."""
    for story in variants()[:2]:
        events = [_shifted(event, by) for event in story.history().events]
        assert (
            judge(from_events(events), Rubric()).dumps() == judge(from_events(story.history().events), Rubric()).dumps()
        )


def _shifted(event: Event, by: int) -> Event:
    data = dict(event.data)
    if "written_t" in data:
        data["written_t"] += by
    return event._replace(t=event.t + by, data=data)


@FEW
@given(st.sampled_from([1.0, 10.0, 20.0, 80.0, 200.0]))
def test_speed_changes_no_verdict_and_no_drill_second(speed: float) -> None:
    """The drill is written in its own seconds: at another speed it says the same."""
    fast, slow = healthy(speed).judge(), healthy().judge()
    assert tripped(fast) == tripped(slow) == {}
    assert [row.value for row in fast.rows] == [row.value for row in slow.rows]
    assert fast.work_lost_s == slow.work_lost_s


@FEW
@given(st.floats(60.0, 160.0), st.integers(0, 185_000), st.integers(0, 185_000))
def test_more_tolerance_never_worsens_a_verdict(ends: float, one: int, two: int) -> None:
    """As long as the row stays measurable: what a calm machine passes, a busy one must not accuse."""
    ranks = []
    for p99_us in sorted((one, two)):
        story = healthy().end_call("t03", 3, round(ends, 2)).change("canary", {}, p99_us=p99_us)
        story.change("control.ack", {"control": "pause"}, state="accepted")
        ranks.append({row.id: row.verdict.rank for row in story.judge().rows})
    assert all(ranks[1][id] <= ranks[0][id] for id in ranks[0])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _garbled(draw: Any, data: dict[str, Any]) -> dict[str, Any]:
    keys = draw(st.sets(st.sampled_from(sorted(data)), max_size=2)) if data else set()
    return {**data, **{key: draw(JSON) for key in keys}}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_garbled_values_never_raise_and_never_pass_unseen(data: st.DataObject) -> None:
    """Known kinds with their keys, and anything at all as values."""
    events = list(merge(WHOLE).events)
    for index in data.draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=4, unique=True)):
        event = events[index]
        events[index] = event._replace(data=_garbled(data.draw, dict(event.data)))
    card = judge(from_events(events), Rubric())
    assert json.loads(card.dumps())["schema"] == 1
    assert card.trouble == ()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-5, 10**12), st.sampled_from(["driver", "keeper", "worker-t01-1-2", "x"]),
                  st.sampled_from(sorted(KINDS)), st.dictionaries(st.text(max_size=6), JSON, max_size=3)),
        max_size=25,
    ),
    st.data(),
)  # fmt: skip
def test_random_events_never_raise(raw: list[tuple[int, str, str, dict[str, Any]]], data: st.DataObject) -> None:
    """Hazard: known events that make no sense together crash the judge, or pass."""
    events = []
    for line, (t, source, kind, extra) in enumerate(raw, 1):
        filled = {key: data.draw(JSON) for key in sorted(KINDS[kind].required)}
        events.append(Event(t, source, line, kind, {**extra, **filled}))
    card = judge(from_events(events), Rubric())
    assert card.verdict is not Verdict.PASS
    card.dumps()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["driver", "keeper", "worker-t01-1-2"]), st.binary(max_size=200)))
def test_random_bytes_never_raise(files: dict[str, bytes]) -> None:
    """Hazard: files of binary rubbish crash the judge, or pass."""
    assert judge(merge(files), Rubric()).verdict is not Verdict.PASS


@FEW
@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_flipped_byte_never_raises(where: int, value: int) -> None:
    """One byte of the bundle is another one: read, judged, written."""
    files, seen = dict(WHOLE), 0
    for name in sorted(files):
        if where < seen + len(files[name]):
            text = bytearray(files[name])
            text[where - seen] = value
            files[name] = bytes(text)
            break
        seen += len(files[name])
    judge(merge(files), Rubric()).dumps()
