"""Lookalike letters: words that read like ASCII and are not, and characters that turn the text's direction.

Takes words and texts; gives the ASCII word that a reader sees, and where invisible characters stand. It knows
the letters of Cyrillic and Greek that share their shape with Latin ones, and what Unicode itself calls
compatible (full-width and mathematical letters); a name in another script has no ASCII reading.
"""

from __future__ import annotations

import re
import unicodedata

_SHAPES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαν",
    "ABESIJKMHOPCTYXaesijopcyxhdqwABEZHIKMNOPTYXoav",
)
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def reading(word: str) -> str:
    """The ASCII word that looks the same; empty when there is none, or the word is ASCII itself."""
    if word.isascii():
        return ""
    seen = unicodedata.normalize("NFKC", word).translate(_SHAPES)
    return seen if seen.isascii() else ""


def odd(word: str) -> str:
    """`'а' (U+0430)`: the first character of a word that is not ASCII; empty when all are."""
    char = next((char for char in word if not char.isascii()), "")
    return f"'{char}' (U+{ord(char):04X})" if char else ""


def turns(text: str) -> list[int]:
    """Where characters stand that turn the direction of what follows: it is read in another order."""
    return [] if text.isascii() else [match.start() for match in _TURNS.finditer(text)]
