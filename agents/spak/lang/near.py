"""The name that was meant: a near miss for a misspelt word, for hints and fixes.

Takes a word and the names that would have been right; gives the nearest or nothing. Two swapped letters count
as one slip, and a word that is only a beginning of one name is taken as that name.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str]) -> str:
    """The nearest name within a third of the word's length (at least one slip), or an empty string."""
    folded = word.lower()
    limit = max(1, min(3, len(word) // 3))
    best, best_name = limit + 1, ""
    letters = set(folded)
    for name in names:
        other = name.lower()
        if abs(len(other) - len(folded)) > limit or len(letters.symmetric_difference(other)) > 2 * limit:
            continue
        slips = _distance(folded, other, best)
        if slips < best:
            best, best_name = slips, name
    if best_name or len(word) < 3:
        return best_name
    starting = [name for name in names if name.lower().startswith(folded)]
    return starting[0] if len(starting) == 1 else ""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`did you mean 'x'?`, or an empty string."""
    hit = nearest(word, names)
    return f"did you mean '{hit}'?" if hit else ""


def _distance(left: str, right: str, bound: int) -> int:
    """Optimal string alignment distance, given up at `bound`."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if last and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) >= bound:
            return bound
    return row[-1]
