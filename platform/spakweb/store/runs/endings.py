"""Why a run ended without success, as its page says it: the phrases of its codes and the cause with its
records, both from templates of `spak.runner.views` (refusals, causes).
docs/errors.md has a paragraph for each code.
"""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from spak.runner.views.causes import NUMBERS
from spak.runner.views.refusals import words


def in_words(reason: str) -> str:
    """A reason that begins with a code, with the code's phrase before it."""
    phrase = words(reason.partition(":")[0].partition(",")[0].strip())
    return f"{phrase[:1].upper()}{phrase[1:]} ({reason})" if phrase else reason


def sentence(word: str, task: str, codes: list[str], cause: str) -> str:
    """`Failed in repair: a phrase. The cause with its records.` A cause that says what the phrase does stands
    alone."""
    where = f"{word} in {task}" if task else word
    phrases = list(dict.fromkeys(filter(None, map(words, codes)))) or codes or ["no reason is recorded"]
    why = cause.rstrip(".")
    if len(phrases) == 1 and why.startswith(phrases[0]):
        return f"{where}: {why}."
    first = why.partition(" ")[0]
    shown = why if "_" in first else f"{why[:1].upper()}{why[1:]}"  # the name of a tool stays as it is
    return f"{where}: {'; '.join(phrases)}.{f' {shown}.' if why else ''}"


def linked(text: str, address: str) -> SafeString:
    """The text with links from its record numbers to the records."""
    parts: list[Any] = []
    at = 0
    for found in NUMBERS.finditer(text):
        parts.append(format_html("{}", text[at : found.start()]))
        numbers = re.split(r"(\d+)", found[0])
        parts += [
            format_html('<a href="{}?tab=records&amp;seq={}#record">{}</a>', address, piece, piece)
            if piece.isdigit() else format_html("{}", piece)
            for piece in numbers
        ]  # fmt: skip
        at = found.end()
    return format_html_join("", "{}", ((part,) for part in [*parts, format_html("{}", text[at:])]))
