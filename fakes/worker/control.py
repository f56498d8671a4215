"""The control directory as a worker sees it: one look at what it is told, and its own status file.

Both directions go by whole files and atomic renames, so that nobody ever reads half a message. Deciding what
follows from a look is the loop's business.
"""

import json
import os
import time

WORDS = ("RUN", "HOLD", "STOP")


class Message:
    """One line of the worker's message file. `kind`: delta, drop, hold, release, instruction, objective."""

    __slots__ = ("kind", "n", "text")

    def __init__(self, n: int, kind: str, text: str) -> None:
        self.n = n
        self.kind = kind
        self.text = text


class Look:
    """What one look saw: the run's word, and the messages that came since the last look."""

    __slots__ = ("messages", "word")

    def __init__(self, word: str, messages: tuple[Message, ...]) -> None:
        self.word = word
        self.messages = messages


class Control:
    """Reads `run` and `tasks/<task>.jsonl`, writes `status/<task>.json`. Each message is consumed once."""

    def __init__(self, directory: str, task: str) -> None:
        self.directory = directory
        self._run = os.path.join(directory, "run")
        self._mine = os.path.join(directory, "tasks", task + ".jsonl")
        self._status = os.path.join(directory, "status", task + ".json")
        self._draft = os.path.join(directory, "status", f".{task}.{os.getpid()}")
        self._word = "RUN"
        self._consumed = 0
        self._seen: tuple[int, int, int] | None = None
        os.makedirs(os.path.join(directory, "status"), exist_ok=True)

    def look(self) -> Look:
        """One look. A word that isn't one of the three changes nothing: the last one stands."""
        try:
            with open(self._run, encoding="ascii", errors="replace") as file:
                words = file.read(64).split()
        except FileNotFoundError:
            words = []
        if words and words[0] in WORDS:
            self._word = words[0]
        return Look(self._word, self._new_messages())

    def _new_messages(self) -> tuple[Message, ...]:
        try:
            about = os.stat(self._mine)
        except FileNotFoundError:
            return ()
        identity = (about.st_ino, about.st_mtime_ns, about.st_size)
        if identity == self._seen:  # a held worker looks a hundred times a second
            return ()
        with open(self._mine, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
        self._seen = identity
        found = [message for line in lines if (message := _message(line)) and message.n > self._consumed]
        found.sort(key=lambda message: message.n)
        if found:
            self._consumed = found[-1].n
        return tuple(found)

    def write_status(self, state: str, step: int, reason: str, attempt: int) -> None:
        """Tell the coordinator where this worker stands. `step` is the last one that it finished."""
        text = json.dumps(
            {
                "attempt": attempt,
                "pid": os.getpid(),
                "state": state,
                "step": step,
                "reason": reason,
                "t": time.monotonic_ns(),
            }
        )
        with open(self._draft, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(self._draft, self._status)


def _message(line: str) -> Message | None:
    """None for a line that isn't a message: the file is another program's, one bad line must not end us."""
    try:
        data = json.loads(line)
        return Message(int(data["n"]), str(data["kind"]), str(data.get("text", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
