"""Whether a spec has a badge, an image of how its last run ended, and for whom: `choose` is an admin's act.

`link`: for whoever has the address, which holds a secret of its own; a new choice of it makes a new address.
`public`: for everybody, at an address with the names of team and spec.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.db import transaction

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.store.specs.models import Badge, Spec

CHOICES = ("off", "link", "public")


def choose(user: Any, spec: Spec, who: str) -> None:
    """Raises: Refused `web.badge`."""
    access.require(user, "team.manage", spec)
    if who not in CHOICES:
        raise Refused("web.badge", "A badge is off, for who has its link, or public.", "Choose one of them.")
    with transaction.atomic():
        Badge.objects.filter(spec=spec).delete()
        if who != "off":
            Badge.objects.create(spec=spec, key=secrets.token_urlsafe(24), public=who == "public")
        record(user, "spec.badge", spec.slug, spec.team, now=who)
