"""Mail about patches to those who must act, where the platform sends mail; the inbox shows the same always.

Each function is called inside the transaction of what it reports; mail goes out when that commits, and what
a mail server answers is logged and fails nothing. Nobody gets a notice of what they did themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse

from spakweb.ground import access, rights
from spakweb.ground.teams.models import Membership, Role
from spakweb.ground.unsafe_text import reveal
from spakweb.store.reviews.models import Comment, Patch, Queued, Revision, Verdict
from spakweb.work.reviews import rules

log = logging.getLogger(__name__)
REVIEWERS = [role for role, rank in rights.RANK.items() if rank >= rights.RANK[rights.ACTIONS["spec.review"]]]
MOST = 50
"""People that one notice goes to."""


def proposed(patch: Patch, by: Any) -> None:
    """To those who may review it."""
    rows = Membership.objects.filter(team=patch.spec.team, role__in=map(Role, REVIEWERS))
    people = [row.user for row in rows.select_related("user")[:MOST]]
    _mail(patch, by, people, f"{by} asks for your review.")


def judged(verdict: Verdict) -> None:
    """To the proposer: a verdict on the patch."""
    word = "approved it" if verdict.approves else "asks for changes"
    _to_author(verdict.revision, verdict.user, f"{verdict.user} {word}. {verdict.text}")


def revised(revision: Revision, by: Any) -> None:
    """To the proposer, with the reason, and to those who judged an earlier revision and have to again."""
    if revision.rebases is None:
        _to_author(revision, by, f"{by} made revision {revision.number}. {revision.why}")
    patch = revision.patch
    if not settings.SENDS_MAIL:
        return
    done = {patch.author_id, *(one.user_id for one in rules.standing_approvals(patch))}
    rows = Verdict.standing().filter(revision__patch=patch).exclude(user__in=done).select_related("user")
    people = {one.user_id: one.user for one in rows if access.can(one.user, "spec.review", patch)}
    words = f"{by} made revision {revision.number}: your verdict was on an earlier one. {revision.why}"
    _mail(patch, by, people.values(), words)


def commented(comment: Comment) -> None:
    """To the proposer, and to the author of the comment that is answered."""
    people = [comment.patch.author]
    if comment.parent is not None:
        people.append(comment.parent.author)
    _mail(comment.patch, comment.author, people, f"{comment.author} wrote: {comment.text}")


def merged(patch: Patch, by: Any) -> None:
    """`by` is nobody where the queue merged it."""
    _mail(patch, by, [patch.author], f"{by or 'The merge queue'} merged it.")


def left_queue(entry: Queued, why: str) -> None:
    """To the author and who queued it: the queue took it out."""
    people = [entry.patch.author, entry.user]
    _mail(entry.patch, None, people, f"The merge queue took it out: {why}.")


def _origin() -> str:
    """How the address of the platform begins, where it is set."""
    return next(iter(settings.CSRF_TRUSTED_ORIGINS), "").rstrip("/")


def _to_author(revision: Revision, by: Any, text: str) -> None:
    _mail(revision.patch, by, [revision.patch.author], text)


def _mail(patch: Patch, by: Any, people: Iterable[Any], text: str) -> None:
    if not settings.SENDS_MAIL:
        return
    found = {one.email for one in people if one != by and one.is_active and one.email}
    where = reverse("spak-patch", args=[patch.spec.team.slug, patch.spec.slug, patch.number])
    subject = reveal(f"[SPAK] {patch.spec.name} #{patch.number}: {patch.title}")
    body = f"{reveal(text.strip())}\n\n{_origin()}{where}\n"

    def go() -> None:
        try:
            EmailMessage(subject, body, None, [], sorted(found)).send()
        except OSError as error:  # smtplib's errors are among them
            log.warning("no mail about %s went out: %s", patch, type(error).__name__)

    if found:
        transaction.on_commit(go, robust=True)  # an address may be one that the mail server cannot take
