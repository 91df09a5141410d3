"""Which predicate rests on which: components in the order of evaluation, and cycles through negation.

Iterative throughout: a chain of thousands of predicates is no deeper than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spak.datalog.plan import Body, Key


@dataclass(frozen=True, slots=True)
class Component:
    """Predicates that rest on each other, and the places of their rules in the policy."""

    keys: tuple[Key, ...]
    rules: tuple[int, ...]
    recursive: bool
    grouped: bool


def edges(bodies: Iterable[Body]) -> dict[Key, set[Key]]:
    """Head predicate to the predicates of its bodies."""
    found: dict[Key, set[Key]] = {}
    for body in bodies:
        below = found.setdefault(body.head.key, set())
        below.update(item.key for item in body.items if item.kind in ("row", "neg"))
    return found


def components(bodies: tuple[Body, ...], keys: Iterable[Key]) -> tuple[Component, ...]:
    """All predicates in an order in which each comes after what it rests on."""
    below = edges(bodies)
    rules: dict[Key, list[int]] = {}
    for place, body in enumerate(bodies):
        rules.setdefault(body.head.key, []).append(place)
    found = []
    for group in tarjan(below, keys):
        own = tuple(place for key in group for place in rules.get(key, ()))
        recursive = len(group) > 1 or group[0] in below.get(group[0], ())
        grouped = any(bodies[place].clause.transform is not None for place in own)
        found.append(Component(tuple(group), own, recursive, grouped))
    return tuple(found)


def tarjan(below: Mapping[Key, set[Key]], keys: Iterable[Key]) -> list[list[Key]]:
    """Strongly connected components, each sorted, what is below first."""
    number: dict[Key, int] = {}
    low: dict[Key, int] = {}
    stack: list[Key] = []
    on_stack: set[Key] = set()
    groups: list[list[Key]] = []
    for root in sorted({*keys, *below}):
        if root in number:
            continue
        work = [(root, iter(sorted(below.get(root, ()))))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in number:
                    number[child] = low[child] = len(number)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(sorted(below.get(child, ())))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], number[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    group: list[Key] = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    groups.append(sorted(group))
    return groups


def path(below: Mapping[Key, set[Key]], start: Key, goal: Key, within: set[Key]) -> list[Key]:
    """A shortest way from one predicate down to another inside a component, both ends included."""
    before: dict[Key, Key] = {}
    frontier = [start]
    seen = {start}
    while frontier:
        following: list[Key] = []
        for node in frontier:
            if node == goal:
                way = [node]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            for child in sorted(below.get(node, ())):
                if child in within and child not in seen:
                    seen.add(child)
                    before[child] = node
                    following.append(child)
        frontier = following
    return [start, goal]
