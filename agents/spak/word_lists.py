"""Names and patterns that code looks words up in, as data.

Takes a TOML file whose sections hold texts: gives the words of a text as a set or in their order, or a
pattern of which each line is an alternative.
"""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any


class WordLists:
    """Those of one file, read once."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @cached_property
    def text(self) -> str:
        """The whole file."""
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def sections(self) -> dict[str, dict[str, Any]]:
        """All sections by name."""
        return tomllib.loads(self.text)

    def ordered(self, section: str, key: str) -> tuple[str, ...]:
        """The words of a list."""
        return tuple(str(self.sections[section][key]).split())

    def names(self, section: str, key: str) -> frozenset[str]:
        """The words of a list, without an order."""
        return frozenset(self.ordered(section, key))

    def pattern(self, section: str, key: str, flags: int = 0) -> re.Pattern[str]:
        """A pattern that fits where one of its lines does."""
        return re.compile("|".join(str(self.sections[section][key]).splitlines()), flags)
