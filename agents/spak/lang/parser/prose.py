"""Prose around a spec, as models write it: `around(text)` gives the stretches before and after the spec.

Only for a text that does not parse. A spec begins with a line such as `AGENT Name` or `TASK name {` and ends
with the last `}`; what stands outside is prose only if a line of it reads like a sentence. It gives nothing
where that is not so, and decides nothing about the spec itself.
"""

from __future__ import annotations

import re

from spak.lang import settings

_HEAD = re.compile(r"^[ \t]*(?:AGENT[ \t]+[\w-]+|(?:TASK|SYSTEM_MODEL)[ \t]+[\w-]+[ \t]*\{)", re.M | re.I)
_WORD = re.compile(r"[^\W\d_][\w'’-]*[,.:;!?]*")
_MIN_WORDS = 3


def around(text: str) -> tuple[tuple[int, int], ...]:
    """The stretches of prose before the first line of the spec and after its last brace."""
    head, last = _HEAD.search(text), text.rfind("}") + 1
    if head is None or last <= head.start():
        return ()
    outside = ((0, head.start()), (last, len(text)))
    return tuple(part for part in outside if _reads_like_prose(text[slice(*part)]))


def blanked(text: str, parts: tuple[tuple[int, int], ...]) -> str:
    """The text with blanks in the place of the stretches, lines kept."""
    for start, end in parts:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _reads_like_prose(part: str) -> bool:
    return any(_is_sentence(line.strip()) for line in part.split("\n"))


def _is_sentence(line: str) -> bool:
    words = line.split()
    if line.startswith(("//", "#")) or len(words) < _MIN_WORDS or words[0].upper() in settings.KEYS:
        return False
    return sum(_WORD.fullmatch(word) is not None for word in words) * 2 > len(words) and "{" not in line
