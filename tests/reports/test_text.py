"""Text from strangers: nothing unseen, nothing without an end."""

import pytest

from reports.text import compact, label, one_line, slug, visible


@pytest.mark.parametrize(
    "unseen", ["\x00", "\x1b", "\x85", "\u202e", "\u200f", "\ufeff", "\ud800", "\uffff", "\U000e0041"]
)
def test_what_cannot_be_seen_is_written_out(unseen: str) -> None:
    """An RTL mark would otherwise turn the line around it, and a surrogate would break UTF-8."""
    shown = visible(f"a{unseen}b")
    assert shown == f"a⟨U+{ord(unseen):04X}⟩b"
    shown.encode("utf-8")


def test_a_long_text_is_cut_with_the_count_of_what_was_cut() -> None:
    """A megabyte of output must neither fill the page nor vanish without a word."""
    assert visible("x" * 1_000_000, 10) == "x" * 10 + "… [999,990 more characters]"


def test_writing_out_is_idempotent() -> None:
    """The page applies it once more to every expression."""
    once = visible("\x00\u202e tail", 100)
    assert visible(once, 100) == once


def test_one_line_has_no_line_feed() -> None:
    """A line feed in a name would forge a second line in a log."""
    assert one_line("a\n\tb\r\nc") == "a b⟨U+000D⟩ c"


def test_label_and_slug_are_short_and_plain() -> None:
    """Labels go into pictures, slugs into anchors."""
    assert label("x" * 50, 10) == "x" * 9 + "…"
    assert slug('t"><svg onload=1>/7') == "t-svg-onload-1-7"
    assert slug("\u202e") == "x"


def test_values_of_json_stay_readable() -> None:
    """Evidence shows events as text."""
    assert compact({"a": [1, None]}) == '{"a": [1, null]}'
