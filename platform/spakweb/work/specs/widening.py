"""What a text that is saved directly permits that the spec did not, and who may save it so.

`asked(...)` and `permitted(...)` come before a version is made of a text that nobody reviewed. Where the
team's rule holds, only a person with the right `spec.widen` saves a text that widens, and confirms it once:
`confirmed` is the `confirmation` of the page that showed what widens. Everybody else proposes a patch. A
first version has nothing before it that it could widen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from spak import canon
from spak.lang.diff import Capability, Difference, compare
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.text import plural
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles

LOOKED_AT = 20
"""Versions among which the newest readable one is looked for."""


class Widens(Refused):
    """`web.widens`: the text widens what the spec may do, and is not saved yet."""

    def __init__(self, spec: Spec, found: Sequence[Capability], may: bool, confirmation: str) -> None:
        many = f" and {plural(len(found) - 1, 'more change')}" if len(found) > 1 else ""
        words = f"The text widens what {spec.name} may do: {found[0].why}{many}."
        hint = "Confirm it on the page that shows what widens, or propose the text as a patch."
        if not may:
            hint = "Propose the text as a patch: an admin of the team approves what widens."
        super().__init__("web.widens", words, hint, 409)
        self.found, self.may, self.confirmation = found, may, confirmation


def widens(found: Difference) -> bool:
    """Whether the spec may do more, or it is not known."""
    return any(one.widens is not False for one in found.capabilities) or any(
        one.flag == "widens" for one in found.flags
    )


def is_asked(spec: Spec) -> bool:
    """Whether the rule holds for a spec."""
    return spec.review_rules.guards(spec.team)


def gained(spec: Spec, text: str) -> list[Capability]:
    """What the text permits that the newest version does not, or may permit; nothing where it only narrows.

    A newest version that cannot be read as a whole hides what it had: then it is the newest one that can.
    """
    team_files, new = TeamFiles.of(spec), TeamFiles.of(spec).whole(text).parsed
    found = compare(team_files.whole(_base(spec, team_files).text).parsed, new, catalog())
    return [one for one in found.capabilities if one.widens is not False]


def _base(spec: Spec, team_files: TeamFiles) -> SpecVersion:
    newest = islice(spec.versions.iterator(chunk_size=1), LOOKED_AT)
    return next((one for one in newest if team_files.parse(one.text).ok), spec.head)


def asked(spec: Spec, text: str) -> list[Capability]:
    """What has to be confirmed: what is `gained`, where the rule holds. It compares two texts."""
    return gained(spec, text) if is_asked(spec) else []


def permitted(
    user: Any, spec: Spec, text: str, confirmed: str, found: Sequence[Capability]
) -> dict[str, Any]:
    """What the version keeps of what was `asked`: who widened what. Raises: Widens."""
    if not found:
        return {}
    may, wanted = access.can(user, "spec.widen", spec), confirmation(spec, text)
    if not may or confirmed != wanted:
        raise Widens(spec, found, may, wanted)
    return {"widened": {"by": user.get_username(), "what": [one.why for one in found]}}


def confirmation(spec: Spec, text: str) -> str:
    """What the page that shows a text beside the newest version sends back: it is good for these two."""
    return canon.content_hash(["widens", spec.head.content_hash, text])
