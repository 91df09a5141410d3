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

from spak import canon
from spak.evolve.gate.privileges import privileged
from spak.lang import Parsed
from spak.lang.diff import Difference, compare
from spak.lang.format import words
from spak.lang.graph import Graph, graph_difference, lay_out, to_svg
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.reviews.kinds import kinds_of

KEPT = 32
TaskLines = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What differs between two texts of a spec, as reviews read it."""

    difference: Difference
    marked: frozenset[str]
    """Paths of privileged changes."""
    graph: Graph
    kinds: frozenset[str]
    """What kinds of edit it has (kinds.py)."""
    layout: bool
    """Whether they differ in blanks, line breaks and commas between items at most, and not in comments."""
    readable: bool
    """Whether both texts have no errors of grammar: else the difference is of what could be read, and it is
    not known what it hides."""
    old_tasks: TaskLines
    """First and last line and name of each task of the text before."""
    new_tasks: TaskLines

    @property
    def widens(self) -> bool:
        """Whether the spec may do more, or it is not known."""
        return "widens" in self.kinds


def read(spec: Spec, old: str, new: str) -> Reading:
    """Compare two texts of a spec, with the files of its team; cached."""
    team_files = TeamFiles.of(spec)
    return _read(team_files, (team_files.stamp(old), team_files.stamp(new)), old, new)


@lru_cache(maxsize=KEPT)
def _read(team_files: TeamFiles, stamps: tuple[Hashable, Hashable], old: str, new: str) -> Reading:
    one, two = team_files.parse(old), team_files.parse(new)
    before, after = team_files.resolve(one).parsed, team_files.resolve(two).parsed
    found = compare(before, after, catalog())
    joined = graph_difference(before.spec, after.spec, found.renames)
    alone = found if stamps == (None, None) else compare(one, two, catalog())
    stage = privileged(old, new, catalog(), found=alone)
    marked = frozenset(str(item["path"]) for item in stage.evidence.get("changes", ()))
    kinds = kinds_of(found, marked, before.spec, after.spec)
    layout = found.equal and one.ok and two.ok and words(one) == words(two)
    if not layout:
        kinds |= {"any"}
    if not (readable := one.ok and two.ok):
        kinds |= {"widens"}
    return Reading(found, marked, joined, kinds, layout, readable, _lines_of_tasks(one), _lines_of_tasks(two))


def read_imports(spec: Spec, *texts: str) -> str:
    """The hash of all that the texts import; empty where they import nothing."""
    team_files = TeamFiles.of(spec)
    stamps = tuple(team_files.stamp(text) for text in texts)
    return _imports(team_files, stamps, texts) if any(one is not None for one in stamps) else ""


@lru_cache(maxsize=KEPT)
def _imports(team_files: TeamFiles, stamps: tuple[Hashable, ...], texts: tuple[str, ...]) -> str:
    found = [team_files.whole(text) for text in texts]
    return canon.content_hash([[dict(one.texts) | {"": ""}, one.policy] for one in found])


def _lines_of_tasks(parsed: Parsed) -> TaskLines:
    text, source, found, line, at = parsed.text, parsed.spec.source, [], 1, 0
    for task in sorted(parsed.spec.tasks(), key=lambda one: one.start):
        start, end = source.offsets(task.start, task.end)
        line, at = line + text.count("\n", at, start), start
        found.append((line, line + text.count("\n", start, end), task.name))
    return tuple(found)


@lru_cache(maxsize=KEPT)
def draw(graph: Graph) -> SafeString | None:
    """The drawing of a reading's graph; None where there is no task."""
    return mark_safe(to_svg(lay_out(graph), prefix="d", style=False)) if graph.nodes else None
