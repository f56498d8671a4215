"""The control directory's post office: operators send requests, the coordinator answers each of them once.

    requests/<seq>-<verb>.json   {"verb", "seq", "args"}       written by an operator
    replies/<seq>-<verb>.json    {"ok", "state", "t", …}       written by the coordinator
    malformed/                   requests that nobody can read, moved aside once answered with an error

Several operators may write at once: `seq` comes from a counter under a lock. A request without a reply is
still open, so a coordinator that was killed in the middle of one finds it again when it is restarted:
delivery is at least once, and every verb has to bear that. Files, not a socket, because files outlive a
coordinator and an operator's terminal.

Deliberately not here: what a verb means, and in which order requests are carried out.
"""

import asyncio
import fcntl
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.coordinators.files import read_object, write_json

POLL_S = 0.01
LOCK_WITHIN_S = 5.0

_NAME = re.compile(r"(\d+)-([a-z]+)\.json\Z")


class NoReply(Exception):
    """The coordinator did not answer within the bound."""


@dataclass(frozen=True)
class Request:
    """One request as the coordinator receives it; `name` is the file name that its reply will bear."""

    seq: int
    verb: str
    args: dict[str, Any] = field(default_factory=dict)
    name: str = ""


class Mailbox:
    """Both sides of one control directory. Creates the folders that it needs. Raises OSError."""

    def __init__(self, control: str, poll_s: float = POLL_S) -> None:
        self.control = control
        self.poll_s = poll_s
        self._requests = os.path.join(control, "requests")
        self._replies = os.path.join(control, "replies")
        self._malformed = os.path.join(control, "malformed")
        for folder in (self._requests, self._replies, self._malformed):
            os.makedirs(folder, exist_ok=True)

    # The operator's side.

    def send(self, verb: str, args: Mapping[str, Any] | None = None) -> int:
        """Put a request into the box and return its number, to ask for the reply with."""
        if not re.fullmatch("[a-z]+", verb):
            raise ValueError(f"a verb is made of small letters: {verb!r}")
        seq = self._next_seq()
        write_json(
            os.path.join(self._requests, f"{seq}-{verb}.json"),
            {"verb": verb, "seq": seq, "args": dict(args or {})},
        )
        return seq

    def look(self, seq: int) -> dict[str, Any] | None:
        """The reply to request `seq`, or None while there is none."""
        for name in os.listdir(self._replies):
            if name.startswith(f"{seq}-"):
                return read_object(os.path.join(self._replies, name))
        return None

    async def reply(self, seq: int, within_s: float) -> dict[str, Any]:
        """Wait for the reply to request `seq`. Raises NoReply after `within_s` (real seconds)."""
        deadline = time.monotonic() + within_s
        while (found := self.look(seq)) is None:
            if time.monotonic() >= deadline:
                raise NoReply(f"request {seq} was not answered within {within_s:g} s; looked in {self._replies}")
            await asyncio.sleep(self.poll_s)
        return found

    def _next_seq(self) -> int:
        fd = os.open(os.path.join(self.control, "seq"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(fd, self.control)
            seq = int(os.pread(fd, 32, 0) or b"0") + 1
            os.pwrite(fd, str(seq).encode(), 0)
        finally:
            os.close(fd)
        return seq

    # The coordinator's side.

    async def requests(self) -> AsyncIterator[Request]:
        """Every open request once, lowest number first, then new ones as they arrive; never ends."""
        seen: set[str] = set()
        while True:
            for name in self._open(seen):
                seen.add(name)
                request = self._read(name)
                if request is not None:
                    yield request
            await asyncio.sleep(self.poll_s)

    def answer(self, request: Request, reply: Mapping[str, Any]) -> None:
        """Write the reply to `request`, stamped with CLOCK_MONOTONIC nanoseconds in `t`."""
        self._write_reply(request.name or f"{request.seq}-{request.verb}.json", reply)

    def _open(self, seen: set[str]) -> list[str]:
        names = [n for n in os.listdir(self._requests) if not n.startswith(".") and n not in seen]
        if not names:
            return []
        answered = set(os.listdir(self._replies))
        seen.update(n for n in names if n in answered)
        return sorted((n for n in names if n not in answered), key=_by_number)

    def _read(self, name: str) -> Request | None:
        """The request in file `name`; one that cannot be read is answered, moved aside, and None."""
        parts = _NAME.match(name)
        try:
            body = read_object(os.path.join(self._requests, name))
            if body is None:
                return None
            if parts is None:
                raise ValueError("the file name is not <seq>-<verb>.json")
            seq, verb, args = int(parts[1]), parts[2], body.get("args", {})
            if body.get("verb") != verb or body.get("seq") != seq:
                raise ValueError("verb and seq inside differ from the file's name")
            if not isinstance(args, dict):
                raise ValueError(f"args is a {type(args).__name__}, expected an object")
        except (ValueError, OSError) as why:
            self._write_reply(name, {"ok": False, "state": "unknown", "error": f"malformed request: {why}"})
            os.replace(os.path.join(self._requests, name), os.path.join(self._malformed, name))
            return None
        return Request(seq, verb, args, name)

    def _write_reply(self, name: str, reply: Mapping[str, Any]) -> None:
        write_json(os.path.join(self._replies, name), {"t": time.monotonic_ns(), **reply})


def _by_number(name: str) -> tuple[int, str]:
    parts = _NAME.match(name)
    return (int(parts[1]), name) if parts else (0, name)


def _lock(fd: int, where: str) -> None:
    """Take the counter's lock, bounded: its holder may have been frozen, in a drill of all things."""
    deadline = time.monotonic() + LOCK_WITHIN_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"the counter {where}/seq stayed locked for {LOCK_WITHIN_S:g} s") from None
            time.sleep(POLL_S / 10)
