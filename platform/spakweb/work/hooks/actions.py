"""Every write that people make to webhooks. An admin's acts, each an event of the team."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from spak.policy import urls
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.outgoing import is_web_port
from spakweb.ground.teams.models import Team
from spakweb.ground.text import one_line
from spakweb.store.hooks.models import DELIVER, EVENTS, TEST, Delivery, Webhook
from spakweb.work.hooks import signing
from spakweb.work.jobs import queue

MOST = 20
"""Webhooks of one team."""
OVERLAP = timedelta(hours=24)
"""For so long after a rotation the secret before signs too."""


def add(user: Any, team: Team, url: str, events: Iterable[str], name: str = "") -> tuple[Webhook, str]:
    """A webhook and its secret, which is shown this once. Raises: Refused `web.webhook_url`,
    `web.webhook_events`, `web.webhook_many`."""
    access.require(user, "team.manage", team)
    parsed = _checked(url.strip())
    wanted = [event for event in EVENTS if event in set(events)]
    if not wanted:
        hint = f"Choose at least one: {', '.join(EVENTS)}."
        raise Refused("web.webhook_events", "A webhook needs an event to report.", hint)
    salt = secrets.token_hex(24)
    with transaction.atomic():
        list(Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values_list("pk"))
        if Webhook.objects.filter(team=team, user=None).count() >= MOST:
            raise Refused("web.webhook_many", f"A team has at most {MOST} webhooks.", "Remove one.", 409)
        made = Webhook.objects.create(
            team=team, name=one_line(name, 60) or parsed.host[:60], url=url.strip(), events=",".join(wanted),
            salt=salt, made_by=user,
        )  # fmt: skip
        record(user, "webhook.made", made.name, team, webhook=made.pk, host=parsed.host, events=wanted)
    return made, signing.secret_of(salt)


def _checked(url: str) -> urls.Url:
    """The address in its parts: a full host name, never a number, as the gate reads all addresses. Where the
    name leads is judged at each attempt. Raises: Refused `web.webhook_url`."""
    parsed = urls.parse(url)
    if isinstance(parsed, urls.Trouble):
        raise _bad(f"This is not an address: {parsed.detail}.", "Write https://host/path.")
    inside = set(settings.WEBHOOK_REACH) - {"public"}
    if parsed.scheme != "https" and not (parsed.scheme == "http" and inside):
        raise _bad("A webhook needs https.", "Write https://host/path.")
    if not is_web_port(parsed.port):
        raise _bad(f"Port {parsed.port} is not one of the web.", "Use 80, 443, or 1024 and above.")
    if parsed.fragment:
        raise _bad("The part after # is never sent.", "Leave it out.")
    return parsed


def _bad(message: str, hint: str) -> Refused:
    return Refused("web.webhook_url", message, hint)


def switch(user: Any, hook: Webhook, on: bool) -> None:
    """Turn it on or off. What happens while it is off is not reported later."""
    access.require(user, "team.manage", hook)
    with transaction.atomic():
        if Webhook.objects.filter(pk=hook.pk, active=not on).update(active=on):
            if not on:
                error = "The webhook was turned off."
                hook.deliveries.filter(state=Delivery.State.DUE).update(
                    state=Delivery.State.FAILED, error=error
                )
            record(user, "webhook.on" if on else "webhook.off", hook.name, hook.team, webhook=hook.pk)


def rotate(user: Any, hook: Webhook) -> str:
    """A new secret, shown this once; the one before signs too for OVERLAP."""
    access.require(user, "team.manage", hook)
    salt = secrets.token_hex(24)
    with transaction.atomic():
        found = Webhook.objects.select_for_update(no_key=True).get(pk=hook.pk)
        found.old_salt, found.old_until, found.salt = found.salt, clock.now() + OVERLAP, salt
        found.save(update_fields=["old_salt", "old_until", "salt"])
        record(user, "webhook.rotated", hook.name, hook.team, webhook=hook.pk)
    return signing.secret_of(salt)


def remove(user: Any, hook: Webhook) -> None:
    """Delete it with its log."""
    access.require(user, "team.manage", hook)
    with transaction.atomic():
        record(user, "webhook.removed", hook.name, hook.team, webhook=hook.pk)
        hook.delete()


def test(user: Any, hook: Webhook) -> Delivery:
    """Put a test message into the outbox, to be sent now. Raises: Refused `web.webhook_off`."""
    access.require(user, "team.manage", hook)
    _on(hook)
    now = clock.now()
    with transaction.atomic():
        made = Delivery.objects.create(
            webhook=hook, message=f"msg_{secrets.token_hex(16)}", event=TEST, at=now, next_at=now
        )
        queue.want(DELIVER, hook.pk, hook.team_id)
        record(user, "webhook.tested", hook.name, hook.team, webhook=hook.pk)
    return made


def redeliver(user: Any, row: Delivery) -> None:
    """Send it again now, under the same id, with all its attempts before it. Raises: Refused
    `web.webhook_off`."""
    access.require(user, "team.manage", row)
    _on(row.webhook)
    with transaction.atomic():
        Delivery.objects.filter(pk=row.pk).update(
            state=Delivery.State.DUE, tries=0, next_at=clock.now(), error="", status=0
        )
        queue.want(DELIVER, row.webhook_id, row.webhook.team_id)
        record(
            user, "webhook.redelivered", row.webhook.name, row.team, webhook=row.webhook_id, id=row.message
        )


def _on(hook: Webhook) -> None:
    if not hook.active:
        raise Refused("web.webhook_off", "This webhook is off.", "Turn it on first.", 409)
