"""Offsets: characters, as Python counts them, and UTF-16 units, as a browser does.

Takes a text; turns offsets of one kind into the other. Only characters beyond U+FFFF make a difference, so a
text without them costs nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left

_WIDE = re.compile("[\U00010000-\U0010ffff]")


class Units:
    """Offsets in characters, and in the UTF-16 units that browsers count."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self.wide = [] if text.isascii() else [match.start() for match in _WIDE.finditer(text)]

    def to_browser(self, offset: int) -> int:
        """The unit at which a character stands."""
        return offset + bisect_left(self.wide, offset) if self.wide else offset

    def from_browser(self, unit: int) -> int:
        """The character that holds a unit, within the text."""
        low, high = 0, self.length
        if not self.wide:
            return max(0, min(unit, high))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.to_browser(middle) <= unit else (low, middle - 1)
        return low
