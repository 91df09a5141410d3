"""How long a text is on the page, what of it may be drawn, and how it is shortened.

There is no font here: a width is an upper bound for the monospaced faces that browsers have (0.62 of the size
for a letter, twice that and a little for wide ones). Names come from specs, so anything may be in them.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

NARROW, WIDE = 0.62, 1.35
MARKS = 2
"""Combining marks that a letter may keep; more would grow out of its line."""


def width(text: str, size: float) -> int:
    """An upper bound in pixels."""
    if text.isascii():
        return int(len(text) * NARROW * size) + 1
    total = 0.0
    for char in text:
        if not combining(char):
            total += WIDE if east_asian_width(char) in "WF" or ord(char) > 0x2E7F else NARROW * 1.2
    return int(total * size) + 1


def clean(text: str) -> str:
    """The text with what cannot be seen, or would steer what follows, as a replacement character."""
    if text.isascii() and text.isprintable():
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if combining(char) else 0
        if marks <= MARKS:
            kept.append(
                char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
            )
    return "".join(kept)


def shorten(text: str, most: int) -> str:
    """At most that many characters; the middle goes, since names differ at both ends."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
