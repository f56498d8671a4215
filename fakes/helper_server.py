"""A helper that a worker starts beside itself: a quiet dev server, or an stdio tool server that will not go.

    python -I -S -E fakes/helper_server.py --name NAME [--stdio]

With `--stdio` it stands for a tool server over pipes that ignores the end of its input and every polite
signal: the ghost that keeps a worker's credentials after the worker is gone. Without, any signal ends it; it
is only well hidden. It spends no tokens, makes no tool calls, and ends by itself after two minutes, so that a
leak can't hurt the machine.
"""

import os
import select
import signal
import sys
import time

LIFE_S = 120.0


def main(arguments: list[str]) -> int:
    """Live until killed, or for two minutes."""
    stdio = "--stdio" in arguments
    if stdio:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
    deadline = time.monotonic() + LIFE_S
    listening = stdio
    while (left_s := deadline - time.monotonic()) > 0:
        if listening and select.select([0], [], [], left_s)[0]:
            listening = bool(os.read(0, 4096))  # an end of input is not the end of this server
        elif not listening:
            time.sleep(left_s)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
