"""The writer: what it writes is what the history reads, and it does not go on blind."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.history import read_source
from scoring.journal import Journal

KEYS = st.text(min_size=1, max_size=8).filter(lambda key: key not in ("t", "kind", "self"))


def read(path: str) -> tuple[list[dict[str, object]], int]:
    events, damage, _ = read_source("x", Path(path).read_bytes())
    return [dict(event.data) for event in events], len(damage)


@given(st.dictionaries(KEYS, st.text() | st.integers() | st.none() | st.lists(st.text(), max_size=3), max_size=4))
def test_round_trip(fields: dict[str, object]) -> None:
    """Line feeds, quotes, half surrogates: a hostile string is one line and comes back as it was."""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"stopdrill-journal-{os.getpid()}"
    path.mkdir(exist_ok=True)
    journal = Journal(str(path), "x")
    try:
        journal.write("worker.other", t=7, **fields)
        assert read(journal.path) == ([fields], 0)
    finally:
        journal.close()
        Path(journal.path).unlink()
        path.rmdir()


def test_stamp_is_monotonic_now_unless_given(tmp_path: Path) -> None:
    """Hazard: an act that was stamped earlier gets the time of its writing."""
    journal = Journal(str(tmp_path), "x")
    journal.write("a")
    journal.write("b", t=5)
    events, _, _ = read_source("x", Path(journal.path).read_bytes())
    assert events[0].t > 5 and events[1].t == 5


def test_fragment_in_a_shared_file_keeps_the_neighbour_s_line(tmp_path: Path) -> None:
    """One tool was killed in mid-line; the next one's first line must not be swallowed."""
    first = Journal(str(tmp_path), "tools", shared=True)
    first.write("a", call="1")
    with Path(first.path).open("ab") as file:
        file.write(b'\n{"t":1,"kind":"b","ca')
    Journal(str(tmp_path), "tools", shared=True).write("c", call="2")
    assert read(first.path) == ([{"call": "1"}, {"call": "2"}], 1)


def test_fragment_in_a_file_of_one_s_own_costs_only_the_last_line(tmp_path: Path) -> None:
    """Hazard: a writer killed in mid-line costs more than the line that it was writing."""
    journal = Journal(str(tmp_path), "worker")
    journal.write("a", n=1)
    journal.write("a", n=2)
    path = Path(journal.path)
    path.write_bytes(path.read_bytes()[:-4])
    assert read(journal.path) == ([{"n": 1}], 1)


def test_full_disk_is_an_error(tmp_path: Path) -> None:
    """An observer that writes half a line has to say so, and must not go on as if it had seen nothing."""
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        Journal(str(tmp_path), "full").write("a")


def test_short_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard: a short write leaves half an event, and the observer goes on as if it were whole."""
    journal = Journal(str(tmp_path), "x")
    monkeypatch.setattr(os, "write", lambda fd, data: len(data) - 1)
    with pytest.raises(OSError, match="cut short"):
        journal.write("a")


def test_closing_twice_does_nothing(tmp_path: Path) -> None:
    """Hazard: a clean-up that closes once more fails with a bad file descriptor."""
    journal = Journal(str(tmp_path), "x")
    journal.write("provider.end", requests=0)
    journal.close()
    journal.close()
    assert (tmp_path / "x.jsonl").read_bytes().count(b"\n") == 1
