"""A program of ours in a process of its own, talked to in JSON lines over its standard input and output.

What runs there is code of an adapter's author, so nothing of it is trusted: what it prints goes to a log and never into
the protocol, every wait for it is bounded, and it is ended with TERM, then KILL, through its own handle. It is the
driver's child and no process of the run. If the driver is killed the kernel kills it too.

Not done here: what the lines mean (`remote`, `remote_host`).
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

from drills.keeper import pidfd

_GRACE_S = 0.5
_KILL_S = 2.0


def launch(module: str, *words: str, log: Path) -> "subprocess.Popen[bytes]":
    """Start `python -m module words`, both pipes open, its stderr in `log`; in a session of its own."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,  # a Ctrl-C is the driver's to handle
        )


def hello(**fields: Any) -> bytes:
    """The first line for such a program: what it may import, which is what the driver may, and `fields`."""
    path = [str(Path(entry).absolute()) for entry in sys.path]
    return json.dumps({"path": path, **fields}).encode() + b"\n"


def end(process: "subprocess.Popen[bytes]") -> None:
    """End it whatever it is doing: closed pipes, TERM, KILL. Bounded; what it started in its session goes with it."""
    if process.returncode is not None:
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    # Through a pidfd and not Popen's own methods: those reap what has ended, and the pid is still needed below.
    handle = os.pidfd_open(process.pid)
    try:
        for number, within_s in ((0, _GRACE_S), (signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILL_S)):
            pidfd.send(handle, number)
            if _ended(handle, within_s):
                break
        # Until it has been waited for, its pid names no process group but its own: this can reach nobody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    finally:
        os.close(handle)
    process.poll()


def _ended(handle: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def take_stdio() -> tuple[BinaryIO, BinaryIO, dict[str, Any]]:
    """In the program itself: the protocol's input and output, and the first line. Standard output is the log then.

    The protocol moves to descriptors of its own, which children do not inherit, before any foreign code is imported.
    """
    pidfd.die_with_parent()
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    first = source.readline()
    said: dict[str, Any] = json.loads(first) if first else sys.exit("nobody said what to run")
    sys.path[:] = said.pop("path")
    return source, sink, said
