"""Which pids are new since the last look, without listing /proc.

The kernel hands out pids in a circle, and the last field of /proc/loadavg is the one that it gave last
(proc_loadavg(5)). So everything born since then has a pid in between, and a look costs what was born, not
what lives: 3 µs instead of 500 µs at a thousand processes. Not the whole truth, because root may choose a pid
(clone3(2), `set_tid`), so the watch lists /proc as well, once a second.
"""

import os

NEW_MAX = 2_000  # beyond that, listing /proc is cheaper


class LastPid:
    """Remembers the last pid of the previous look. No use where /proc/loadavg is an imitation (lxcfs)."""

    def __init__(self) -> None:
        genuine = os.stat("/proc/loadavg").st_dev == os.stat("/proc").st_dev
        self._fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC) if genuine else -1
        self._last = self._read()

    def new(self) -> range | None:
        """Pids given since the previous call, threads among them; None when only a list of /proc can tell."""
        before, self._last = self._last, self._read()
        count = self._last - before
        if self._last == 0 or not 0 <= count <= NEW_MAX:
            return None
        return range(before + 1, self._last + 1)

    def _read(self) -> int:
        return int(os.pread(self._fd, 200, 0).split()[-1]) if self._fd >= 0 else 0
