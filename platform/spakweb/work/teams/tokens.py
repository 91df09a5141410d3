"""Tokens, with which a program asks in the place of a person: making, revoking, and whose one is.

A token is `spak_`, 43 letters of chance and six of a check, so that scanners for secrets know one without
asking. It is told once; the table holds its SHA-256. Its scopes say what it may do besides looking
(access.py). It may be for some specs of one team alone. A rotated one is a new token; the one before works
on for as long as was said.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import secrets
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from spakweb.ground import rights
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.logs.redact import TOKEN
from spakweb.ground.teams.models import Team, Token, User
from spakweb.ground.text import one_line

DAYS = (7, 30, 90, 365)
GRACE_HOURS = (0, 1, 24, 168)
"""For how long the secret before a rotation may work on."""
MOST_SPECS = 50
MOST = 20
"""Tokens of one person that work at the same time."""
SHOWN = timedelta(days=30)
"""For how long one that ended is still listed."""
PREFIX = "spak_"

log = logging.getLogger(__name__)


def fresh() -> str:
    """A new secret."""
    made = PREFIX + secrets.token_urlsafe(32)
    return made + _check(made)


def well_formed(secret: str) -> bool:
    """Whether it can be one at all; asks nothing."""
    return TOKEN.fullmatch(secret) is not None and _check(secret[:-6]) == secret[-6:]


def within(text: str) -> bool:
    """Whether a token stands in the text."""
    return PREFIX in text and any(well_formed(found) for found in re.findall(TOKEN, text))


def _check(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.crc32(text.encode()).to_bytes(4, "big")).decode().rstrip("=")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def make(
    user: Any, name: str, days: int, team: Team | None = None, scopes: Iterable[str] = (),
    specs: Iterable[str] = (),
) -> tuple[Token, str]:  # fmt: skip
    """A token and its secret, which is told this once. `specs` are slugs of the team's; none: every spec.

    Raises: Refused `web.name`, `web.token_days`, `web.token_many`, `web.token_scopes`, `web.token_specs`.
    """
    name = one_line(name, 60)
    if not any(letter.isalnum() for letter in name):
        raise Refused("web.name", "A token needs a name with a letter or digit.", "Say which program has it.")
    _check_days(days)
    given = known_scopes(scopes)
    keys = keys_of(team, specs)
    secret = fresh()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two at once are one after the other
        if Token.live().filter(user=user, rule=None).count() >= MOST:
            raise Refused(
                "web.token_many", f"You have {MOST} tokens that work.", "Revoke one that nothing needs.", 409
            )
        ends = timezone.now() + timedelta(days=days)
        made = Token.objects.create(
            user=user, team=team, name=name, secret_hash=_hash(secret), ends_at=ends, scopes=given, specs=keys
        )
        _note("token.made", made, days=days, scopes=given, specs=keys)
    return made, secret


def of_rule(rule: Any, name: str, ends: datetime) -> tuple[Token, str]:
    """A token of a rule for jobs of a CI, and its secret. Whoever asks notes the event."""
    secret = fresh()
    made = Token.objects.create(
        user=rule.made_by, team=rule.team, rule=rule, name=name, secret_hash=_hash(secret),
        scopes=rule.scopes, specs=rule.specs, ends_at=ends, used_on=timezone.now().date(),
    )  # fmt: skip
    return made, secret


def rotate(made: Token, days: int, grace_hours: int) -> tuple[Token, str]:
    """A new token like it, and its secret, told this once. The one before ends at once, or after a grace.

    Raises: Refused `web.token_days`, `web.token_grace`, `web.token_over`.
    """
    _check_days(days)
    if grace_hours not in GRACE_HOURS:
        raise Refused("web.token_grace", "The old token ends now, or after an hour, a day or a week.")
    secret, now = fresh(), timezone.now()
    with transaction.atomic():
        old = Token.objects.select_for_update().get(pk=made.pk)
        if old.revoked_at is not None or old.ends_at <= now:
            raise Refused("web.token_over", "This token has ended.", "Make a new one.", 409)
        new = Token.objects.create(
            user=old.user, team=old.team, name=old.name, secret_hash=_hash(secret), scopes=old.scopes,
            specs=old.specs, ends_at=now + timedelta(days=days),
        )  # fmt: skip
        if grace_hours:
            old.ends_at = min(old.ends_at, now + timedelta(hours=grace_hours))
        else:
            old.revoked_at = now
        old.save(update_fields=["ends_at", "revoked_at"])
        _note("token.rotated", new, days=days, replaces=old.pk, grace_hours=grace_hours)
    return new, secret


def _check_days(days: int) -> None:
    if days not in DAYS:
        raise Refused("web.token_days", "A token works for 7, 30, 90 or 365 days.", "Choose one of them.")


def known_scopes(scopes: Iterable[str]) -> list[str]:
    """Scopes in their order, with `look`. Raises: Refused `web.token_scopes`."""
    wanted = {"look", *scopes}
    if not wanted <= rights.SCOPES.keys():
        known = ", ".join(rights.SCOPES)
        raise Refused("web.token_scopes", "There is no such scope.", f"A token has some of: {known}.")
    return [scope for scope in rights.SCOPES if scope in wanted]


def keys_of(team: Team | None, specs: Iterable[str]) -> list[int] | None:
    """The keys of specs that are named; None where none is. Raises: Refused `web.token_specs`."""
    wanted = set(specs)
    if not wanted:
        return None
    if team is None:
        raise Refused("web.token_specs", "A token for some specs is for one team.", "Choose the team.")
    if len(wanted) > MOST_SPECS:
        raise Refused("web.token_specs", f"A token names at most {MOST_SPECS} specs.", "Name none for all.")
    found = dict(
        team.specs.filter(slug__in=[one for one in wanted if "\0" not in one]).values_list("slug", "pk")
    )
    if unknown := sorted(wanted - found.keys()):
        hint = "Name specs as they stand in the addresses of their pages."
        raise Refused("web.token_specs", f"{team} has no spec {unknown[0][:60]!r}.", hint)
    return sorted(found.values())


def spec_names(found: Iterable[Any]) -> dict[int, list[str]]:
    """Of each token, or rule that gives some, the slugs of the specs that it is for; empty: for all."""
    rows = list(found)
    wanted = {key for one in rows for key in one.specs or ()}
    named = Team.objects.filter(specs__pk__in=wanted).values_list("specs__pk", "specs__slug")
    slugs = dict(named) if wanted else {}
    return {one.pk: sorted(slugs[key] for key in one.specs or () if key in slugs) for one in rows}


def revoke(made: Token) -> None:
    """Twice is once. What is open with it ends within a second (face/streams/viewers.py)."""
    with transaction.atomic():
        if Token.objects.filter(pk=made.pk, revoked_at=None).update(revoked_at=timezone.now()):
            _note("token.revoked", made)


def tokens_of(user: Any) -> QuerySet[Token]:
    """Of a person: those that work, and those whose days are over since not too long."""
    recent = timezone.now() - SHOWN
    return Token.objects.filter(user=user, rule=None, revoked_at=None, ends_at__gt=recent).select_related(
        "team"
    )


def user_of(secret: str) -> User:
    """The person, with `token` set. Raises: Refused `web.token`."""
    if not well_formed(secret):
        raise _refused(
            "This is not a token.", "One begins with spak_ and has 54 letters; copy the whole of it."
        )
    found = Token.objects.select_related("user").filter(secret_hash=_hash(secret)).first()
    if found is None:
        raise _refused("This token is not known here.", "Look whether it was made on this host.")
    hint = "Make a new one on the account page."
    if found.revoked_at is not None:
        raise _refused(f"This token was revoked on {found.revoked_at:%Y-%m-%d}.", hint)
    if found.ends_at <= timezone.now():
        raise _refused(f"This token ended on {found.ends_at:%Y-%m-%d}.", hint)
    if not found.user.is_active:
        raise _refused("The account of this token is closed.", "Ask the operator of the platform.")
    found.user.token = found
    _used(found)
    return found.user


def _refused(message: str, hint: str) -> Refused:
    return Refused("web.token", message, hint, 401)


def _used(token: Token) -> None:
    """The day of its last use; the first one is an event."""
    today = timezone.now().date()
    if token.used_on == today:
        return
    rows = Token.objects.filter(pk=token.pk)
    try:
        with transaction.atomic():
            if rows.filter(used_on=None).update(used_on=today):
                _note("token.first_used", token)
            else:
                rows.update(used_on=today)
    except DatabaseError as error:  # who only looks is not told that nothing can be written
        log.warning("the day of a token's use was not kept: %s", error)


def _note(action: str, token: Token, **detail: Any) -> None:
    """An event of the account, and one of each team that the token reaches now."""
    reached = [token.team] if token.team else list(token.user.teams.all())
    detail |= {"token": token.pk, "teams": "one" if token.team else "all"}
    for team in [None, *reached]:
        record(token.user, action, token.name, team, **detail)
