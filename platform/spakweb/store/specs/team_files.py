"""The files that a spec of a team may name with IMPORT, POLICY and `problem:`.

`TeamFiles(team, slug)` is asked for a name and gives bytes: `shared_model.spak` is the newest version of the
team's spec `shared-model`, or of the one whose file in a synced folder has this name, `problems/rmsnorm.py`
the team's problem of that name (problem_files.py); what has neither is looked for beside the shipped
examples. Other folders are those of the examples. `whole` puts the
imports into a text; `stamp` changes when another answer may be given, so that whoever keeps what was parsed
asks again. Texts of other teams are never given, and with `only` no other specs of the team than these, nor
examples in their place, nor problems of the team (store/specs/reach.py).
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from django.db.models import Count, Max
from django.utils.text import slugify

from spak import data
from spak.lang import Parsed, parse
from spak.lang.imports import Resolved, resolve
from spak.lang.spec_files import folder_reader
from spakweb.ground.teams.models import Team
from spakweb.store.specs.models import ProblemFile, Spec, SpecVersion

EXAMPLES = "specs/examples"
NAMED = re.compile(r"\b(?:IMPORT|POLICY|problem)\b", re.IGNORECASE)
"""A text without these words names no file."""


def slug_of(name: str) -> str:
    """The slug that a spec gets from its name; it may be taken, or empty."""
    return slugify(name.replace("_", "-"))[:60]


@dataclass(frozen=True, slots=True)
class TeamFiles:
    """The specs of a team, for imports."""

    team: Team
    slug: str
    only: frozenset[int] | None = None

    @classmethod
    def of(cls, spec: Spec) -> TeamFiles:
        """What a version of the spec may name."""
        return cls(spec.team, spec.slug)

    def read(self, path: str) -> bytes | None:
        """What `resolve` asks: the bytes of a file, or None. Raises: Unreadable."""
        found = self._spec(path)
        return self._other(path) if found is None else found.head.text.encode()

    def _other(self, path: str) -> bytes | None:
        """A problem of the team, else a file of the examples. With `only` none whose name a spec of the team
        could have: a run takes that spec in its place, and whether it exists may not show."""
        if self.only is not None and _is_of_a_spec(path):
            return None
        if path.endswith(".py") and self.only is None:
            rows = ProblemFile.objects.filter(team=self.team, name=path)
            text = rows.values_list("text", flat=True).first()
            if text is not None:
                return str(text).encode()
        return folder_reader(data.path(EXAMPLES) / f"{self.slug}.spak")(path)

    def _spec(self, path: str) -> Spec | None:
        if not _is_of_a_spec(path):
            return None
        rows = Spec.objects.filter(team=self.team).select_related("head", "team")
        if self.only is not None:
            rows = rows.filter(pk__in=self.only)
        named = rows.filter(slug=slug_of(path.removesuffix(".spak"))).first()
        if named is not None:
            return named
        [*renamed] = rows.filter(file__path=path)[:2]
        return renamed[0] if len(renamed) == 1 else None

    def specs_in(self, text: str) -> list[Spec]:
        """The other specs of the team that the text takes in, also through what it imports, by name."""
        return self.taking(text)[1] if NAMED.search(text) else []

    def taking(self, text: str) -> tuple[Resolved, list[Spec]]:
        """The text with its imports put in, and the other specs of the team that they are, by name."""
        found: dict[str, Spec] = {}

        def read(path: str) -> bytes | None:
            one = self._spec(path)
            if one is None:
                return self._other(path)
            found[one.slug] = one
            return one.head.text.encode()

        whole = resolve(self.parse(text), read)
        found.pop(self.slug, None)
        return whole, sorted(found.values(), key=lambda one: (one.name, one.pk))

    def lacks(self, text: str) -> bool:
        """Whether the text, or what it imports, names a file that is not found."""
        if not NAMED.search(text):
            return False
        found: list[bool] = []

        def read(path: str) -> bytes | None:
            data = self.read(path)
            found.append(data is None)
            return data

        resolve(self.parse(text), read)
        return any(found)

    def parse(self, text: str) -> Parsed:
        """The text by itself, under the name by which others import it: a circle is seen."""
        return parse(text, f"{self.slug}.spak")

    def resolve(self, parsed: Parsed) -> Resolved:
        """A text with its imports, which the team's newest versions give."""
        return resolve(parsed, self.read)

    def whole(self, text: str) -> Resolved:
        """The text with its imports put in; what is wrong with them is among its diagnostics."""
        return self.resolve(self.parse(text))

    def stamp(self, text: str) -> Hashable:
        """None where nothing beside the text matters."""
        if not NAMED.search(text):
            return None
        newest = SpecVersion.objects.filter(spec__team=self.team).aggregate(newest=Max("pk"))["newest"]
        problems = ProblemFile.objects.filter(team=self.team).aggregate(Max("saved_at"), Count("pk"))
        return self.team.pk, self.slug, newest, *problems.values()


def _is_of_a_spec(path: str) -> bool:
    """Whether it could be the name of a spec of the team."""
    return "/" not in path and path.endswith(".spak")
