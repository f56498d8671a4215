"""The prompt of one call: from the command line, a file, or standard input; both where a pipe is there, as CLIs do.

Waiting for standard input is bounded: a host that keeps the pipe open and says nothing must not stop a drill.
Not done here: hosts that talk to the CLI over its standard input (`--input-format stream-json`); what they say
first is taken as the prompt as it stands.
"""

import posix
import stat
import time

from fakes.shim.arguments import Arguments
from fakes.shim.identity import read

ALONE_S = 10.0
"""How long standard input may be silent when the prompt is to come from there."""
BESIDE_S = 1.0
"""How long when there is a prompt already."""
ALL_S = 30.0
BYTES_MAX = 1024 * 1024


def read_prompt(given: Arguments) -> str:
    """The whole prompt; empty when there is none."""
    if given.prompt_file:
        return read(given.prompt_file)
    if given.prompt is None:
        return "" if posix.isatty(0) else _standard_input(ALONE_S).strip()
    if stat.S_ISFIFO(posix.fstat(0).st_mode) and (more := _standard_input(BESIDE_S).strip()):
        return f"{given.prompt}\n\n{more}"
    return given.prompt


def _standard_input(silence_s: float) -> str:
    import select  # only where somebody is listened to

    poll, data = select.poll(), b""
    poll.register(0, select.POLLIN)
    deadline = time.monotonic() + ALL_S
    while len(data) < BYTES_MAX and time.monotonic() < deadline and poll.poll(silence_s * 1000):
        try:
            more = posix.read(0, 65536)
        except OSError:  # a folder, or a terminal that is gone
            break
        if not more:
            break
        data += more
    return data.decode("utf-8", "replace")
