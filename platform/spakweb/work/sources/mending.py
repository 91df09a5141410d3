"""The team's spec that mends a failing test: the shipped strategy (docs/repair.md) as a spec of the team.

Takes a person and a source; gives a spec whose newest version has the strategy's text, and makes one where
the team has none. It starts no run.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction

from spak import data
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.ground.text import clean, digest
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.specs.actions import create_spec

STRATEGY, NAME = "specs/strategies/repair.spak", "repair"


def may(user: Any, source: Source) -> bool:
    """Whether the person may make the spec and start runs of it."""
    return all(access.can_each(user, source.team, "spec.edit", "run.start"))


def spec_for(user: Any, source: Source) -> Spec:
    """The team's oldest spec of the strategy's text that is not archived, or a new one. Idempotent.

    Raises: PermissionDenied, Http404.
    """
    access.require(user, "spec.edit", source.team)
    access.require(user, "run.start", source.team)
    text = clean(data.path(STRATEGY).read_bytes(), settings.UPLOAD_BYTES)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=source.team_id)  # two clicks make one spec
        specs = Spec.objects.filter(team=source.team, archived_at=None, head__content_hash=digest(text))
        return specs.order_by("pk").first() or create_spec(
            user, source.team, NAME, text, f"To mend tests of {source.name}"
        )
