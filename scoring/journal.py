"""Writing events: one JSON-lines file per source, one `write(2)` per event.

Why a file per source: a writer that is killed in the middle of a line leaves a fragment, and in a shared
file the fragment swallows the next writer's line. In a file of its own it can only cost the victim's last
event, and no lock is needed. Where one file must have several writers one after another (the tool calls of
one worker), `shared=True` frames each line with a line feed on both sides, so that a fragment stays alone.

Standard library only, and few modules of that: simulated workers import this. Not done here: merging,
validation against the vocabulary (see `scoring.history`), and fsync. A drill is about processes that die,
not about machines that lose power.
"""

import json
import os
import time
from typing import Any

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


class Journal:
    """Append-only event file of one source.

    `directory` is the bundle's `events` folder, `source` the file's name without `.jsonl`. Times are
    CLOCK_MONOTONIC nanoseconds, which on one machine are comparable across processes.
    Raises OSError when the disk is full or the folder is not writable: whoever observes must not go on blind.
    """

    def __init__(self, directory: str, source: str, *, shared: bool = False) -> None:
        self.source = source
        self.path = os.path.join(directory, source + ".jsonl")
        self._lead = "\n" if shared else ""
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, kind: str, /, t: int | None = None, **fields: Any) -> None:
        """Append one event. `t` is given when the instant was stamped earlier than now, at the act itself."""
        stamp = time.monotonic_ns() if t is None else t
        line = self._lead + _encode({"t": stamp, "kind": kind, **fields}) + "\n"
        data = line.encode("ascii")
        if os.write(self._fd, data) != len(data):
            raise OSError(28, "the event was cut short: no space left on the device", self.path)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
