"""V1 to V4: the subject's word against the truth, and what a drill can't vouch for."""

from typing import Any

from scoring.history import merge
from scoring.judge import judge
from scoring.rubric import Rubric
from tests.scoring.story import RUN, Story, finish, healthy, tripped, why


def test_v1_said_paused_while_a_call_ran() -> None:
    """t03's call ends at 85; the answer came at 70. The row itself is a pass."""
    card = healthy().move("control.ack", {"control": "pause"}, to=70).judge()
    assert tripped(card) == {"V1": "fail"}
    assert why(card, "V1").startswith('it said "paused" 10 s after the pause')


def test_v1_accepted_is_no_claim_and_the_tolerance_holds() -> None:
    """Hazard: "accepted" is read as "paused", or an answer 0.1 s before the last call's end as a lie."""
    story = healthy().move("control.ack", {"control": "pause"}, to=84.9)
    assert tripped(story.judge()) == {}
    story = healthy().move("control.ack", {"control": "pause"}, to=61)
    assert tripped(story.change("control.ack", {"control": "pause"}, state="accepted").judge()) == {}


def test_v1_worker_without_a_manifest_line() -> None:
    """The manifest, not the coordinator's memory, says who exists."""
    card = healthy().drop("claim.manifest", entry=lambda entry: entry["task_id"] == "t02").judge()
    assert tripped(card) == {"V1": "fail"}
    assert "no line for t02 (attempt 1, pid 202)" in why(card, "V1")


def test_v1_manifest_that_could_not_be_read_is_not_held_against_the_subject() -> None:
    """Hazard: the harness can't read the manifest and accuses the subject of unlisted workers."""
    story = healthy().drop("claim.manifest").at(-15, "driver", "observe.missing", what="manifest", why="none")
    assert tripped(story.judge()) == {"V3": "investigate"}


def test_v1_manifest_line_for_nobody() -> None:
    """Hazard: a line for a process that never was is believed, or another run's line is accused."""
    entry = {"run_id": RUN, "task_id": "t08", "attempt": 1, "pid": 999}
    assert tripped(healthy().at(50, "driver", "claim.manifest", entry=entry).judge()) == {"V1": "investigate"}
    assert tripped(healthy().at(50, "driver", "claim.manifest", entry={**entry, "run_id": "r2"}).judge()) == {}


def test_v1_usage_that_differs() -> None:
    """The provider counted 14,560 tokens; a third of that is a lie, 5 % and one call each are not."""
    assert tripped(healthy().change("claim.usage", {}, tokens=5000).judge()) == {"V1": "fail"}
    assert tripped(healthy().change("claim.usage", {}, tokens=14560 - 1500).judge()) == {}
    assert tripped(healthy().change("claim.usage", {}, tokens=None).judge()) == {}


def test_v2_names_every_task_that_was_not_at_work() -> None:
    """t03 had ended by itself before the abort; nothing was wrong but the drill proves less."""
    story = healthy().cut_off("t02", 330).move("proc.end", {"pid": 202}, to=331).drop("claim.usage")
    story.at(330.5, "worker/t02", "worker.end", task="t02", attempt=1, pid=202, reason="done")
    card = story.judge()
    assert tripped(card) == {
        "V2": "investigate",
        "orphans": "investigate",
        "tokens-after-abort": "investigate",
    }
    assert why(card, "V2") == "abort@4: not at work when the abort was issued: t02"


def test_v2_pause_between_all_calls() -> None:
    """Everybody alive, nothing in flight: quiet before anybody asked."""
    story = healthy(trees=False)
    for task, end in (("t01", 57), ("t02", 58), ("t03", 59)):
        story.end_call(task, 3, end)
    card = finish(story).judge()
    assert tripped(card) == {
        "V2": "investigate", "time-to-quiet": "investigate", "dirty-worktrees": "investigate",
    }  # fmt: skip


def test_v3_each_cause_is_one_finding() -> None:
    """Hazard: of three things that nobody observed only one is told."""
    story = healthy().at(-15, "driver", "observe.missing", what="netlink", why="not root")
    card = story.drop("worktree.state", when="abort@4:sweep").drop("refs.state", when="abort@4:sweep").judge()
    assert tripped(card) == {"V3": "investigate"}
    assert len(card.not_observed) == 3
    assert card.not_observed[0] == "netlink could not be observed: not root"
    assert card.checked["A6"] == "not observed"


def test_v3_keeper_without_a_cgroup_still_sees_as_a_subreaper() -> None:
    """Hazard: a keeper without a cgroup is called blind, or one that is no subreaper is trusted."""
    assert tripped(healthy().change("keeper.begin", {}, cgroup=None).judge()) == {}
    assert tripped(healthy().change("keeper.begin", {}, subreaper=False).judge()) == {"V3": "investigate"}


def test_v3_worker_whose_process_nobody_saw() -> None:
    """Its end is only its own word: it is not alive for ever, and the drill says what it missed."""
    story = healthy().drop("proc.start", pid=201).drop("proc.end", pid=201)
    assert tripped(story.judge()) == {"V3": "investigate"}


