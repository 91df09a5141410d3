"""A patch to a spec, its revisions that never change, verdicts that are pinned to a revision, comments.

What changes rows is in actions.py; how many must approve stands at the spec (`Spec.approvals`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.appendonly import AppendOnly
from spakweb.specs.models import Spec, SpecVersion


class Patch(models.Model):
    TEAM_PATH = "spec__team"

    class State(models.TextChoices):
        OPEN = "open"
        MERGED = "merged"
        CLOSED = "closed"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="patches")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=120)
    rationale = models.TextField(blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    merged = models.OneToOneField(
        SpecVersion, models.PROTECT, related_name="merged_patch", null=True, blank=True
    )
    """The version that the merge made."""
    reverts = models.ForeignKey("self", models.PROTECT, related_name="reverted_by", null=True, blank=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (models.UniqueConstraint(fields=("spec", "number"), name="one_patch_number_per_spec"),)

    def __str__(self) -> str:
        return f"{self.spec.slug} patch {self.number}"

    @property
    def latest(self) -> Revision:
        return self.revisions.select_related("base", "author").latest("number")


class Revision(AppendOnly):
    """A whole text and the version that it was made from."""

    TEAM_PATH = "patch__spec__team"

    patch = models.ForeignKey(Patch, models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    base = models.ForeignKey(SpecVersion, models.PROTECT, related_name="+")
    text = models.TextField()
    content_hash = models.CharField(max_length=43)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    why = models.CharField(max_length=500, blank=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("patch", "number"), name="one_revision_number"),)


class Verdict(AppendOnly):
    TEAM_PATH = "revision__patch__spec__team"

    revision = models.ForeignKey(Revision, models.PROTECT, related_name="verdicts")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    approves = models.BooleanField()
    text = models.CharField(max_length=2000, blank=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("pk",)


class Comment(models.Model):
    TEAM_PATH = "patch__spec__team"

    patch = models.ForeignKey(Patch, models.PROTECT, related_name="comments")
    revision = models.ForeignKey(Revision, models.PROTECT, related_name="+")
    path = models.CharField(max_length=200, blank=True)
    """The part of the spec that it is about, as the list of changes names it."""
    text = models.CharField(max_length=4000)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("pk",)
