"""The live view follows the event files: torn tails, late files and killed workers included."""

from pathlib import Path

from drills.observers.tail import Tail
from scoring.journal import Journal


def test_the_fleet_is_at_work_when_every_task_has_made_a_call(tmp_path: Path) -> None:
    """Hazard: the clock starts while half of the fleet is still being spawned."""
    tail = Tail(tmp_path)
    journals = {}
    for task in ("t01", "t02"):
        journals[task] = Journal(str(tmp_path), f"worker-{task}-1-{task[-1]}")
        journals[task].write("worker.begin", task=task, attempt=1, pid=int(task[-1]), step=1)
    issue = {"attempt": 1, "step": 1, "child": False}
    journals["t01"].write("tool.issue", call="t01.1/1", task="t01", pid=1, **issue)
    assert tail.poll() == 3
    assert not tail.fleet.at_work(("t01", "t02"))
    journals["t02"].write("tool.issue", call="t02.1/1", task="t02", pid=2, **issue)
    tail.poll()
    assert tail.fleet.at_work(("t01", "t02")) and len(tail.fleet.in_flight) == 2
    Journal(str(tmp_path), "tools-t01-1-1").write("tool.end", call="t01.1/1", pid=1)
    tail.poll()
    assert list(tail.fleet.in_flight) == ["t02.1/1"]


def test_a_half_written_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """Hazard: an event lost because the reader came in the middle of its write."""
    tail = Tail(tmp_path)
    file = tmp_path / "driver.jsonl"
    line = b'{"t":1,"kind":"control.issue","control":"pause","n":1,"scope":"run"}\n'
    file.write_bytes(line[:20])
    assert tail.poll() == 0
    with file.open("ab") as out:
        out.write(line[20:] + b"torn{\n" + b"\n")
    assert tail.poll() == 1
    assert list(tail.fleet.news) == ["pause issued"]


def test_a_killed_worker_has_nothing_in_flight(tmp_path: Path) -> None:
    """Hazard: the call of a dead worker keeps the observer waiting for quiet until the hold is over."""
    tail = Tail(tmp_path)
    worker = Journal(str(tmp_path), "worker-t01-1-5")
    worker.write("worker.begin", task="t01", attempt=1, pid=5, step=1)
    worker.write("tool.issue", call="t01.1/1", task="t01", attempt=1, step=1, pid=5, child=False)
    keeper = Journal(str(tmp_path), "keeper")
    keeper.write("proc.start", proc=3, pid=5, ppid=1, role="run", cmdline=["python"])
    keeper.write("proc.end", proc=3, pid=5, signal=9)
    tail.poll()
    assert (tail.fleet.workers["t01"].state, tail.fleet.in_flight, tail.fleet.processes) == ("gone", {}, {})
    tail.close()
