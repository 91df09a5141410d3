"""Writes about a patch that change no text: comments, answers, suggestions, what a person has viewed.

A comment is about a part of the spec, a line of a revision, or the patch. It stays with the patch; `outdated`
says whether what it was about is gone.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.text import clean, one_line
from spakweb.store.reviews.models import Comment, Patch, Revision, Viewed
from spakweb.work.reviews import actions, notices

COMMENT_CHARS = 4_000


def comment(
    user: Any,
    patch: Patch,
    text: str,
    path: str = "",
    *,
    line: int = 0,
    seen: int = 0,
    answers: int = 0,
    suggestion: str | None = None,
) -> Comment:
    """About the patch, a part (`path`) or a `line` of revision `seen`; `answers` names another comment, which
    it joins. A `suggestion` is what to put in the line's place.

    Raises: Refused `web.comment`, `web.comment_place`.
    """
    access.require(user, "spec.propose", patch)
    text, suggestion = _bounded(text).strip(), None if suggestion is None else _bounded(suggestion)
    if not text and suggestion is None:
        raise _refused()
    with transaction.atomic():
        parent = patch.comments.filter(pk=answers).first() if answers else None
        revision = patch.revisions.filter(number=seen).first() if seen else patch.latest
        lines = revision.text.split("\n") if revision else []
        if revision is None or (answers and parent is None) or not 0 <= line <= len(lines):
            raise Refused("web.comment_place", "What the comment is about is not there.", "Reload.", 409)
        if suggestion is not None and not line:
            raise Refused("web.comment_place", "A suggestion is made for a line.", "Name the line.", 409)
        if parent is not None and parent.parent is not None:
            parent = parent.parent
        quote = lines[line - 1][:400] if line else ""
        made = Comment.objects.create(
            patch=patch, revision=revision, parent=parent, path=one_line(path, 200), line=line, quote=quote,
            text=text, suggestion="" if suggestion is None else suggestion or "\n", author=user,
        )  # fmt: skip
        record(user, "patch.commented", f"{patch} r{revision.number}", patch.spec.team)
        notices.commented(made)
    return made


def _bounded(text: str) -> str:
    if len(text) > COMMENT_CHARS:
        raise _refused()
    return clean(text, COMMENT_CHARS * 4)


def _refused() -> Refused:
    words = f"A comment has 1 to {COMMENT_CHARS} characters."
    return Refused("web.comment", words, "Write it shorter.", 413)


def resolve(user: Any, patch: Patch, key: int, resolved: bool = True) -> None:
    """Resolve the thread that a comment begins, or open it again; nothing where it is so already."""
    access.require(user, "spec.propose", patch)
    rows = patch.comments.filter(pk=key, parent=None, resolved_at__isnull=resolved)
    with transaction.atomic():
        if rows.update(resolved_at=timezone.now() if resolved else None):
            action = "patch.resolved" if resolved else "patch.unresolved"
            record(user, action, str(patch), patch.spec.team)


def outdated(comment: Comment, latest: Revision, paths: set[str]) -> bool:
    """Whether the newest revision has the line, or changes the part, no more."""
    if comment.revision_id == latest.pk:
        return False
    if comment.line:
        return comment.quote not in [line[:400] for line in latest.text.split("\n")]
    return bool(comment.path) and comment.path not in paths


def take(user: Any, patch: Patch, seen: int, key: int) -> Revision:
    """The suggestion of a comment as an edit: a new revision. Raises: Refused `web.suggestion`."""
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        found = patch.comments.filter(pk=key).exclude(suggestion="").first()
        latest = patch.latest
        lines = latest.text.split("\n")
        places = [place for place, line in enumerate(lines) if found and line[:400] == found.quote]
        if found is None or not found.line or not places:
            raise Refused(
                "web.suggestion", "The line that it was made for is not there.", "Edit the text instead.", 409
            )
        at = min(places, key=lambda place: abs(place + 1 - found.line))
        wanted = found.suggestion.rstrip("\n")
        lines[at : at + 1] = wanted.split("\n") if found.suggestion != "\n" else []
        why = f"Suggestion of {found.author.get_username()}, line {at + 1}"
        made = actions.revise(user, patch, seen, "\n".join(lines), why, also_by=[found.author_id])
        resolve(user, patch, found.parent_id or found.pk)
    return made


def view(user: Any, patch: Patch, part: str, digest: str, viewed: bool = True) -> None:
    """The person has viewed a part, as it is with this digest."""
    access.require(user, "spec.view", patch)
    row = {"patch": patch, "user": user, "part": one_line(part, 200)}
    if viewed:
        Viewed.objects.update_or_create(**row, defaults={"digest": one_line(digest, 43)})
    else:
        Viewed.objects.filter(**row).delete()
