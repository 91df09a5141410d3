"""A digest as claims with their citations, read from its text.

A digest is Markdown of headings and list items and of nothing else. An item is one claim; what its following
indented lines hold belongs to it. A citation is `[PATH: "QUOTE"]`, anywhere in the item:

    - Drones do not gather food. [bees.md: "The drones gather no food."]

`read` is pure and total. Whether documents exist and say what is quoted is judged by static_checks; whether
a claim follows from its quote is judged by nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+")
_CITATION = re.compile(r'\[([^\[\]:"\n]{1,1024}):\s*"([^"]+)"\s*\]')


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and the file that it is from."""

    path: str
    quote: str
    """Blanks as single spaces."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence and what it cites."""

    text: str
    line: int
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Digest:
    """The claims of a text, and the lines that cite nothing."""

    claims: tuple[Claim, ...]
    loose: tuple[int, ...] = ()
    """Lines that are neither a heading nor part of an item."""


def read(text: str) -> Digest:
    """The claims of a digest, in order."""
    items: list[tuple[int, list[str]]] = []
    loose: list[int] = []
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if _ITEM.match(line):
            items.append((number, [_ITEM.sub("", line, count=1)]))
            inside = True
        elif line.startswith("#"):
            inside = False
        elif inside and line[0] in " \t":
            items[-1][1].append(line)
        else:
            loose.append(number)
            inside = False
    claims = (_claim(number, single_spaced(" ".join(lines))) for number, lines in items)
    return Digest(tuple(claims), tuple(loose))


def single_spaced(text: str) -> str:
    """The text with every run of blanks as one space."""
    return " ".join(text.split())


def _claim(line: int, text: str) -> Claim:
    found = tuple(Citation(match[1].strip(), single_spaced(match[2])) for match in _CITATION.finditer(text))
    return Claim(_CITATION.sub("", text).strip(), line, found)
