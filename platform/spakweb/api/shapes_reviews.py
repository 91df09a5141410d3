"""The documents of reviews in the API, as serializers, from which the schema is made."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from spakweb.api.shapes import TEXT_BYTES
from spakweb.reviews.models import Comment, Queued, Revision, Verdict
from spakweb.reviews.parts import Edit


class PatchRow(serializers.Serializer):
    """A patch in a list, with its newest revision; by itself it says what a merge waits for."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.CharField()
    proposer = serializers.CharField()
    revision = serializers.IntegerField()
    base_version = serializers.IntegerField()
    hash = serializers.CharField()
    merged_version = serializers.IntegerField(allow_null=True)
    html_url = serializers.CharField()


class Patches(serializers.Serializer):
    """Patches of a spec, the newest first; `next` is the address of the older ones."""

    patches = PatchRow(many=True)
    next = serializers.CharField(allow_null=True)


class RevisionShape(serializers.Serializer):
    """A revision of a patch; it never changes."""

    number = serializers.IntegerField()
    base_version = serializers.IntegerField()
    hash = serializers.CharField()
    author = serializers.CharField()
    why = serializers.CharField()
    made_at = serializers.CharField()


class Revisions(serializers.Serializer):
    """The revisions of a patch, the newest first."""

    revisions = RevisionShape(many=True)


class EditShape(serializers.Serializer):
    """A stretch of lines that differs from the base; line numbers begin with 1."""

    number = serializers.IntegerField(help_text="What `drop-edit` names.")
    old_line = serializers.IntegerField()
    old = serializers.ListField(child=serializers.CharField())
    new_line = serializers.IntegerField()
    new = serializers.ListField(child=serializers.CharField())


class RevisionText(RevisionShape):
    """A revision with its text and its edits."""

    text = serializers.CharField()
    edits = EditShape(many=True)


class VerdictShape(serializers.Serializer):
    """What somebody said of a revision; `counts` holds for an approval that the newest revision still has."""

    by = serializers.CharField()
    revision = serializers.IntegerField()
    approves = serializers.BooleanField()
    counts = serializers.BooleanField()
    text = serializers.CharField()
    made_at = serializers.CharField()


class Verdicts(serializers.Serializer):
    """All verdicts on a patch, the oldest first."""

    verdicts = VerdictShape(many=True)


class CommentShape(serializers.Serializer):
    """A comment; `line` is of the text of `revision`, 0 where it is about no line."""

    id = serializers.IntegerField()
    answers = serializers.IntegerField(allow_null=True, help_text="The comment that it answers.")
    author = serializers.CharField()
    text = serializers.CharField()
    suggestion = serializers.CharField(allow_null=True, help_text="What to put in the line's place.")
    path = serializers.CharField(help_text="The part of the spec, such as tasks/NAME.")
    revision = serializers.IntegerField()
    line = serializers.IntegerField()
    outdated = serializers.BooleanField()
    resolved = serializers.BooleanField()
    made_at = serializers.CharField()


class Comments(serializers.Serializer):
    """The comments on a patch, the oldest first."""

    comments = CommentShape(many=True)


class PlaceShape(serializers.Serializer):
    """A place in the merge queue; the first is merged next."""

    place = serializers.IntegerField()
    patch = serializers.IntegerField()
    revision = serializers.IntegerField()
    by = serializers.CharField()
    made_at = serializers.CharField()


class QueueShape(serializers.Serializer):
    """The merge queue of a spec; `enabled` says whether patches are merged through it."""

    enabled = serializers.BooleanField()
    waiting = PlaceShape(many=True)


class SeenRequest(serializers.Serializer):
    """The newest revision, as the program knows it: with another one nothing is done (409)."""

    revision = serializers.IntegerField(min_value=1)


class ReviseRequest(SeenRequest):
    """The whole text as it should be, or a unified diff against the base of the revision."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False)
    why = serializers.CharField(required=False, allow_blank=True, max_length=500)


class PatchForkRequest(serializers.Serializer):
    """A text made of the newest revision, else that revision itself."""

    text = serializers.CharField(required=False, max_length=TEXT_BYTES, trim_whitespace=False)
    title = serializers.CharField(required=False, max_length=120)


class DropRequest(SeenRequest):
    """The edit, by its number, that the next revision is without, or has alone."""

    edit = serializers.IntegerField(min_value=1)
    why = serializers.CharField(required=False, allow_blank=True, max_length=400)


class CommentRequest(serializers.Serializer):
    """A comment on the patch, a part (`path`), a `line` of a revision, or an answer to another comment."""

    text = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    path = serializers.CharField(required=False, allow_blank=True, max_length=200)
    revision = serializers.IntegerField(required=False, min_value=1, help_text="Else the newest.")
    line = serializers.IntegerField(required=False, min_value=1)
    answers = serializers.IntegerField(required=False, min_value=1)
    suggestion = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=4000,
        help_text="What to put in the line's place; empty: nothing.",
    )  # fmt: skip


class ResolveRequest(serializers.Serializer):
    """Whether the thread is resolved."""

    resolved = serializers.BooleanField()


def revision_of(row: Revision) -> dict[str, Any]:
    """A revision as RevisionShape."""
    return {
        "number": row.number,
        "base_version": row.base.number,
        "hash": row.content_hash,
        "author": str(row.author),
        "why": row.why,
        "made_at": row.made_at.isoformat(),
    }


def edit_of(edit: Edit) -> dict[str, Any]:
    """An edit as EditShape."""
    return {
        "number": edit.number,
        "old_line": edit.old_line,
        "old": list(edit.old),
        "new_line": edit.new_line,
        "new": list(edit.new),
    }


def verdict_of(row: Verdict, counts: bool) -> dict[str, Any]:
    """A verdict as VerdictShape."""
    return {
        "by": str(row.user),
        "revision": row.revision.number,
        "approves": row.approves,
        "counts": counts,
        "text": row.text,
        "made_at": row.made_at.isoformat(),
    }


def comment_of(row: Comment, outdated: bool) -> dict[str, Any]:
    """A comment as CommentShape."""
    return {
        "id": row.pk,
        "answers": row.parent_id,
        "author": str(row.author),
        "text": row.text,
        "suggestion": row.suggestion.removesuffix("\n") if row.suggestion else None,
        "path": row.path,
        "revision": row.revision.number,
        "line": row.line,
        "outdated": outdated,
        "resolved": row.resolved_at is not None,
        "made_at": row.made_at.isoformat(),
    }


def place_of(row: Queued, place: int) -> dict[str, Any]:
    """A place in the queue as PlaceShape."""
    return {
        "place": place,
        "patch": row.patch.number,
        "revision": row.revision.number,
        "by": str(row.user),
        "made_at": row.made_at.isoformat(),
    }
