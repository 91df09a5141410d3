"""The watchdog: has the run taken the same turn, with the same results, in the same place, k times in a row?

One mark per committed tool or validator, of (task, action, progress key, R3), and one per answer to a
question, of what it said. A *turn* is the shortest sequence of marks that the newest marks repeat: A-A-A is a
turn of one mark, A-B-A-B-A-B (write and undo) one of two. A reading step that begins every try is not a loop
by itself: whatever else happened between two of its results is part of the turn, and has to repeat as well.

A mark is *quiet* when its action may be repeated without harm: a tool that declares `idempotent`, or an
answer. A turn of quiet marks alone has to repeat until it is as long as `window`, which bounds its price.
The window of R1 holds the marks of the longest turn that is looked for, k times over, and no more.
Source: seed 001 R1, DESIGN.md section 4, ADR 0025.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spak import canon

QUIET = "~"
"""What a quiet mark begins with."""

MOST = 4096
"""Marks that R1 holds at most, whatever BUDGET says."""


class Turn(NamedTuple):
    """The turn that the newest marks repeat: its length in marks, and how often it was taken in a row."""

    length: int
    times: int


def mark(task: str, action: str, key: str, root: str, quiet: bool = False) -> str:
    """The mark of one result."""
    digest = canon.digest("\0".join((task, action, key, root)).encode())
    return f"{QUIET}{digest}" if quiet else digest


def observe(window: tuple[str, ...], seen: str, size: int) -> tuple[str, ...]:
    """The window of R1 with one more mark, and no more than `size`."""
    return (*window, seen)[-size:]


def kept(size: int, times: int) -> int:
    """How many marks R1 has to hold to find a turn of `size` marks, taken `times` times; where no number of
    times ends a run (0), those of one turn."""
    return min(size * max(times, 1), MOST)


def loop(marks: Sequence[str], size: int, times: int) -> Turn | None:
    """The shortest turn of at most `size` marks that was taken at least `times` times in a row."""
    if not marks or marks.count(marks[-1]) < times:
        return None
    for length in range(1, min(size, len(marks) // times) + 1):
        if times > 1 and marks[-1] != marks[-1 - length]:
            continue
        taken = repeats(marks, length)
        if taken < times:
            continue
        quiet = all(item.startswith(QUIET) for item in marks[-length:])
        if not quiet or taken * length >= size:
            return Turn(length, taken)
    return None


def turn(marks: Sequence[str]) -> Turn:
    """The turn that covers most of the newest marks, the shortest of those that cover as many."""
    found = [Turn(length, repeats(marks, length)) for length in range(1, len(marks) // 2 + 1)]
    repeated = [item for item in found if item.times > 1]
    return max(repeated, key=lambda item: (item.length * item.times, -item.length), default=Turn(0, 0))


def repeats(marks: Sequence[str], length: int) -> int:
    """How often the last `length` marks stand one after the other at the end."""
    end = len(marks)
    while end > length and marks[end - 1] == marks[end - 1 - length]:
        end -= 1
    return (len(marks) - end) // length + 1 if len(marks) >= length else 0