def test_v4_no_end() -> None:
    """Hazard: a drill whose driver died before its last line passes on what it had written."""
    card = healthy().drop("run.end").judge()
    assert (tripped(card), card.complete, card.verdict.value) == ({"V4": "investigate"}, False, "investigate")


def test_v4_ended_early_and_keeper_without_an_end() -> None:
    """Hazard: an interrupted run, or one whose keeper never signed off, counts as a whole one."""
    assert tripped(healthy().change("run.end", {}, reason="interrupted").judge()) == {"V4": "investigate"}
    assert tripped(healthy().drop("keeper.end").judge()) == {"V4": "investigate"}


def cut(source: str, *, keep: int) -> dict[str, bytes]:
    """The bundle's files, the last line of one source cut to some bytes."""
    files = healthy().sources()
    lines = files[source].splitlines(keepends=True)
    files[source] = b"".join(lines[:-1]) + lines[-1][:keep]
    return files


def judged(files: dict[str, bytes]) -> dict[str, str]:
    return tripped(judge(merge(files), Rubric()))


def test_v4_source_missing_or_shorter() -> None:
    """Hazard: nobody misses a file of the bundle that got lost, or that lost its last line."""
    files = healthy().sources()
    del files["canary"]
    assert judged(files)["V4"] == "investigate"
    assert judged(cut("provider", keep=0))["V4"] == "investigate"


def killed() -> Story:
    """t02's worker was killed at 346.5."""
    return healthy().drop("worker.end", task="t02").change("proc.end", {"pid": 202}, status=None, signal=9)


def test_v4_torn_line_of_a_killed_worker_is_expected() -> None:
    """SIGKILL tears the last line. What else the history says of that worker is unchanged."""
    story = killed()
    files = story.sources()
    name = story.source("worker/t02")
    files[name] = files[name][:-5]
    card = judge(merge(files), Rubric())
    assert [damage.last for damage in merge(files).damage] == [True]
    assert "V4" not in tripped(card)


def test_v4_torn_line_in_a_file_of_several_tools_is_expected() -> None:
    """Hazard: a tool killed in mid-line, amid other tools' lines, is taken for a damaged bundle."""
    files = killed().sources()
    name = healthy().source("tools/t02")
    lines = files[name].split(b"\n")
    files[name] = b"\n".join([*lines[:3], lines[3][:20], *lines[4:]])
    assert "V4" not in judged(files)


def test_v4_torn_line_of_a_worker_that_said_goodbye_is_damage() -> None:
    """It was not killed, so somebody cut its file."""
    assert judged(cut(healthy().source("worker/t02"), keep=20))["V4"] == "investigate"
    files = healthy().sources()
    name = healthy().source("worker/t02")
    files[name] = files[name].replace(b'"kind": "checkpoint"', b'"kind": "chec', 1)
    assert judged(files)["V4"] == "investigate"


def test_v4_event_without_sense_is_set_aside_and_said() -> None:
    """It has its keys, and nobody can read it: the check goes on, the verdict is no pass."""
    story = healthy().at(50, "worker/t01", "tool.issue", call=["x"], task=1, attempt=1, step=1, pid=1, child=0)
    card = story.judge()
    assert tripped(card) == {"V4": "investigate"}
    assert card.trouble == ()


def hostile(**claims: Any) -> Story:
    story = healthy()
    for kind, data in claims.items():
        story.at(350, "driver", f"claim.{kind}", **data)
    return story


def test_hostile_claims_break_no_check() -> None:
    """Whatever a subject says of itself, it can't make the harness fail instead of itself."""
    card = hostile(
        manifest={"entry": "x"}, killed={"entry": [1, 2]}, sweep={"alive": {"a": 1}, "dirty": None},
        usage={"tokens": "lots"}, state={"state": {"x": []}}, stalled={"task": ["t01"]},
        table={"n": "x", "tasks": [1], "written_t": "now"},
    ).judge()  # fmt: skip
    assert card.trouble == ()
    assert "broken" not in card.checked.values()


def test_keeper_that_died_early_accuses_nobody() -> None:
    """What it never saw end is not therefore alive: the drill is incomplete, and that is all."""
    story = healthy()
    story.lines = [line for line in story.lines if not (line.source == "keeper" and line.s > 250)]
    found = tripped(story.judge())
    assert found == {"orphans": "investigate", "V3": "investigate", "V4": "investigate"}


def test_call_of_a_worker_killed_after_the_keeper_s_death_is_not_never_quiet() -> None:
    """Hazard: a call whose end the dead keeper could not see counts as a fleet that ignored the pause."""
    story = healthy().cut_off("t03", 80)
    story.lines = [line for line in story.lines if not (line.source == "keeper" and line.s > 70)]
    card = story.judge()
    assert "fail" not in tripped(card).values()
    assert "the keeper's history ends" in why(card, "time-to-quiet")
