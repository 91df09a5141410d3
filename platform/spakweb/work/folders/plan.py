"""What is to be done with one file: `act(...)`, from hashes of texts alone. Pure.

`now` is the text of the file and `head` that of the newest version; `there` and `seen` are what these were
when somebody looked last, `base` is the text that both had last. A commit of our own is known by its text,
whoever pushed it: afterwards `now` is `head`. A text comes in by itself only where the spec still has what
both had.
"""

from __future__ import annotations

from enum import StrEnum


class Act(StrEnum):
    """What a file and its spec need."""

    SAME = "same"
    """Both have one text."""
    LEFT = "left"
    """They differ, and neither changed since somebody looked."""
    TAKE = "take"
    """The file alone changed: its text comes in."""
    GIVE = "give"
    """The spec alone changed: its text goes out."""
    BOTH = "both"
    """Both changed: somebody has to merge."""
    GONE = "gone"
    """The file was removed."""
    ABSENT = "absent"
    """The file was removed before, and is not made again."""


def act(now: str | None, there: str, base: str, seen: str, head: str) -> Act:
    """`now` is None where there is no file; the others but `head` are empty for what there never was."""
    if now is None:
        if there:
            return Act.GONE
        return Act.ABSENT if base else Act.GIVE
    if now == head:
        return Act.SAME
    if now != there:
        return Act.TAKE if head == base else Act.BOTH
    return Act.LEFT if head == seen else Act.GIVE
