"""Names and patterns that code of this package looks words up in, as data: lists.toml.

Takes the section of a module and a key; gives the words as a set or in their order, or a pattern of which
each line is an alternative.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "lists.toml"


@cache
def text() -> str:
    """The whole file."""
    return FILE.read_text(encoding="utf-8")


@cache
def sections() -> dict[str, dict[str, Any]]:
    """All sections by name."""
    return tomllib.loads(text())


def ordered(section: str, key: str) -> tuple[str, ...]:
    """The words of a list."""
    return tuple(str(sections()[section][key]).split())


def names(section: str, key: str) -> frozenset[str]:
    """The words of a list, without an order."""
    return frozenset(ordered(section, key))


def pattern(section: str, key: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern that fits where one of its lines does."""
    return re.compile("|".join(str(sections()[section][key]).splitlines()), flags)
