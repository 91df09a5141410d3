"""How much of a patch a page shows at once: `fold(parts)` gives the first parts with the first of their
changes and edits, `take(items, first)` the next of a list that was folded. Pure.

A patch of 256 KiB may have thousands of edits, each with its forms: whole, its page would be megabytes. What
is shown is bounded by number and by characters; a link loads the next of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spakweb.work.reviews.parts import Edit, Part

PARTS = 100
ITEMS, CHARS = 150, 60_000
"""Changes and edits of all parts together, and characters of them."""
LISTS = ("capabilities", "changes", "edits")
"""The lists of a part."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a list: what is shown, where the rest begins, and of how many that is."""

    shown: Sequence[Any] = ()
    next: int = 0
    more: int = 0


class _Room:
    """What the page has room for."""

    def __init__(self) -> None:
        self.items, self.chars = ITEMS, CHARS

    def take(self, items: Sequence[Any], first: int) -> Window:
        at = first
        while at < len(items) and self.items > 0 and self.chars > 0:
            self.items -= 1
            self.chars -= _length(items[at])
            at += 1
        return Window(items[first:at], at, len(items) - at)


def fold(parts: Sequence[Part], first: int = 0) -> Window:
    """Parts from one on; each has in `windows` what is shown of its lists."""
    shown, room = parts[first : first + PARTS], _Room()
    for part in shown:
        part.windows = {name: room.take(getattr(part, name), 0) for name in LISTS}
    return Window(shown, first + len(shown), max(0, len(parts) - first - len(shown)))


def take(items: Sequence[Any], first: int) -> Window:
    """The next of a list; at least one where there is one."""
    return _Room().take(items, first)


def _length(item: Any) -> int:
    if isinstance(item, Edit):
        return sum(len(line) for _, line, _ in item.shown)
    if isinstance(item, dict):
        return sum(len(str(value)) for value in item.values())
    return len(str(item))
