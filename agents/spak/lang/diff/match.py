"""Which thing of the old spec is which of the new one: by name, else by what it holds and where it stands.

Takes features of the things that have no namesake; gives pairs of old and new. Two things can only be one
when they share something of what they hold, and at least half of all that is known about both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from spak.lang.diff.view import StepView, TaskView, View

LIKENESS = 0.5
COMMON = 50
"""A feature of more things than that says nothing about any of them."""

Features = Mapping[str, tuple[frozenset[Hashable], frozenset[Hashable]]]
"""By name: what the thing holds, and its neighbours."""


def tasks(old: View, new: View) -> dict[str, str]:
    """New names by old ones, for tasks that are in both."""
    pairs = {name: name for name in old.tasks if name in new.tasks}
    gone = [name for name in old.tasks if name not in new.tasks]
    come = [name for name in new.tasks if name not in old.tasks]
    if gone and come:
        before, after = _incoming(old), _incoming(new)
        pairs |= _pairs(
            {name: (_content(old.tasks[name]), _around(old.tasks[name], before)) for name in gone},
            {name: (_content(new.tasks[name]), _around(new.tasks[name], after)) for name in come},
        )
    return {name: pairs[name] for name in old.tasks if name in pairs}


def steps(old: Mapping[str, StepView], new: Mapping[str, StepView]) -> dict[str, str]:
    """New names by old ones, for the steps of one task."""
    pairs = {name: name for name in old if name in new}
    gone = {name: step for name, step in old.items() if name not in new}
    come = {name: step for name, step in new.items() if name not in old}
    if gone and come:
        pairs |= _pairs(
            {name: (_step(step), frozenset()) for name, step in gone.items()},
            {name: (_step(step), frozenset()) for name, step in come.items()},
        )
    return {name: pairs[name] for name in old if name in pairs}


def moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """The fewest names that must move to make the one order the other; both hold the same names."""
    place = {name: index for index, name in enumerate(before)}
    kept = _longest_rise([place[name] for name in after])
    stay = {after[index] for index in kept}
    return {name for name in after if name not in stay}


def _longest_rise(numbers: Sequence[int]) -> list[int]:
    """Indexes of a longest rising subsequence (patience sorting)."""
    from bisect import bisect_left

    ends: list[int] = []
    tops: list[int] = []
    back: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(ends, number)
        back.append(tops[at - 1] if at else -1)
        if at == len(ends):
            ends.append(number)
            tops.append(index)
        else:
            ends[at], tops[at] = number, index
    found: list[int] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        found.append(index)
        index = back[index]
    return found[::-1]


# ---- features ------------------------------------------------------------------------------------------


def _key(mark: object) -> str:
    return json.dumps(mark)


def _content(task: TaskView) -> frozenset[Hashable]:
    found: set[Hashable] = {(path, _key(part.mark)) for path, part in task.settings.items()}
    found |= {(kind, _key(part.mark)) for kind, part in task.conditions.items()}
    for step in (*task.steps.values(), *task.checks.values()):
        found.add((step.name, step.kind))
        found |= {(step.kind, key, _key(part.mark)) for key, part in step.parts.items()}
    return frozenset(found)


def _step(step: StepView) -> frozenset[Hashable]:
    return frozenset({step.kind, *((key, _key(part.mark)) for key, part in step.parts.items())})


def _around(task: TaskView, incoming: Mapping[str, set[tuple[str, str]]]) -> frozenset[Hashable]:
    out = {
        ("to", trigger, "@self" if target == task.name else target) for trigger, target in task.edges.items()
    }
    into = {("from", *edge) for edge in incoming.get(task.name, ()) if edge[0] != task.name}
    return frozenset(out | into)


def _incoming(made: View) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for name, task in made.tasks.items():
        for trigger, target in task.edges.items():
            found.setdefault(target, set()).add((name, trigger))
    return found


def _pairs(old: Features, new: Features) -> dict[str, str]:
    """The best pairs first, each thing once; ties go to the order of writing."""
    found = sorted(_candidates(old, new), key=lambda item: (-item[0], item[1], item[2]))
    names, others = list(old), list(new)
    pairs: dict[str, str] = {}
    taken: set[int] = set()
    for _, left, right in found:
        if names[left] not in pairs and right not in taken:
            pairs[names[left]] = others[right]
            taken.add(right)
    return pairs


def _candidates(old: Features, new: Features) -> Iterator[tuple[float, int, int]]:
    holders: dict[Hashable, list[int]] = {}
    for index, (content, _) in enumerate(new.values()):
        for feature in content:
            holders.setdefault(feature, []).append(index)
    after = list(new.values())
    empty = [index for index, (content, _) in enumerate(after) if not content]
    for left, (content, around) in enumerate(old.values()):
        shared: Counter[int] = Counter()
        for feature in content:
            known = holders.get(feature, ())
            if len(known) <= COMMON:
                shared.update(known)
        if not content and len(empty) <= COMMON:
            shared.update(empty)
        for right in shared:
            other, neighbours = after[right]
            same = len(content & other) + len(around & neighbours)
            size = len(content) + len(other) + len(around) + len(neighbours)
            likeness = 2 * same / size if size else 1.0
            if likeness >= LIKENESS:
                yield likeness, left, right
