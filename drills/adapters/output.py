"""What the subject's processes print: searched for a line, quoted in a sentence, and kept from filling the disk.

Output goes straight into files, so that a slow reader can never hold the subject up. A file that outgrows `BYTES_MAX`
is cut back to its beginning while the subject goes on; a flood is therefore searched in part only, which is the price
for a subject that can't be ended by its own chatter.
"""

import asyncio
import os
import re
from collections.abc import Iterable
from pathlib import Path

BYTES_MAX = 16 << 20
"""A file may be longer than this for as long as `LOOK_EVERY_S` takes."""
BYTES_KEPT = 4 << 20
LOOK_EVERY_S = 0.02
_SEARCHED_MAX = 256 << 10
_CUT = b"\n[stopdrill: what came after this was too much to keep, and was thrown away]\n"


class Output:
    """What is added to a file from now on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = self._begin = _size(path)
        self._rest = b""

    def shows(self, pattern: str) -> bool:
        """Whether a line matches that is new since the last look; the last line need not be finished."""
        size = _size(self.path)
        if size <= self._at:
            self._at = size  # it was cut back
            return False
        start = max(self._at, size - _SEARCHED_MAX)
        rest = self._rest if start == self._at else b""
        lines = (rest + _read(self.path, start, size - start)).split(b"\n")
        self._at, self._rest = size, lines[-1][-4096:]
        return any(re.search(pattern, line.rstrip(b"\r").decode("utf-8", "replace")) for line in lines)

    def text(self) -> str:
        """All that was added, of a flood the end."""
        size = _size(self.path)
        start = max(min(self._begin, size), size - BYTES_MAX)
        return _read(self.path, start, size - start).decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line that is not empty, shortened; for a sentence."""
        size = _size(self.path)
        start = max(min(self._begin, size), size - 4096)
        lines = _read(self.path, start, size - start).decode("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, start: int, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(count)
    except OSError:
        return b""


def cut_back(paths: Iterable[Path]) -> None:
    """Cut each file that is too long back to its beginning; its writer, who appends, goes on behind that."""
    for path in paths:
        if _size(path) > BYTES_MAX:
            os.truncate(path, BYTES_KEPT)
            with path.open("ab") as file:
                file.write(_CUT)


async def keep_bounded(paths: Iterable[Path]) -> None:
    """Cut back for ever, new paths of the collection included; the caller cancels it."""
    while True:
        cut_back(tuple(paths))
        await asyncio.sleep(LOOK_EVERY_S)
