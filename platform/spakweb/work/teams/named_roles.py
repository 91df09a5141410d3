"""Every write to named roles of a team: `keep` makes one or changes its members, `drop` removes it.

Rights are asked here. A named role gives no right: rules of approval (spakweb.store.reviews) go by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import VALUES, Membership, NamedRole, Team
from spakweb.ground.text import one_line

MOST = 50
"""Named roles of a team."""


def keep(user: Any, team: Team, name: str, members: Iterable[int]) -> NamedRole:
    """The named role with exactly these members, by the keys of their memberships; others' are left out.

    Raises: Refused `web.named_role`.
    """
    access.require(user, "team.manage", team)
    name = one_line(name, 40)
    if not name or name.lower() in VALUES:
        taken = f"{name} is a role that every team has." if name else "A named role needs a name."
        raise Refused("web.named_role", taken, "Type a name such as security.")
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=team.pk)
        if not team.named_roles.filter(name=name).exists() and team.named_roles.count() >= MOST:
            raise Refused("web.named_role", f"A team has at most {MOST} named roles.", "Remove one.", 409)
        role, _ = NamedRole.objects.get_or_create(team=team, name=name)
        found = Membership.objects.filter(team=team, pk__in=list(members)).select_related("user")
        before = _names(role)
        role.members.set(found)
        record(user, "team.named_role", name, team, was=before, now=_names(role))
    return role


def drop(user: Any, role: NamedRole) -> None:
    """Remove it. Raises: Refused `web.named_role` while a rule names it."""
    access.require(user, "team.manage", role)
    try:
        with transaction.atomic():
            record(user, "team.named_role_removed", role.name, role.team, was=_names(role))
            role.delete()
    except ProtectedError as error:
        hint = "Take it out of these rules first."
        ruled = [rule for rule in error.protected_objects if hasattr(rule, "spec")]
        specs = sorted({str(rule.spec) if rule.spec else "the team's default" for rule in ruled})
        words = f"{role.name} has to approve edits of {', '.join(specs)}."
        raise Refused("web.named_role", words, hint, 409) from error


def _names(role: NamedRole) -> list[str]:
    return sorted(role.members.values_list("user__username", flat=True))
