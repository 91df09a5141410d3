"""Following a spec: mail to a person when one of its runs waits, is paused, failed or was refused.

A person who follows is a row of Webhook, so the outbox, its attempts and its limits are those of webhooks.
Runs of experiments and campaigns are left out. Each mail is to one person, who may still see the run when it
is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.outgoing import Answer
from spakweb.ground.unsafe_text import reveal
from spakweb.store.hooks.models import MAILED, Webhook
from spakweb.store.specs.models import Spec

WORDS = {"waiting": "waits for somebody", "paused": "is paused", "failed": "failed", "refused": "was refused"}
SENT, GONE = 250, 410
"""As SMTP says that a mail was taken, and as the web says that nobody is there any more."""


def can_be_mailed(user: Any) -> bool:
    """Whether mail can reach them."""
    return bool(settings.SENDS_MAIL and user.email)


def follows(user: Any, spec: Spec) -> bool:
    """Whether the person is mailed about runs of the spec."""
    return Webhook.objects.filter(user=user, spec=spec, active=True).exists()


def follow(user: Any, spec: Spec, on: bool) -> None:
    """Begin or end it; idempotent. Raises: Refused `web.follow`."""
    access.require(user, "run.view", spec)
    if on and not can_be_mailed(user):
        hint = "The operator sets SPAK_WEB_SMTP_HOST; your address is on Account."
        raise Refused("web.follow", "No mail can reach you.", hint, 409)
    with transaction.atomic():
        rows = Webhook.objects.filter(user=user, spec=spec)
        if on and not rows.update(active=True):
            Webhook.objects.create(
                team=spec.team, spec=spec, user=user, made_by=user, name=f"mail to {user}"[:60],
                events=",".join(MAILED),
            )  # fmt: skip
        elif not on:
            rows.delete()
        record(user, "spec.followed" if on else "spec.unfollowed", spec.slug, spec.team)


def mail(hook: Webhook, run: Mapping[str, Any]) -> Answer:
    """Send one about the run, as `deliver.payload` describes it. Somebody who has left, or lost the right to
    see it, is gone."""
    person = hook.user
    if not (person.is_active and can_be_mailed(person) and access.can(person, "run.view", hook)):
        return Answer(GONE, why="They have no address, have left, or may not see the run.")
    subject = reveal(f"[SPAK] {run['spec']}: a run {WORDS[run['state']]}")
    reason = f": {run['reason']}" if run["reason"] else ""
    body = f"{run['name']} {WORDS[run['state']]}{reason}.\n\n{run['url']}\n"
    try:
        EmailMessage(subject, reveal(body), None, [person.email]).send()
    except OSError as error:  # smtplib's errors are among them
        return Answer(0, why=f"The mail server did not take it: {type(error).__name__}.")
    return Answer(SENT)
