"""Small files that several processes share: whole or not at all.

A reader never sees half of a file, because it is written beside its place and renamed into it. There is no
fsync: a drill is about processes that die, and the page cache outlives those. Temporary names begin with a
dot, so that whoever lists a folder can leave them out.
"""

import json
import os
from typing import Any


def write_whole(path: str, text: str) -> None:
    """Put `text` into `path` atomically, replacing what was there. Raises OSError."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.getpid()}")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)


def write_json(path: str, value: object) -> None:
    """Put `value` into `path` atomically, as one line of JSON."""
    write_whole(path, json.dumps(value) + "\n")


def append_line(path: str, value: object) -> None:
    """Append one line of JSON with a single write, so that a kill can only cut the last line."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, (json.dumps(value) + "\n").encode())
    finally:
        os.close(fd)


def read_object(path: str) -> dict[str, Any] | None:
    """The JSON object in `path`; None when there is no such file.

    Raises ValueError when it is something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def read_lines(path: str) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines.

    A torn or foreign line is left out: its writer may have been killed.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
