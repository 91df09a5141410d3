r"""Positions: offsets of a text to lines and columns as the protocol counts them, and back.

A line ends with \n, \r\n or \r and nothing else. A column counts code units of the encoding that client and
server agreed on: UTF-16 unless the client offered another. A column behind the end of its line is its end, a
line behind the last is the end of the text, and a column inside a character is the character's start.
"""

from __future__ import annotations

import re
from bisect import bisect_right

ENCODINGS = ("utf-16", "utf-8", "utf-32")
_END = re.compile(r"\r\n|\n|\r")


class Positions:
    """Positions of a text in the units that the client chose, and offsets in characters."""

    __slots__ = ("encoding", "ends", "plain", "starts", "text")

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        self.plain = text.isascii()
        """Every character is one unit, whatever the encoding."""
        self.starts, self.ends = [0], []
        for match in _END.finditer(text):
            self.ends.append(match.start())
            self.starts.append(match.end())
        self.ends.append(len(text))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 0, of an offset."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        start, end = self.starts[line], min(offset, self.ends[line])
        return line, end - start if self.plain else self.units(self.text[start:end])

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        if line < 0 or column < 0:
            return self.starts[line] if 0 <= line < len(self.starts) else 0
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[line], self.ends[line]
        if self.plain:
            return min(start + column, end)
        at = start
        while at < end:
            column -= self.units(self.text[at])
            if column < 0:
                break
            at += 1
        return at

    def units(self, text: str) -> int:
        """The length of a text in the agreed units."""
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(char > "\uffff" for char in text)
