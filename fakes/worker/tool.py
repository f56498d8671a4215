"""The tool call itself: an edit in five visible parts, or a test that changes nothing.

An edit truncates its file, then writes a fifth of the new text at each fifth of its duration, so that whoever
kills a call in the middle leaves half a file behind, as real tools do. Deadlines are absolute, counted from
the instant the call was issued: a slow start of the child doesn't lengthen the call.

The text is bytes all the way, because a user's files need not be UTF-8.
"""

import os
import re
import time
from itertools import pairwise

from fakes.worker.plan import Step
from scoring.journal import Journal

PARTS = 5
_PIN = re.compile(rb"^([A-Za-z0-9._-]+==)\d\S*", re.MULTILINE)
_END = re.compile(rb"# stopdrill \S+ \d+ end\n?\Z")


def end_line(task: str, step: int) -> bytes:
    """The last line of a file that was written to its end."""
    return f"# stopdrill {task} {step} end\n".encode()


def edited(text: bytes, task: str, step: int, target: str) -> bytes:
    """The text after step `step`: one pinned version moved to the target, and the end line renewed."""
    pins = list(_PIN.finditer(text))
    if pins:
        pin = pins[step % len(pins)]
        text = text[: pin.end(1)] + target.encode() + text[pin.end() :]
    body = _END.sub(b"", text)
    if body and not body.endswith(b"\n"):
        body += b"\n"
    return body + end_line(task, step)


def parts(text: bytes) -> list[bytes]:
    """Five parts of about the same number of lines; the end line is always in the last one."""
    lines = text.splitlines(keepends=True)
    cuts = [len(lines) * part // PARTS for part in range(PARTS)] + [len(lines)]
    cuts[PARTS - 1] = min(cuts[PARTS - 1], len(lines) - 1) if lines else 0
    return [b"".join(lines[start:end]) for start, end in pairwise(cuts)]


def perform(step: Step, call: str, issued_ns: int, text: bytes, journal: Journal) -> None:
    """Do the call in this process. `text` is what the file shall hold in the end; unused by a test.

    Raises OSError: disk full, no permission, or a symbolic link in the file's place, which is never written
    through.
    """
    journal.write("tool.start", call=call, pid=os.getpid())
    if step.tool == "edit":
        os.makedirs(os.path.dirname(step.path) or ".", exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(step.path, flags, 0o644)
        for number, part in enumerate(parts(text), 1):
            sleep_until(issued_ns + int(step.duration_s * 1e9) * number // PARTS)
            write_all(file, part, step.path)
        os.close(file)
    else:
        sleep_until(issued_ns + int(step.duration_s * 1e9))
    journal.write("tool.end", call=call, pid=os.getpid())


def sleep_until(instant_ns: int) -> None:
    """Sleep to an instant of CLOCK_MONOTONIC."""
    left_ns = instant_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)


def write_all(file: int, data: bytes, path: str) -> None:
    """Write everything, or raise OSError; a short write is how a full disk begins."""
    while data:
        written = os.write(file, data)
        if not written:
            raise OSError(28, "no space left on the device", path)
        data = data[written:]
