"""Ways through the graph of tasks: where a run starts, what can be reached from where, what goes in circles.

Takes an Outline; gives names of tasks. Everything here is linear in tasks and edges, but for `below`, which
keeps its sets as the bits of whole numbers: 2,000 tasks that each ask about another stay cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

from spak.lang.outline import Outline, TaskPlan

Node = TypeVar("Node", bound=Hashable)
Counts = Callable[[TaskPlan, str], bool]
"""Whether the edge of a task for a trigger counts."""


def start_of(made: Outline) -> str:
    """The first task of the run; empty when there is none."""
    if made.start is not None:
        return made.start.target if made.start.target in made.tasks else ""
    if made.spec.agent is None or made.broken:
        return next(iter(made.tasks), "")
    return ""


def reach(made: Outline, names: list[str]) -> set[str]:
    """The tasks that can be reached from some, themselves included."""
    found: set[str] = set(names)
    queue = list(names)
    while queue:
        task = made.tasks.get(queue.pop())
        for edge in task.edges.values() if task else ():
            if edge.target in made.tasks and edge.target not in found:
                found.add(edge.target)
                queue.append(edge.target)
    return found


def below(made: Outline) -> dict[str, int]:
    """For each task the tasks that can be reached from it by one edge or more, bit n for the n-th task."""
    bits = {name: 1 << index for index, name in enumerate(made.tasks)}
    targets = _targets(made, lambda task, trigger: True)
    found: dict[str, int] = {}
    for part in parts(targets):
        inside = 0
        for name in part:
            for target in targets[name]:
                inside |= bits[target] | found.get(target, 0)
        for name in part:
            found[name] = inside
    return found


def cycles(made: Outline, counts: Counts) -> Iterator[list[str]]:
    """The strongly connected parts with a cycle, along the edges that count, in order of declaration."""
    order = {name: index for index, name in enumerate(made.tasks)}
    targets = _targets(made, counts)
    for part in parts(targets):
        if len(part) > 1 or part[0] in targets[part[0]]:
            yield sorted(part, key=order.__getitem__)


def _targets(made: Outline, counts: Counts) -> dict[str, list[str]]:
    return {
        name: [
            edge.target
            for trigger, edge in task.edges.items()
            if edge.target in made.tasks and counts(task, trigger)
        ]
        for name, task in made.tasks.items()
    }


def parts(targets: Mapping[Node, list[Node]]) -> Iterator[list[Node]]:
    """The strongly connected parts, each after those that it leads to.

    Tarjan's algorithm without recursion: a chain of 2,000 tasks is legal.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    on_stack: set[Node] = set()
    stack: list[Node] = []
    for root in targets:
        work = [(root, 0)] if root not in index else []
        while work:
            name, at = work.pop()
            if at == 0:
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack.add(name)
            for place in range(at, len(targets[name])):
                other = targets[name][place]
                if other not in index:
                    work += [(name, place + 1), (other, 0)]
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                if low[name] == index[name]:
                    part: list[Node] = []
                    while not part or part[-1] != name:
                        part.append(stack.pop())
                    on_stack.difference_update(part)
                    yield part
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[name])
