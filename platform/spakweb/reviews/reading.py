"""What two texts of a spec differ in, read once: pages, rules and checks ask for the same pair often.

`read(spec, old, new)` gives a Reading: the difference, the privileged changes, one drawing of both graphs.
Kept by the texts and by what they import.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe

from spak.lang.diff import Difference, compare
from spak.lang.graph import Graph, graph_difference, lay_out, to_svg
from spak.outer.gate.privileges import privileged
from spakweb.specs.beside import Beside
from spakweb.specs.facts import catalog
from spakweb.specs.models import Spec

KEPT = 32


@dataclass(frozen=True, slots=True)
class Reading:
    difference: Difference
    marked: frozenset[str]
    """Paths of privileged changes."""
    graph: Graph
    svg: SafeString | None

    @property
    def widens(self) -> bool:
        """Whether the spec may do more, or it cannot be told."""
        found = self.difference
        return any(one.widens is not False for one in found.capabilities) or any(
            one.flag == "widens" for one in found.flags
        )


def read(spec: Spec, old: str, new: str) -> Reading:
    beside = Beside.of(spec)
    return _read(beside, (beside.stamp(old), beside.stamp(new)), old, new)


@lru_cache(maxsize=KEPT)
def _read(beside: Beside, stamps: tuple[Hashable, Hashable], old: str, new: str) -> Reading:
    before, after = beside.whole(old).parsed, beside.whole(new).parsed
    found = compare(before, after, catalog())
    joined = graph_difference(before.spec, after.spec, found.renames)
    svg = mark_safe(to_svg(lay_out(joined), prefix="d", style=False)) if joined.nodes else None
    stage = privileged(old, new, catalog())
    marked = frozenset(str(item["path"]) for item in stage.evidence.get("changes", ()))
    return Reading(found, marked, joined, svg)
