"""What two texts of a spec differ in, read once: pages, rules and checks ask for the same pair often.

`read(spec, old, new)` gives a Reading: the difference, the privileged changes, both graphs as one; `draw` its
drawing.
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
from spakweb.reviews.kinds import kinds_of
from spakweb.specs.facts import catalog
from spakweb.specs.models import Spec
from spakweb.specs.team_files import TeamFiles

KEPT = 32


@dataclass(frozen=True, slots=True)
class Reading:
    difference: Difference
    marked: frozenset[str]
    """Paths of privileged changes."""
    graph: Graph
    kinds: frozenset[str]
    """What kinds of edit it has (kinds.py)."""

    @property
    def widens(self) -> bool:
        """Whether the spec may do more, or it cannot be told."""
        return "widens" in self.kinds


def read(spec: Spec, old: str, new: str) -> Reading:
    team_files = TeamFiles.of(spec)
    return _read(team_files, (team_files.stamp(old), team_files.stamp(new)), old, new)


@lru_cache(maxsize=KEPT)
def _read(team_files: TeamFiles, stamps: tuple[Hashable, Hashable], old: str, new: str) -> Reading:
    before, after = team_files.whole(old).parsed, team_files.whole(new).parsed
    found = compare(before, after, catalog())
    joined = graph_difference(before.spec, after.spec, found.renames)
    stage = privileged(old, new, catalog())
    marked = frozenset(str(item["path"]) for item in stage.evidence.get("changes", ()))
    return Reading(found, marked, joined, kinds_of(found, marked, before.spec, after.spec))


@lru_cache(maxsize=KEPT)
def draw(graph: Graph) -> SafeString | None:
    """The drawing of a reading's graph; None where there is no task."""
    return mark_safe(to_svg(lay_out(graph), prefix="d", style=False)) if graph.nodes else None
