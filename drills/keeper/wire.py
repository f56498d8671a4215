"""JSON lines between the keeper and its driver, over stdin and stdout.

Never blocks: a driver that is stopped or stuck must not keep the keeper from watching. What the pipe does not
take is kept, up to a bound; beyond it the driver counts as dead.
"""

import fcntl
import json
import os

LINE_MAX = 4 << 20
BACKLOG_MAX = 64 << 20
PIPE_BYTES = 1 << 20  # an audit of a thousand processes in one write

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Wire:
    """The driver's end is gone when `closed` is true."""

    def __init__(self, source: int = 0, sink: int = 1) -> None:
        self.source, self.sink = source, sink
        self.closed = False
        self._in = bytearray()
        self._out = bytearray()
        try:
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # no pipe, or not permitted: a large answer then takes several turns
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    def receive(self) -> list[bytes]:
        """The complete lines that have come; empty and `closed` at the end of the file."""
        try:
            data = os.read(self.source, 1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        self._in += data
        *lines, rest = bytes(self._in).split(b"\n")
        self._in = bytearray(rest)
        self.closed = self.closed or len(rest) > LINE_MAX
        return lines

    def send(self, message: dict[str, object]) -> None:
        """Queue one message and write what the pipe takes."""
        self.send_raw(_encode(message).encode())

    def send_raw(self, line: bytes) -> None:
        """As `send`, for a message that is JSON already."""
        self._out += line + b"\n"
        self.flush()
        self.closed = self.closed or len(self._out) > BACKLOG_MAX

    def flush(self) -> None:
        """Write what the pipe takes."""
        try:
            while self._out:
                del self._out[: os.write(self.sink, self._out)]
        except BlockingIOError:
            return
        except OSError:
            self.closed = True
            self._out.clear()

    @property
    def backlog(self) -> bool:
        """Whether something waits for the pipe."""
        return bool(self._out)
