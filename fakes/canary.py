"""The scheduler canary: how late does a short sleep come back on this machine, right now.

A drill judges milliseconds, so it must know what the machine itself adds. This program sleeps 10 ms over and
over and every half second writes a `canary` event with the lateness of the sleeps in that window
(microseconds). Scoring takes its tolerance from it, so that a busy machine accuses nobody.

Started by the keeper as a service: `python -I -S -E fakes/canary.py --events DIR`. Ends on SIGTERM.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

SLEEP_NS = 10_000_000
WINDOW_NS = 500_000_000


def summary(window_ns: int, late_ns: Sequence[int]) -> dict[str, Any]:
    """One window's fields: `window_s`, `n`, and p50, p99, max of the lateness in whole microseconds."""
    ordered = sorted(late_ns)
    last = len(ordered) - 1
    return {
        "window_s": round(window_ns / 1e9, 6),
        "n": len(ordered),
        "p50_us": ordered[last // 2] // 1000,
        # The nearest rank: of fifty sleeps, the worst but one would flatter the machine.
        "p99_us": ordered[-(-last * 99 // 100)] // 1000,
        "max_us": ordered[last] // 1000,
    }


def watch(events: str) -> None:
    """Sleep and write until SIGTERM. Raises OSError when the events cannot be written."""
    from scoring.journal import Journal

    asked_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked_to_end.append(number))
    journal = Journal(events, "canary")
    late: list[int] = []
    begin = before = time.monotonic_ns()
    while not asked_to_end:
        time.sleep(SLEEP_NS / 1e9)
        now = time.monotonic_ns()
        late.append(max(0, now - before - SLEEP_NS))
        if now - begin >= WINDOW_NS:
            journal.write("canary", **summary(now - begin, late))
            late.clear()
            begin = now
        before = time.monotonic_ns()  # after the write, whose cost is not the scheduler's
    journal.close()


def main(argv: Sequence[str]) -> int:
    """`--events DIR`; the exit status."""
    if len(argv) != 2 or argv[0] != "--events":
        sys.stderr.write("usage: canary.py --events DIR\n")
        return 2
    watch(argv[1])
    return 0


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main(sys.argv[1:]))
