"""Texts that come in from elsewhere, without what their writer put around them.

Takes a text as a model, an editor or a tool wrote it; gives the part that is meant. It judges nothing:
whether that is a patch, a plan or a spec is for its reader.
"""

from __future__ import annotations

import re

MARK = "\ufeff"
"""The byte order mark, which an editor may put before a text."""
ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]{1,3}[0-~]|[0-OQ-WYZ\\`-~])"
)
"""A sequence that tells a terminal how to show what follows."""
CONTROLS = {number: None for number in (*range(32), *range(127, 160)) if chr(number) not in "\n\t"}
"""Signs that show nothing, for `str.translate`."""
_NOISE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FENCES = ("```", "~~~")
_OPENS, _CLOSES = "<think>", "</think>"


def unmarked(text: str) -> str:
    """The text without one byte order mark at its beginning."""
    return text.removeprefix(MARK)


def unfenced(text: str) -> str:
    """What is in the one Markdown fence of the text, its lines at their numbers.

    A text that begins as JSON does, or has more fences or none, is given whole.
    """
    if text.lstrip()[:1] in ("{", "["):
        return text
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.lstrip().startswith(_FENCES)]
    if len(marks) != 2 or lines[marks[1]].strip() not in _FENCES:
        return text
    first, last = marks
    return "\n" * (first + 1) + "\n".join(lines[first + 1 : last]) + "\n"


def ended_as(text: str, original: str) -> str:
    """A text whose lines end with LF, with CRLF where all lines of its original end so."""
    returns = original.count("\r\n")
    return text.replace("\n", "\r\n") if returns and returns == original.count("\n") else text


def thought(text: str) -> tuple[str, str]:
    """The thinking that a model wrote before its answer, and the answer.

    Servers without a parser for it leave `<think>...</think>` in the text, some without its beginning.
    Thinking that never ends is all there is: no answer follows.
    """
    rest = text.lstrip()
    if rest.startswith(_OPENS):
        inner, _, answer = rest.removeprefix(_OPENS).partition(_CLOSES)
        return inner.strip(), answer.lstrip()
    inner, closed, answer = rest.partition(_CLOSES)
    if closed and _OPENS not in inner and not rest.startswith(("{", "[")):
        return inner.strip(), answer.lstrip()
    return "", text


def as_shown(text: str) -> str:
    """What a program wrote, as a terminal would show it in the end, simply.

    Escapes and signs that show nothing are gone, and of a line that was written over its last state is left.
    """
    if not _NOISE.search(text):
        return text
    lines = ESCAPE.sub("", text).split("\n")
    return "\n".join(written_over(line) for line in lines).translate(CONTROLS)


def written_over(line: str) -> str:
    """The last state of a line that carriage returns and backspaces wrote over."""
    line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    kept: list[str] = []
    for letter in line:
        if letter != "\b":
            kept.append(letter)
        elif kept:
            kept.pop()
    return "".join(kept)
