"""Ways of a run that lose a judge: `lost(old, new, pairs)`, by reachability over the tasks of both specs.

An outcome (a task and a trigger) leads to a task, to the end of the run, or nowhere: then the run fails. A
new way first differs from every old one at an outcome that leads elsewhere. From there it goes through tasks
that the old way could not reach until it comes to one that it could, or to an end. What the old spec may have
judged before that same place is lost. From that place on the outcomes are compared for themselves. So a
change that is not reported here lets no run end with fewer judges than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spak.lang.diff.judges import decides
from spak.lang.diff.view import View

END = ""
"""The target of an outcome that ends the run with success."""

DONE = ("success", "metric_improved", "plateau")
MAX_COMPARED = 200
"""Outcomes that are compared; a change of more is reported as one that is not known."""


@dataclass(frozen=True, slots=True)
class Way:
    """After `trigger` of a task (START: an empty task) a run can go on, to `to` or to an end, without having
    passed the judges of the tasks `without`, which are names of the old spec."""

    task: str
    trigger: str
    to: str
    without: tuple[str, ...]


@dataclass(slots=True)
class _Graph:
    edges: Mapping[str, Mapping[str, str]]
    judges: frozenset[str]
    back: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, made: View) -> _Graph:
        edges = {}
        for name, task in made.tasks.items():
            known = {trigger: to for trigger, to in task.edges.items() if to in made.tasks}
            edges[name] = known if task.edges else {"success": END}
        graph = cls(edges, frozenset(name for name, task in made.tasks.items() if decides(task)))
        for name, targets in edges.items():
            for to in targets.values():
                graph.back.setdefault(to, set()).add(name)
        return graph

    def reach(self, start: str, stop: str = END) -> list[str]:
        """Every task that can be reached from one, itself included, without passing `stop`."""
        found, rest = [], [start] if start not in (END, stop) else []
        seen = set(rest)
        while rest:
            name = rest.pop()
            found.append(name)
            more = {to for to in self.edges.get(name, {}).values() if to not in (END, stop)} - seen
            seen |= more
            rest += sorted(more)
        return found

    def leading_to(self, place: str) -> set[str]:
        found: set[str] = set()
        rest = [place]
        while rest:
            more = self.back.get(rest.pop(), set()) - found
            found |= more
            rest += more
        return found

    def judged_before(self, start: str, place: str) -> list[str]:
        """The judging tasks that a run may pass on its way from one task to another, or to an end."""
        if start == place:
            return []
        known = self.reach(start, stop=place)
        on_the_way = known if place == END else self.leading_to(place)
        return [name for name in known if name in self.judges and name in on_the_way]


def start_of(made: View) -> str:
    """The first task of a run; END where there is none."""
    if made.start:
        return made.start if made.start in made.tasks else END
    return next(iter(made.tasks), END) if made.agent is None else END


def lost(old: View, new: View, pairs: Mapping[str, str]) -> Iterator[Way] | None:
    """The ways that lose a judge; None where too much differs to tell. `pairs` has new names by old ones."""
    before, after = _Graph.of(old), _Graph.of(new)
    found = list(_moved(old, new, before, after, pairs))
    return _ways(found, before, after, pairs) if len(found) <= MAX_COMPARED else None


def _moved(
    old: View, new: View, before: _Graph, after: _Graph, pairs: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    """Task (its new name) and trigger of each outcome that leads elsewhere; where it led to and leads to."""
    was, now = start_of(old), start_of(new)
    if pairs.get(was, was) != now and was != END:
        yield "", "START", was, now
    live = set(after.reach(now))
    for name, other in pairs.items():
        outcomes = before.edges[name]
        if other not in live:
            continue
        for trigger, to in after.edges[other].items():
            if trigger in outcomes:
                was = outcomes[trigger]
            elif trigger in DONE:
                was = outcomes.get("success", END)
            else:
                was = name  # the run failed here: only after another try of this task is nothing lost
            if was != END and pairs.get(was) != to:
                yield other, trigger, was, to


def _ways(
    found: list[tuple[str, str, str, str]], before: _Graph, after: _Graph, pairs: Mapping[str, str]
) -> Iterator[Way]:
    for task, trigger, was, to in found:
        known = {pairs[name]: name for name in before.reach(was) if name in pairs}
        for place in _first_met(after, to, known):
            without = before.judged_before(was, known.get(place, END))
            if without:
                yield Way(task, trigger, place, tuple(without))


def _first_met(after: _Graph, start: str, known: Mapping[str, str]) -> Iterator[str]:
    """Where ways from a task first come to a known task, or to an end."""
    rest, seen = [start], {start}
    while rest:
        name = rest.pop()
        if name == END or name in known:
            yield name
            continue
        more = set(after.edges.get(name, {}).values()) - seen
        seen |= more
        rest += sorted(more)
