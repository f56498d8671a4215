"""Words for why-sentences: who, when, how many. Plain English, drill seconds, nothing stripped, long text cut.

Task names and command lines are the subject's text and stay data: they are shortened here, and escaped
where they are shown.
"""

from collections.abc import Iterable, Sequence

from scoring.records import Process, ToolCall, Worker

NAME_CHARS_MAX = 60
COMMAND_CHARS_MAX = 110
PATH_CHARS_MAX = 30


def cut(text: str, limit: int = NAME_CHARS_MAX) -> str:
    """`text`, or its beginning and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listing(items: Iterable[object], shown: int = 5) -> str:
    """`t01, t02 and t03`; beyond `shown`, `… and 4 more`."""
    names = [cut(str(item)) for item in items]
    if len(names) > shown:
        return ", ".join(names[:shown]) + f" and {len(names) - shown} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 process`, `3 processes`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def command(cmdline: Sequence[str]) -> str:
    """A command line between backquotes, as a person would write it; the evidence has it whole.

    Long paths are cut at their beginning and the whole in its middle, because what tells two workers apart is mostly
    at the end.
    """
    if not cmdline:
        return "an unknown command"
    program = cmdline[0].rpartition("/")[2] if cmdline[0].startswith("/") else cmdline[0]
    text = " ".join([program, *map(_short_path, cmdline[1:])])
    if len(text) > COMMAND_CHARS_MAX:
        half = COMMAND_CHARS_MAX // 2
        text = f"{text[:half]}…{text[-half:]}"
    return f"`{text}`"


def _short_path(word: str) -> str:
    if not word.startswith("/") or len(word) <= PATH_CHARS_MAX:
        return word
    return "…/" + "/".join(word.split("/")[-2:])


def worker_name(worker: Worker) -> str:
    """`t07 (attempt 1, pid 4711)`."""
    return f"{cut(worker.task)} (attempt {worker.attempt}, pid {worker.pid})"


def process_name(task: str | None, pid: int, cmdline: Sequence[str]) -> str:
    """`t07 (pid 4711, `node server.js`)`."""
    return f"{cut(task) if task else 'a process of no known task'} (pid {pid}, {command(cmdline)})"


def named(process: Process) -> str:
    """The same, of a process."""
    return process_name(process.task, process.pid, process.cmdline)


def call_name(call: ToolCall) -> str:
    """`t07's call t07.1/5`."""
    return f"{cut(call.task)}'s call {cut(call.call)}"


def joined(sentences: Iterable[str], shown: int = 4) -> str:
    """Sentences one after another; the rest is counted."""
    parts = list(sentences)
    if len(parts) > shown:
        return "; ".join(parts[:shown]) + f"; and {len(parts) - shown} more"
    return "; ".join(parts)
