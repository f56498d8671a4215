"""Who lived from when to when, and what was in flight: recycled pids, late keepers, killed workers."""

from tests.scoring.story import Story, healthy


def begun(*, begin: float, last: float, processes: list[tuple[int, float, float | None]]) -> Story:
    """One worker with pid 201 that acts from `begin` to `last`; the keeper saw these processes with that
    pid.
    """
    story = Story()
    config = {"speed": 40, "L_s": 0.75}
    story.at(-20, "driver", "run.begin", run="r1", drill="d", subject="s", config=config)
    for proc, start, end in processes:
        story.process(proc, 201, start, end)
    story.at(begin, "worker/t01", "worker.begin", task="t01", attempt=1, pid=201, step=1)
    return story.at(last, "worker/t01", "boundary", task="t01", step=1, saw="RUN")


def found(story: Story) -> tuple[int | None, float | None]:
    timeline = story.timeline()
    worker = timeline.workers[0]
    begin = story.stamp(0)
    return worker.proc, None if worker.end is None else timeline.seconds(worker.end - begin)


def test_process_is_found_by_pid_and_time() -> None:
    """The pid belonged to somebody before and to somebody else after."""
    story = begun(begin=50, last=80, processes=[(1, 0, 40), (2, 49, 90), (3, 91, 200)])
    assert found(story) == (2, 90.0)


def test_keeper_that_sees_a_process_a_little_late() -> None:
    """The worker began to act 2 s (50 ms real) before the keeper's scan came round."""
    story = begun(begin=50, last=51, processes=[(1, 0, 40), (2, 53, 90)])
    assert found(story) == (2, 90.0)


def test_recycled_pid_is_not_taken_for_a_worker_that_was_never_seen() -> None:
    """Otherwise the worker would be held to have lived until the stranger ended."""
    story = begun(begin=50, last=60, processes=[(1, 0, 40), (2, 75, 90)])
    assert found(story) == (None, None)


def test_worker_nobody_saw_ends_with_its_own_word() -> None:
    """Hazard: a worker that the keeper missed lives for ever although it said goodbye."""
    story = begun(begin=50, last=60, processes=[])
    story.at(61, "worker/t01", "worker.end", task="t01", attempt=1, pid=201, reason="stop")
    assert found(story) == (None, 61.0)


def test_worker_in_the_coordinator_s_process_ends_with_its_own_word() -> None:
    """Thread-based workers share the coordinator's pid, and do not live as long as it does."""
    story = begun(begin=50, last=60, processes=[])
    story.process(1, 201, -10, 300, role="coordinator")
    story.at(61, "worker/t01", "worker.end", task="t01", attempt=1, pid=201, reason="stop")
    assert found(story) == (1, 61.0)


def call_of(story: Story) -> tuple[float, float | None, bool]:
    timeline = story.timeline()
    call, zero = timeline.calls[0], story.stamp(0)
    return (
        timeline.seconds(call.start - zero),
        None if call.end is None else timeline.seconds(call.end - zero),
        call.cut,
    )


def test_call_is_in_flight_from_the_earlier_stamp_to_the_tool_s_end() -> None:
    """Hazard: a call counts from the later of its start stamps, or until the worker hears of its end."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 52, 60)
    assert call_of(story) == (52.0, 60.0, False)
    assert call_of(story.move("tool.start", {"call": "t01.1/1"}, to=51)) == (51.0, 60.0, False)


def test_call_of_a_killed_worker_is_cut_where_its_process_ended() -> None:
    """Hazard: a killed worker's call, whose end nobody writes, is in flight for ever."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 82, None)
    assert call_of(story) == (82.0, 90.0, True)


def test_call_in_a_child_ends_with_the_child() -> None:
    """The worker was killed at 90; its tool lived until 120 and counts until then."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 82, None, tool_pid=555)
    story.process(2, 555, 82, 120)
    assert call_of(story) == (82.0, 120.0, True)


def test_call_in_a_child_nobody_saw_ends_with_its_worker() -> None:
    """Hazard: a call in a child that the keeper missed is in flight for ever."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 82, None, tool_pid=555)
    assert call_of(story) == (82.0, 90.0, True)


def test_call_that_returned_has_ended_though_the_tool_s_line_is_lost() -> None:
    """Hazard: a call that returned runs until its process ends because the tool's line was lost."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 52, 60)
    story.drop("tool.end")
    assert call_of(story) == (52.0, 60.1, False)


def test_call_that_nothing_ends_is_in_flight_for_ever() -> None:
    """Hazard: a call whose end is unknown is ended by a guess, and a busy fleet looks quiet."""
    story = begun(begin=50, last=80, processes=[(1, 49, None)]).call("t01", 1, 52, None)
    assert call_of(story) == (52.0, None, False)


def test_two_workers_with_the_same_call_ids_keep_their_own_calls() -> None:
    """Both say attempt 1: only the files tell them apart."""
    story = begun(begin=50, last=80, processes=[(1, 49, 90)]).call("t01", 1, 52, 60)
    story.at(55, "worker-t01-1-999", "worker.begin", task="t01", attempt=1, pid=999, step=1)
    story.at(
        56,
        "worker-t01-1-999",
        "tool.issue",
        call="t01.1/1",
        task="t01",
        attempt=1,
        step=1,
        pid=999,
        child=False,
    )
    story.at(70, "tools-t01-1-999", "tool.start", call="t01.1/1", pid=999)
    story.at(75, "tools-t01-1-999", "tool.end", call="t01.1/1", pid=999)
    timeline = story.timeline()
    ends = [timeline.seconds((call.end or 0) - story.stamp(0)) for call in timeline.calls]
    assert ends == [60.0, 75.0]


def test_drill_clock_starts_when_the_fleet_is_at_work() -> None:
    """Hazard: drill seconds count from the launch, and each told time is off by the start-up."""
    story = healthy()
    timeline = story.timeline()
    assert timeline.clock(story.stamp(60)) == 60.0
    assert [control.label for control in timeline.controls] == [
        "pause@1",
        "resume@2",
        "redirect@3",
        "abort@4",
    ]
