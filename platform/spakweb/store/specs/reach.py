"""What a token for some specs alone may see of texts that import other specs (ADR 0062).

For such a token an IMPORT finds the specs that it names; every other name is one that is not there, whether
or not a spec of the team or a shipped example has it. A run may take in specs that its token does not
name; then whatever quotes the text that it runs is refused. Everybody else sees everything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spakweb.ground.errors import Refused
from spakweb.store.specs.models import Spec
from spakweb.store.specs.team_files import TeamFiles

HINT = "Use a token that names the specs that are imported too."


def named(user: Any) -> frozenset[int] | None:
    """The specs that the token of the person is for; None: it is for all, or there is no token."""
    specs = user.token.specs if user.token else None
    return None if specs is None else frozenset(specs)


def files_for(user: Any, spec: Spec) -> TeamFiles:
    """What a text of the spec may import, as the person or the token sees it."""
    return TeamFiles(spec.team, spec.slug, named(user))


def sees_whole(user: Any, spec: Spec, *texts: str) -> bool:
    """Whether each of these texts of a spec finds all that it imports among what the token sees."""
    return named(user) is None or not any(files_for(user, spec).lacks(text) for text in texts)


def require_whole(user: Any, spec: Spec, *texts: str) -> None:
    """Raises: Refused `web.token_imports`; the same for a spec that is another's and for one that is not."""
    if not sees_whole(user, spec, *texts):
        raise Refused(
            "web.token_imports", "The text imports what this token does not reach, or what is not there.",
            HINT, 403,
        )  # fmt: skip


def require_alone(user: Any, spec: Spec, text: str) -> None:
    """For what was made of a text at some time: which specs it took in then, nobody knows.

    Raises: Refused `web.token_imports` for a token for some specs, where the text imports another at all.
    """
    if named(user) is not None and TeamFiles(spec.team, spec.slug, frozenset({spec.pk})).lacks(text):
        raise Refused(
            "web.token_imports", "This may quote specs that the text imports, or imported before.",
            "A token for the whole team sees it.", 403,
        )  # fmt: skip


def hides(user: Any, takes_in: Collection[int] | None) -> bool:
    """Whether a run took in texts that the token does not name (`Run.takes_in`; None: nobody knows)."""
    specs = named(user)
    return specs is not None and (takes_in is None or not specs.issuperset(takes_in))


def require_shown(user: Any, run: Any) -> None:
    """Raises: Refused `web.token_imports` for what quotes the text of such a run."""
    if hides(user, run.takes_in):
        raise Refused(
            "web.token_imports", "The run has the text of specs that this token does not reach.", HINT, 403
        )
