"""Which text gave each field of a spec its value: `fields(texts)`, oldest text first. Pure.

A field is what `compare` names by a path: a setting, an edge, a condition, an axiom, a part of a step. It is
followed through renames of tasks and steps; layout, comments and moves give no field another origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spak.lang.diff.compare import compare
from spak.lang.diff.model import Difference
from spak.lang.diff.view import View, view
from spak.lang.parser import parse


@dataclass(frozen=True, slots=True)
class Field:
    """`origin` is the place, in the texts, of the one that the value came with."""

    path: str
    value: Any
    origin: int


def fields(texts: Sequence[str]) -> list[Field]:
    """The fields of the last text, in order; texts that do not parse count as far as they do."""
    views = [view(parse(text).spec) for text in texts]
    if not views:
        return []
    origins = {path: 0 for path, _ in _leaves(views[0])}
    for place, (old, new) in enumerate(pairwise(views), 1):
        origins = _next(origins, old, new, place)
    return [Field(path, value, origins[path]) for path, value in _leaves(views[-1])]


def _next(origins: dict[str, int], old: View, new: View, place: int) -> dict[str, int]:
    found = compare(old.spec, new.spec)
    if found.equal:
        return origins
    given = {item.path for item in found.changes if item.op in ("add", "change")}
    renamed = {item.path for item in found.changes if item.op == "rename"}
    names = _old_names(found)
    kept: dict[str, int] = {}
    for kind, items in new.items.items():
        kept |= _items(f"SYSTEM_MODEL/{kind}/", old.items[kind], items, origins, place)
    for path, _ in _leaves(new):
        if path not in kept:
            is_new = path in renamed or any(above in given for above in _above(path))
            kept[path] = place if is_new else origins.get(_renamed(path, names), place)
    return kept


def _items(
    above: str, old: Sequence[Any], new: Sequence[Any], origins: dict[str, int], place: int
) -> dict[str, int]:
    """Axioms and the like have numbers for names: one that is there already keeps its origin."""
    places: dict[str, list[int]] = {}
    for number, part in enumerate(old, 1):
        places.setdefault(repr(part.mark), []).append(number)
    kept = {}
    for number, part in enumerate(new, 1):
        before = places.get(repr(part.mark))
        kept[f"{above}{number}"] = origins.get(f"{above}{before.pop(0)}", place) if before else place
    return kept


def _above(path: str) -> Iterator[str]:
    """The path and all that it lies in."""
    words = path.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words) + 1))


def _old_names(found: Difference) -> dict[str, str]:
    """Old paths of tasks and steps by their new ones."""
    names = {f"tasks/{new}": f"tasks/{old}" for old, new in found.renames.items()}
    for item in found.changes:
        if item.op == "rename" and item.path.count("/") > 1:
            names[item.path] = f"{item.path.rpartition('/')[0]}/{item.before}"
    return names


def _renamed(path: str, names: dict[str, str]) -> str:
    """The path as it was before the renames: of its step first, whose path has the task's new name."""
    for above in sorted(_above(path), key=len, reverse=True):
        if above in names:
            path = names[above] + path[len(above) :]
    return path


def _leaves(made: View) -> Iterator[tuple[str, Any]]:
    if made.agent is not None:
        yield "AGENT", made.agent
    if made.level is not None:
        yield "LEVEL", made.level
    if made.start:
        yield "START", made.start
    for path, part in made.settings.items():
        yield path, part.show()
    for kind, items in made.items.items():
        for number, part in enumerate(items, 1):
            yield f"SYSTEM_MODEL/{kind}/{number}", part.show()
    for task in made.tasks.values():
        above = f"tasks/{task.name}"
        yield above, None
        for path, part in task.settings.items():
            yield f"{above}/{path}", part.show()
        for place, steps in (("steps", task.steps), ("checks", task.checks)):
            for step in steps.values():
                yield f"{above}/{place}/{step.name}/kind", step.kind
                for key, part in step.parts.items():
                    yield f"{above}/{place}/{step.name}/{key}", part.show()
        for trigger, target in task.edges.items():
            yield f"{above}/NEXT/{trigger}", target
        for kind, part in task.conditions.items():
            yield f"{above}/{kind}", part.show()
