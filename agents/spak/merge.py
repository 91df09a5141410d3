"""Three texts into one: `merge(base, mine, theirs)`, by lines, pure.

Where only one side changed, its lines are taken; where both made the same change, it is taken once; where
both changed the same lines (or lines that touch) differently, that is a conflict and stays one, with both
sides in it. Nothing is ever dropped: the text with markers holds every line of both sides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

MINE, BETWEEN, THEIRS = "<<<<<<< yours", "=======", ">>>>>>> theirs"

MOST_PAIRS = 1_000_000
"""Of lines to compare one by one."""

FEW_PAIRS = 10_000
"""Up to so many nothing is gained by dividing."""

Lines = tuple[str, ...]
Opcode = tuple[str, int, int, int, int]
"""What difflib calls one: a tag, and the lines of both texts."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of the result; of a conflict `lines` is empty and the sides are told."""

    lines: Lines = ()
    base: Lines = ()
    mine: Lines = ()
    theirs: Lines = ()
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """A three-way merge of texts by lines."""

    parts: tuple[Part, ...]

    @property
    def conflicts(self) -> int:
        """How many places both sides changed."""
        return sum(part.conflict for part in self.parts)

    @property
    def clean(self) -> bool:
        """Whether there is no conflict."""
        return not self.conflicts

    @property
    def text(self) -> str:
        """The merged text, conflicts between markers."""
        lines: list[str] = []
        for part in self.parts:
            if part.conflict:
                for head, side in ((MINE, part.mine), (BETWEEN, part.theirs)):
                    lines.append(head + "\n")
                    lines += _ended(side)
                lines.append(THEIRS + "\n")
            else:
                lines += part.lines
        return "".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The merge as the editor gets it."""
        return {"clean": self.clean, "conflicts": self.conflicts, "text": self.text}


def merge(base: str, mine: str, theirs: str) -> Merge:
    """Merge two texts that were changed from one base."""
    old, one, two = (tuple(text.splitlines(keepends=True)) for text in (base, mine, theirs))
    parts: list[Part] = []
    for start, end, a, b in _regions(old, one, two):
        was, left, right = old[start:end], one[a[0] : a[1]], two[b[0] : b[1]]
        if left == right or right == was:
            parts.append(Part(left))
        elif left == was:
            parts.append(Part(right))
        else:
            parts.append(Part((), was, left, right, True))
    return Merge(tuple(part for part in parts if part.conflict or part.lines))


def _ended(lines: Lines) -> Lines:
    """The last line with its end, so that a marker begins a line."""
    return (*lines[:-1], lines[-1] + "\n") if lines and not lines[-1].endswith("\n") else lines


Range = tuple[int, int]


def _regions(old: Lines, one: Lines, two: Lines) -> Iterator[tuple[int, int, Range, Range]]:
    """Ranges of the base with the ranges of both sides that stand for them, in order, without a gap. Changes
    that overlap or touch are one region."""
    left, right = _changes(old, one), _changes(old, two)
    at, shift_one, shift_two = 0, 0, 0
    while left or right:
        start = min(changes[0][0] for changes in (left, right) if changes)
        yield at, start, (at + shift_one, start + shift_one), (at + shift_two, start + shift_two)
        end, grow_one, grow_two = start, 0, 0
        grown = True
        while grown:
            grown = False
            while left and left[0][0] <= end:
                first, last, size = left.pop(0)
                end, grow_one, grown = max(end, last), grow_one + size - (last - first), True
            while right and right[0][0] <= end:
                first, last, size = right.pop(0)
                end, grow_two, grown = max(end, last), grow_two + size - (last - first), True
        yield (
            start, end,
            (start + shift_one, end + shift_one + grow_one),
            (start + shift_two, end + shift_two + grow_two),
        )  # fmt: skip
        at, shift_one, shift_two = end, shift_one + grow_one, shift_two + grow_two
    yield at, len(old), (at + shift_one, len(one)), (at + shift_two, len(two))


def _changes(old: Lines, new: Lines) -> list[tuple[int, int, int]]:
    """Each changed range of the base, and how many lines replace it."""
    return [(a, b, d - c) for tag, a, b, c, d in opcodes(old, new) if tag != "equal"]


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """What difflib says, in bounded time: what both begin and end with is set aside, longer texts are divided
    at the lines that each has once (as in a patience diff), and in a long rest nothing is matched by lines
    that stand everywhere (blank ones, brackets): that takes their square."""
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    one, two = old[head : len(old) - tail], new[head : len(new) - tail]
    found: list[Opcode] = []
    a = c = 0
    for b, d in [*(_anchors(one, two) if len(one) * len(two) > FEW_PAIRS else ()), (len(one), len(two))]:
        found += _matched(one[a:b], two[c:d], a + head, c + head)
        if b < len(one):
            found.append(("equal", b + head, b + head + 1, d + head, d + head + 1))
        a, c = b + 1, d + 1
    before = [("equal", 0, head, 0, head)] if head else []
    after = [("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else []
    return joined([*before, *found, *after])


def _anchors(one: Sequence[str], two: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that both have exactly once, the most of them that stand in one order."""
    in_one, in_two = Counter(one), Counter(two)
    place = {line: number for number, line in enumerate(two) if in_two[line] == in_one[line] == 1}
    ends: list[int] = []  # where the shortest run of each length ends, and what comes before each place
    last: list[tuple[int, int]] = []
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for number, line in enumerate(one):
        if (at := place.get(line)) is None:
            continue
        length = bisect_left(ends, at)
        before[number, at] = last[length - 1] if length else None
        ends[length : length + 1] = [at]
        last[length : length + 1] = [(number, at)]
    found, pair = [], last[-1] if last else None
    while pair is not None:
        found.append(pair)
        pair = before[pair]
    return found[::-1]


def _matched(one: Sequence[str], two: Sequence[str], a: int, c: int) -> list[Opcode]:
    """The opcodes of a stretch that begins at these lines."""
    if one == two:
        return [("equal", a, a + len(one), c, c + len(two))] if one else []
    if not one or not two or len(one) == len(two) == 1:  # as nearly all stretches between lines that stay
        tag = "replace" if one and two else "delete" if one else "insert"
        return [(tag, a, a + len(one), c, c + len(two))]
    matcher = SequenceMatcher(None, one, two, autojunk=len(one) * len(two) > MOST_PAIRS)
    return [(tag, a + i, a + j, c + k, c + m) for tag, i, j, k, m in matcher.get_opcodes()]


def joined(found: list[Opcode]) -> list[Opcode]:
    """Equal stretches that follow each other as one."""
    out: list[Opcode] = []
    for item in found:
        if out and out[-1][0] == item[0] == "equal":
            item = ("equal", out[-1][1], item[2], out.pop()[3], item[4])
        out.append(item)
    return out
