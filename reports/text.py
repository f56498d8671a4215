"""Text from strangers, made safe to show.

Task names, messages, command lines and tool output belong to the system under test, so all of them are
hostile. `visible` turns what a reader could not see, or what would reorder the line around it, into a
written code point, and cuts what is too long with the count of what was cut. Escaping for HTML is not done
here: the template engine does that for every expression, and `xml_text` below serves the XML that is
written by hand.
"""

import json
import re
from typing import Any

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\u00ad\u034f\u061c\u115f\u1160\u180e"  # soft hyphen and other characters without a shape
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # lone surrogates, non-characters
    "\U000e0000-\U000e0fff]"  # tags
)
_SPACE = re.compile(r"[\t\n]+")

LINE_MAX = 400
"""Characters of one line of evidence."""


def visible(text: object, limit: int = LINE_MAX) -> str:
    """The text, its unseen characters written out as ⟨U+202E⟩, cut at `limit` with a count of the rest.

    Tabs and line feeds stay. Applying it twice changes nothing more.
    """
    whole = text if isinstance(text, str) else str(text)
    # Cutting comes first, because escaping a megabyte that nobody will see costs seconds.
    shown = _UNSEEN.sub(_named, whole[:limit])
    cut = len(whole) - limit
    return shown if cut <= 0 else f"{shown}… [{cut:,} more characters]"


def one_line(text: object, limit: int = LINE_MAX) -> str:
    """Like `visible`, without line feeds and tabs: for table cells, labels and terminals."""
    return _SPACE.sub(" ", visible(text, limit))


def label(text: object, limit: int = 14) -> str:
    """A short name for a picture: one line, cut with an ellipsis alone, as there is no room for a count."""
    whole = str(text)
    shown = _SPACE.sub(" ", _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", whole[:limit]))
    return shown if len(whole) <= limit else shown[: limit - 1] + "…"


def compact(value: Any, limit: int = LINE_MAX) -> str:
    """A value of JSON on one line; strings as they are."""
    if isinstance(value, str):
        return one_line(value, limit)
    return one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def xml_text(text: object, limit: int = 4000) -> str:
    """Text that XML 1.0 can carry: what it forbids is written out, like everything unseen."""
    return visible(text, limit)


def slug(text: object) -> str:
    """A name for an anchor: letters, digits, dots and dashes alone, at most 40 of them."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", str(text)[:40]).strip("-") or "x"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`, `1,024 workers`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _named(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"
