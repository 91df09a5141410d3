"""Marked blocks of a source file: the only parts of it that an evolving proposer may change.

Takes a text in which comment lines mark blocks; gives the blocks by name and puts other texts in their place,
every other byte as it was. It opens no file and knows no programming language but its line comments.

    # SPAK-EVOLVE-BEGIN name        or //
    ...
    # SPAK-EVOLVE-END               the name may stand here again
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spak.errors import UsageError

MARK = "SPAK-EVOLVE"
MAX_BLOCKS = 16
MAX_TEXT = 256 << 10
"""Characters of a file with blocks."""

_MARKER = re.compile(
    r"[ \t]*(?:\#|//)[ \t]*SPAK-EVOLVE-(BEGIN|END)(?:[ \t]+([A-Za-z][A-Za-z0-9_]{0,31}))?[ \t]*\r?\n?"
)
_CONTROL = re.compile(r"[^\t\n\r -\x7e\xa0-\U0010ffff]|\r(?!\n)")
"""What no block holds: control characters but tab and line feed, and carriage returns alone."""
_HINT = (
    f"write # {MARK}-BEGIN name and # {MARK}-END, or with //, on lines of their own around what may change"
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text taken apart: what surrounds the blocks, and the blocks by name, in their order."""

    around: tuple[str, ...]
    """One part more than there are blocks; markers belong to them."""
    blocks: Mapping[str, str]

    def filled(self, texts: Mapping[str, str]) -> str:
        """The text with other blocks in the place of those that are named."""
        parts = [self.around[0]]
        for after, (name, text) in zip(self.around[1:], self.blocks.items(), strict=True):
            parts += [texts.get(name, text), after]
        return "".join(parts)


def read(text: str) -> Marked:
    """The blocks of a text.

    Raises: UsageError `blocks.missing`, `blocks.nested`, `blocks.twice`, `blocks.empty`, `blocks.open`,
    `blocks.marker`, `blocks.too_many`, `blocks.text`.
    """
    if len(text) > MAX_TEXT or _CONTROL.search(text):
        raise _error("text", f"the file is not text of at most {MAX_TEXT} characters", 0)
    around, blocks = [""], dict[str, str]()
    name, begun, inside = "", 0, list[str]()
    for number, line in enumerate(_lines(text), 1):
        found = _MARKER.fullmatch(line)
        if found is None and MARK in line:
            raise _error("marker", f"{line.strip()[:80]!a} is no marker", number)
        if found is None:
            if name:
                inside.append(line)
            else:
                around[-1] += line
            continue
        kind, named = found[1], found[2] or ""
        if kind == "BEGIN":
            if name:
                raise _error("nested", f"the block {name} of line {begun} is still open", number)
            if not named:
                raise _error("marker", "the block has no name", number)
            if named in blocks:
                raise _error("twice", f"there is a block {named} already", number)
            if len(blocks) == MAX_BLOCKS:
                raise _error("too_many", f"there are more than {MAX_BLOCKS} blocks", number)
            name, begun, inside = named, number, []
            around[-1] += line
            continue
        if not name or (named and named != name):
            raise _error("marker", f"the end of no block: {name or 'none'} is open", number)
        if not "".join(inside).strip():
            raise _error("empty", f"the block {name} is empty", begun)
        blocks[name] = "".join(inside)
        around.append(line)
        name = ""
    if name:
        raise _error("open", f"the block {name} has no end", begun)
    if not blocks:
        raise _error("missing", "the file marks no block", 0)
    return Marked(tuple(around), blocks)


def odd_character(text: str) -> str:
    """A character of a text that no block may hold, for a message; empty where there is none."""
    found = _CONTROL.search(text)
    return "" if found is None else f"U+{ord(found[0]):04X}"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _error(kind: str, message: str, line: int) -> UsageError:
    return UsageError(f"blocks.{kind}", f"line {line}: {message}" if line else message, _HINT)
