"""The documents of reviews in the API, as serializers, from which the schema is made."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from spakweb.face.api.documents import Address, Document, Moment, With, listing
from spakweb.face.api.shapes.common import TEXT_BYTES
from spakweb.store.reviews.models import Comment, Patch, Revision
from spakweb.store.specs import reach
from spakweb.work.reviews import rules
from spakweb.work.reviews.parts import Edit, edits_of

UNSEEN = "A token that names the imported specs too sees what it says."


class PatchRow(Document):
    """A patch in a list, with its newest revision; by itself it says what a merge waits for."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.CharField()
    proposer = serializers.CharField()
    revision = serializers.IntegerField(source="latest.number")
    base_version = serializers.IntegerField(source="latest.base.number")
    hash = serializers.CharField(source="latest.content_hash")
    merged_version = serializers.IntegerField(source="merged.number", allow_null=True)
    html_url = Address("spak-patch", "spec.team.slug", "spec.slug", "number")


Patches = listing(
    "Patches",
    PatchRow,
    "Patches of a spec, the newest first; `next` is the address of the older ones.",
    pages=True,
)


class CheckShape(Document):
    """A check of a revision."""

    name = serializers.CharField()
    state = serializers.CharField()
    words = serializers.CharField()


class QueueState(Document):
    """How a patch fared in the merge queue last."""

    state = serializers.CharField(help_text="waiting, merged, refused or left.")
    why = serializers.CharField(help_text="Why it is no longer in the queue; else empty.")


class PatchShape(PatchRow):
    """A patch: `missing` says what a merge still waits for."""

    checks = CheckShape(many=True)
    missing = serializers.ListField(child=serializers.CharField())
    queue = QueueState(allow_null=True)

    def to_representation(self, patch: Patch) -> dict[str, Any]:
        """The document of a patch; a token that sees not all that it imports is shown no words about it."""
        latest, sees = patch.latest, sees_whole(self.context["request"].user, patch)
        checks = [With(one, words=one.words if sees else UNSEEN) for one in latest.checks.all()]
        missing = rules.missing(patch) if patch.state == Patch.State.OPEN else []
        queued = patch.queued.last()
        why = queued.words if queued and (sees or not queued.words) else UNSEEN
        more = {
            "latest": latest,
            "checks": checks,
            "missing": missing if sees or not missing else [UNSEEN],
            "queue": {"state": queued.state, "why": why} if queued else None,
        }
        return super().to_representation(With(patch, **more))


def sees_whole(user: Any, patch: Patch) -> bool:
    """Whether a token sees all that the newest revision and its base import."""
    if reach.named(user) is None:
        return True
    return reach.sees_whole(user, patch.spec, patch.latest.base.text, patch.latest.text)


class RevisionShape(Document):
    """A revision of a patch; it never changes."""

    number = serializers.IntegerField()
    base_version = serializers.IntegerField(source="base.number")
    hash = serializers.CharField(source="content_hash")
    author = serializers.CharField()
    why = serializers.CharField()
    made_at = Moment()


Revisions = listing("Revisions", RevisionShape, "The revisions of a patch, the newest first.")


class EditShape(Document):
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

    def get_edits(self, row: Revision) -> list[Edit]:
        """Against its base."""
        return edits_of(row.base.text, row.text)


class VerdictShape(Document):
    """What somebody said of a revision; `counts` holds for an approval that the newest revision still has."""

    by = serializers.CharField(source="user")
    revision = serializers.IntegerField(source="revision.number")
    approves = serializers.BooleanField()
    counts = serializers.BooleanField()
    text = serializers.CharField()
    made_at = Moment()


Verdicts = listing("Verdicts", VerdictShape, "All verdicts on a patch, the oldest first.")


class CommentShape(Document):
    """A comment; `line` is of the text of `revision`, 0 where it is about no line."""

    id = serializers.IntegerField(source="pk")
    answers = serializers.IntegerField(
        source="parent_id", allow_null=True, help_text="The comment that it answers."
    )
    author = serializers.CharField()
    text = serializers.CharField()
    suggestion = serializers.CharField(allow_null=True, help_text="What to put in the line's place.")
    path = serializers.CharField(help_text="The part of the spec, such as tasks/NAME.")
    revision = serializers.IntegerField(source="revision.number")
    line = serializers.IntegerField()
    outdated = serializers.BooleanField()
    resolved = serializers.BooleanField()
    made_at = Moment()

    def get_suggestion(self, row: Comment) -> str | None:
        """Without the end of its line; null where it suggests nothing."""
        return row.suggestion.removesuffix("\n") if row.suggestion else None

    def get_resolved(self, row: Comment) -> bool:
        """Whether its thread is."""
        return row.resolved_at is not None


Comments = listing("Comments", CommentShape, "The comments on a patch, the oldest first.")


class PlaceShape(Document):
    """A place in the merge queue; the first is merged next."""

    place = serializers.IntegerField()
    patch = serializers.IntegerField(source="patch.number")
    revision = serializers.IntegerField(source="revision.number")
    by = serializers.CharField(source="user")
    made_at = Moment()


class QueueShape(Document):
    """The merge queue of a spec; `enabled` says whether patches are merged through it."""

    enabled = serializers.BooleanField()
    waiting = PlaceShape(many=True)


class PatchRequest(serializers.Serializer):
    """A whole text, or a unified diff of it, against a version."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False)
    base_version = serializers.IntegerField(min_value=1)
    title = serializers.CharField(max_length=120)
    rationale = serializers.CharField(required=False, allow_blank=True, max_length=20_000)


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
