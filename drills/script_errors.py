"""What is wrong with a file that pydantic refused: every error, each with file, line, key and what is allowed.

TOML readers forget where a key stood, so the line is found again in the text; where that is not certain (an inline
table over several lines) it is the line of the table, or none.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def explain(error: ValidationError, model: type[BaseModel], source: str, text: str) -> str:
    """One line for each error. `model` is what was validated, `text` the file's text (empty: no lines are named)."""
    lines = []
    problems = error.errors()
    below = {problem["loc"][0] for problem in problems if len(problem["loc"]) > 1}
    for problem in problems:
        if problem["type"] == "too_short" and problem["loc"][0] in below:
            continue  # only because its items were refused, each with an error of its own
        loc = [part for part in problem["loc"] if not str(part).startswith("function-")]
        key = ".".join(f"[{part + 1}]" if isinstance(part, int) else str(part) for part in loc).replace(".[", "[")
        message = str(problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "unknown key" + _suggestion(loc, model)
        where = f"{source}{_line(text, loc)}"
        lines += [f"{where}: {key + ': ' if key else ''}{part}" for part in message.split("\n")]
    return "\n".join(lines)


def _suggestion(loc: Sequence[int | str], model: type[BaseModel]) -> str:
    """`; did you mean …? Allowed here: …` for the last name in `loc`."""
    table: type[BaseModel] | None = model
    for name in loc[:-1]:
        if isinstance(name, str) and table is not None:
            field = table.model_fields.get(name)
            table = _table_in(field.annotation) if field is not None else None
    if table is None:
        return ""
    close = difflib.get_close_matches(str(loc[-1]), table.model_fields, 1)
    hint = f"; did you mean {close[0]}? Allowed" if close else "; allowed"
    return f"{hint} here: {', '.join(sorted(table.model_fields))}"


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """The model in a field's type: itself, or that of its items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _table_in(inner))), None)


def _line(text: str, loc: Sequence[int | str]) -> str:
    """`:12` when the line of a key can be told from the text; empty otherwise."""
    lines = text.splitlines()
    start = 0
    for position, name in enumerate(loc):
        if isinstance(name, int):
            continue
        after = loc[position + 1] if position + 1 < len(loc) else 0
        index = after if isinstance(after, int) else 0
        header = re.compile(rf"^\s*\[\[?[\w.]*\b{re.escape(name)}\]\]?")
        headers = [number for number in range(start, len(lines)) if header.match(lines[number])]
        if len(headers) > index:
            start = headers[index]
            continue
        key = re.compile(rf"(^|[{{,\s.]){re.escape(name)}\s*[=.]")
        found = next((number for number in range(start, len(lines)) if key.search(lines[number])), None)
        if found is None:
            return ""
        start = found
    return f":{start + 1}" if loc and text else ""
