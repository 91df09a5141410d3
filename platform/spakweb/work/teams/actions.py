"""Every write to the tables of teams: making one, inviting, joining, roles, leaving.

Rights are asked here. A team always keeps one admin. An invitation's secret is shown once, in the link; the
table holds its SHA-256.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from spak.errors import UserError
from spakweb.ground import access, rights
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import of_rules
from spakweb.ground.teams.models import VALUES, Invitation, Membership, Role, Team
from spakweb.ground.text import clean, digest, one_line

RULES_BYTES = 64 * 1024
MOST_DAYS = 36_500


def create_team(user: Any, name: str) -> Team:
    """A team with the person as its admin. Raises: Refused `web.name`."""
    name = one_line(name, 80)
    slug = slugify(name)[:40]
    if not slug:
        raise Refused("web.name", "A team needs a name with at least one letter or digit.", "Type a name.")
    with transaction.atomic():
        team = Team.objects.create(name=name, slug=_free_slug(slug))
        Membership.objects.create(team=team, user=user, role=Role.ADMIN)
        record(user, "team.created", team.slug, team)
    return team


def invite(user: Any, team: Team, role: str, note: str = "") -> tuple[Invitation, str]:
    """An invitation and its secret, which is told this once."""
    access.require(user, "team.manage", team)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        made = Invitation.objects.create(
            team=team,
            role=_role(role),
            note=one_line(note, 120),
            secret_hash=_hash(secret),
            made_by=user,
            ends_at=timezone.now() + timedelta(days=settings.INVITATION_DAYS),
        )
        record(user, "team.invited", made.note, team, role=made.role, invitation=made.pk)
    return made, secret


def invitation(secret: str) -> Invitation | None:
    """The invitation of that secret while its link works."""
    found = Invitation.objects.select_related("team", "made_by").filter(secret_hash=_hash(secret)).first()
    return found if found and found.open() else None


def no_invitation(secret: str) -> Refused:
    """Why a link makes nobody a member."""
    made = Invitation.objects.filter(secret_hash=_hash(secret)).first()
    if made is None:
        why = "There is no such invitation."
    elif made.withdrawn_at is not None:
        why = "This invitation was withdrawn."
    elif made.used_at is not None:
        why = f"This invitation was used on {made.used_at:%Y-%m-%d}. A link works once."
    else:
        why = f"This invitation ended on {made.ends_at:%Y-%m-%d}."
    return Refused("web.invitation", why, "Ask an admin of the team for a new link.", 410)


def join(user: Any, secret: str) -> Team:
    """Use the invitation: the person is a member afterwards, at least with its role.

    Raises: Refused `web.invitation` when the link is used up, withdrawn, too old or none.
    """
    with transaction.atomic():
        now = timezone.now()
        used = Invitation.objects.filter(
            secret_hash=_hash(secret), used_at=None, withdrawn_at=None, ends_at__gt=now
        ).update(used_at=now, used_by=user)
        if not used:
            raise no_invitation(secret)
        made = Invitation.objects.select_related("team").get(secret_hash=_hash(secret))
        member, new = Membership.objects.get_or_create(
            team=made.team, user=user, defaults={"role": made.role}
        )
        if not new and rights.RANK[Role(member.role)] < rights.RANK[Role(made.role)]:
            Membership.objects.filter(pk=member.pk).update(role=made.role)
        record(user, "team.joined", user.username, made.team, role=made.role, invitation=made.pk)
    return made.team


def withdraw(user: Any, made: Invitation) -> None:
    """Withdraw an invitation; idempotent. Raises: Refused where the person may not."""
    access.require(user, "team.manage", made)
    with transaction.atomic():
        if Invitation.objects.filter(pk=made.pk, used_at=None, withdrawn_at=None).update(
            withdrawn_at=timezone.now()
        ):
            record(user, "team.invitation_withdrawn", made.note, made.team, invitation=made.pk)


def keep_runs(user: Any, team: Team, days: str) -> None:
    """For how many days the team keeps runs that ended; 0 for ever, nothing: as the platform says.

    Raises: Refused `web.keep_days`.
    """
    access.require(user, "team.manage", team)
    days = days.strip()
    if days and not (days.isascii() and days.isdigit() and len(days) < 6 and int(days) <= MOST_DAYS):
        hint = f"0 to {MOST_DAYS}, or nothing."
        raise Refused("web.keep_days", f"{days[:40]!r} is not a number of days.", hint)
    now = int(days) if days else None
    with transaction.atomic():
        was = Team.objects.select_for_update().get(pk=team.pk).keep_days
        if was != now:
            Team.objects.filter(pk=team.pk).update(keep_days=now)
            record(user, "team.keep_runs", team.slug, team, was=was, now=now)


def set_role(user: Any, member: Membership, role: str) -> None:
    """Raises: Refused `web.last_admin`, `web.role`."""
    access.require(user, "team.manage", member)
    wanted = _role(role)
    with transaction.atomic():
        _keep_an_admin(member, wanted == Role.ADMIN)
        Membership.objects.filter(pk=member.pk).update(role=wanted)
        record(user, "team.role", member.user.username, member.team, was=member.role, now=str(wanted))


def remove(user: Any, member: Membership) -> None:
    """Take a member out of the team; everyone may take out themselves. Raises: Refused `web.last_admin`."""
    access.require(user, "team.view" if member.user_id == user.pk else "team.manage", member)
    with transaction.atomic():
        _keep_an_admin(member, False)
        record(user, "team.left", member.user.username, member.team, was=member.role)
        member.delete()


def set_rules(user: Any, team: Team, text: str) -> None:
    """The rules of runs that begin from now on. Raises: Refused `web.team_rules`, `web.text`."""
    access.require(user, "team.manage", team)
    if len(text.encode("utf-8", "surrogatepass")) > RULES_BYTES:
        raise Refused("web.team_rules", f"Rules have at most {RULES_BYTES // 1024} KB.", "Say less.", 413)
    text = clean(text).strip()
    text += "\n" if text else ""
    try:
        of_rules(text)
    except UserError as error:
        raise Refused("web.team_rules", f"The rules do not load: {error.message}", error.hint) from error
    with transaction.atomic():
        row = Team.objects.select_for_update().get(pk=team.pk)
        if row.rules != text:
            Team.objects.filter(pk=team.pk).update(rules=text)
            record(user, "team.rules", team.slug, team, before=digest(row.rules), after=digest(text))
    team.rules = text


def _keep_an_admin(member: Membership, stays: bool) -> None:
    admins = Membership.objects.select_for_update().filter(team=member.team, role=Role.ADMIN)
    if not stays and {row.pk for row in admins} == {member.pk}:
        raise Refused(
            "web.last_admin",
            f"{member.user} is the only admin of {member.team}.",
            "Make another admin first.",
            409,
        )


def _role(role: str) -> Role:
    if role not in VALUES:
        raise Refused("web.role", f"{role[:40]!r} is not a role.", "Roles are " + ", ".join(VALUES) + ".")
    return Role(role)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _free_slug(slug: str) -> str:
    taken = set(Team.objects.filter(slug__startswith=slug).values_list("slug", flat=True))
    numbers = (f"{slug[:35]}-{number}" for number in range(2, len(taken) + 3))
    return slug if slug not in taken else next(name for name in numbers if name not in taken)
