"""Waiting for the acknowledgement of an action: yes, no, or nothing in time.

A yes is what the subject file says it is. A no is an answer too (`Refusal`): a status that was not expected, another
word in the JSON. Whatever is not yet there is waited for, and when the time is over `ActionFailed` says what was
missing. Whether the word is true is not asked here.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills.adapters.output import Output
from drills.adapters.subject_parts import Ack
from drills.adapters.web import Answer

_POLL_S = 0.01
_FILE_BYTES_MAX = 16 << 20
MISSING = object()
"""What `look` finds where there is nothing; None is a value."""


class ActionFailed(Exception):
    """An action that could not be carried out or was not acknowledged; the text is a sentence for the user."""


class Refusal(Exception):
    """The subject's answer was a no; `detail` says what came."""

    def __init__(self, **detail: Any) -> None:
        super().__init__(str(detail))
        self.detail = detail


@dataclass(frozen=True)
class Change:
    """Whether a file has been written since this was made."""

    path: Path
    before: tuple[int, ...] | None

    @classmethod
    def of(cls, path: Path) -> "Change":
        """From now on."""
        return cls(path, _signature(path))

    def happened(self) -> bool:
        """Compared by inode, size and times: a clock alone is too coarse to tell before from after."""
        now = _signature(self.path)
        return now is not None and now != self.before


def _signature(path: Path) -> tuple[int, ...] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


@dataclass
class Evidence:
    """What an action can be acknowledged by. `outputs`: that of the command, if there is one, and the coordinator's."""

    outputs: tuple[Output, ...]
    exit: "asyncio.Task[int | None] | None" = None
    answer: "asyncio.Task[Answer] | None" = None
    file: Change | None = None
    _shown: bool = field(default=False, repr=False)

    def shows(self, pattern: str) -> bool:
        """Whether one of the outputs has shown such a line."""
        self._shown = self._shown or any(output.shows(pattern) for output in self.outputs)
        return self._shown

    def said(self) -> str:
        """The answer's text, or the command's output."""
        if self.answer is not None:
            return self.answer.result().body
        return self.outputs[0].text()

    def drop(self) -> None:
        """Stop waiting."""
        for task in (self.exit, self.answer):
            if task is not None:
                task.cancel()


async def acknowledged(ack: Ack | None, evidence: Evidence, within_s: float) -> None:
    """Return when there is a yes. Raises Refusal, and TimeoutError with what was still missing."""
    deadline = time.monotonic() + within_s
    try:
        while missing := _missing(ack, evidence):
            if time.monotonic() >= deadline:
                raise TimeoutError(missing)
            running = [task for task in (evidence.exit, evidence.answer) if task is not None and not task.done()]
            if running:
                await asyncio.wait(running, timeout=_POLL_S)
            else:
                await asyncio.sleep(_POLL_S)
    finally:
        evidence.drop()


def _missing(ack: Ack | None, evidence: Evidence) -> str:
    """What is still waited for, empty when nothing is. Raises Refusal."""
    json_of_answer = ack is not None and ack.json_ is not None and ack.file is None
    ends = ack is None or ack.exit is not None or json_of_answer
    return (
        (_exit(ack, evidence.exit, ends, evidence.outputs[0]) if evidence.exit else "")
        or (_status(ack, evidence.answer) if evidence.answer else "")
        or (_line(ack.stdout, evidence) if ack and ack.stdout else "")
        or (_file(ack, evidence.file) if ack and evidence.file else "")
        or (_json(ack, evidence) if ack and json_of_answer else "")
    )


def _exit(ack: Ack | None, ending: "asyncio.Task[int | None]", needed: bool, output: Output) -> str:
    """A command that fails says no, whatever else was asked for."""
    if not ending.done():
        return "its exit" if needed else ""
    status = ending.result()
    expected = ack.exit if ack and ack.exit else (0,)
    if status is None:
        return "its exit" if needed else ""
    if status not in expected:
        raise Refusal(exit=status, expected=list(expected), output=output.last_line())
    return ""


def _status(ack: Ack | None, answering: "asyncio.Task[Answer]") -> str:
    if not answering.done():
        return "an answer"
    answer = answering.result()
    good = answer.status in ack.status if ack and ack.status else 200 <= answer.status < 300
    if not good:
        raise Refusal(status=answer.status, expected=list(ack.status) if ack and ack.status else "2xx",
                      body=answer.body[:300])  # fmt: skip
    return ""


def _line(pattern: str, evidence: Evidence) -> str:
    return "" if evidence.shows(pattern) else f"a line that matches {pattern!r}"


def _file(ack: Ack, change: Change) -> str:
    if not change.happened():
        return f"{change.path} to be written"
    if ack.json_ is None:
        return ""
    # Another word in a file is no refusal: it may be the one before the last.
    return "" if look(read_json(change.path), ack.json_) == ack.equals else (
        f"{ack.json_} = {ack.equals!r} in {change.path}"
    )  # fmt: skip


def _json(ack: Ack, evidence: Evidence) -> str:
    assert ack.json_ is not None
    text = evidence.said()
    found = look(parse_json(text), ack.json_)
    if found != ack.equals:
        came: Any = "nothing" if found is MISSING else found
        raise Refusal(json=ack.json_, came=came, expected=ack.equals, answer=text[-300:])
    return ""


def parse_json(text: str) -> Any:
    """The JSON in a command's output or an answer: all of it, or its last line that is an object; None without."""
    for part in (text, *reversed(text.splitlines()[-1000:])):
        value = _loads(part)
        if value is not None and (part is text or isinstance(value, Mapping)):
            return value
    return None


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_text(path: Path) -> str:
    """The beginning of a file; empty when it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(_FILE_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


def read_json(path: Path) -> Any:
    """The JSON value of a whole file; None when there is none, or it is half written."""
    return _loads(read_text(path))


def look(value: Any, dotted: str) -> Any:
    """The value at a dotted path; numbers reach into lists. `MISSING` where there is none."""
    for name in dotted.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value
