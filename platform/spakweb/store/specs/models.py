"""A spec of a team, its numbered versions that never change, tags that point at versions, drafts of people.

The text of a version is the only truth; `facts` is what `spak.lang` read in it when it was saved: lists need
not parse. What changes rows is in actions.py.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.teams.models import ReviewRules, Team

TAG = RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z", "Letters, digits, dot, dash and underscore.")


class Spec(ReviewRules):
    """A spec of a team; its text is in its versions."""

    TEAM_PATH = "team"
    SPEC_PATH = "pk"

    team = models.ForeignKey(Team, models.PROTECT, related_name="specs")
    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=80)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    own_rules = models.BooleanField(default=False)
    """Whether the rules of review are those of its own row, and not the team's."""
    head = models.OneToOneField(
        "SpecVersion", models.PROTECT, related_name="+", null=True, blank=True, editable=False
    )
    """The newest version; null only inside the transaction that makes the spec."""

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("team", "slug"), name="one_slug_per_team"),)

    def __str__(self) -> str:
        return self.name

    @property
    def review_rules(self) -> ReviewRules:
        """The rules that hold for it: its own, else the team's."""
        return self if self.own_rules else self.team


class SpecVersion(AppendOnly):
    """A text of a spec that was saved; it never changes."""

    TEAM_PATH = "spec__team"
    SPEC_PATH = "spec_id"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    content_hash = models.CharField(max_length=43, db_index=True)
    message = models.CharField(max_length=500, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    restored_from = models.ForeignKey("self", models.PROTECT, related_name="+", null=True, blank=True)
    facts = models.JSONField(default=dict)
    provenance = models.JSONField(default=dict)
    """Of a version that a merge made: patch, revision, proposer, approvals, checks, record of the history. Of
    a text from a repository `origin`: source, path, ref, commit, author."""

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("spec", "number"), name="one_number_per_spec"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="numbers_start_at_one"),
        )

    def __str__(self) -> str:
        return f"{self.spec.slug} v{self.number}"

    @property
    def writer(self) -> str:
        """The name of who wrote the text: of a merged patch its proposer, whoever merged it."""
        if campaign := self.provenance.get("campaign"):
            return f"campaign {campaign}"
        proposer = self.provenance.get("proposer", "")
        return str(self.author) if proposer in ("", self.author.get_username()) else proposer

    @property
    def merged_by(self) -> str:
        """The name of who merged the patch that it is from; empty where no patch made it."""
        return str(self.provenance.get("merged_by", ""))

    @property
    def saved_by(self) -> str:
        """The name of who made it the newest version."""
        return self.merged_by or str(self.author)


class Tag(models.Model):
    """A name for a version; it may be moved to another."""

    TEAM_PATH = "spec__team"
    SPEC_PATH = "spec_id"

    spec = models.ForeignKey(Spec, models.CASCADE, related_name="tags")
    version = models.ForeignKey(SpecVersion, models.PROTECT, related_name="tags")
    name = models.CharField(max_length=40, validators=[TAG])

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("spec", "name"), name="one_tag_per_spec"),)

    def __str__(self) -> str:
        return self.name


class Draft(models.Model):
    """What a person has typed and not saved as a version; one for each person and spec, and one for each
    patch of it that they edit."""

    TEAM_PATH = "spec__team"

    spec = models.ForeignKey(Spec, models.CASCADE, related_name="drafts")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="drafts")
    text = models.TextField()
    patch = models.PositiveIntegerField(default=0)
    """The number of the patch that it is to be a revision of; 0: none."""
    base_version = models.PositiveIntegerField()
    """The number of the version, or of the patch's revision, that the text was made from."""
    saved_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("spec", "user", "patch"), name="one_draft_per_person"),
        )

    def __str__(self) -> str:
        return f"draft of {self.user} for {self.spec}"


class Badge(models.Model):
    """The badge of a spec; no row: there is none."""

    TEAM_PATH = "spec__team"

    spec = models.OneToOneField(Spec, models.CASCADE, primary_key=True, related_name="badge")
    key = models.CharField(max_length=43, unique=True)
    """What stands in its address, where it is not public."""
    public = models.BooleanField()

    def __str__(self) -> str:
        return f"badge of {self.spec_id}"


class ProblemFile(models.Model):
    """A problem of a team, which its specs name: `problem: "problems/rmsnorm.py"`. A run that began keeps the
    text that it began with."""

    TEAM_PATH = "team"

    class State(models.TextChoices):
        """What the check in a sandbox found; its codes are in `found`."""

        QUEUED = "queued", "Being checked"
        GOOD = "good", "In order"
        BAD = "bad", "Has errors"

    team = models.ForeignKey(Team, models.CASCADE, related_name="problem_files")
    name = models.CharField(max_length=100)
    """The path that specs give."""
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=6, choices=State, default=State.QUEUED)
    found = models.JSONField(default=list)
    """Findings: `{code, severity, message, hint}`."""
    saved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    saved_at = models.DateTimeField(default=timezone.now)
    checked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="one_problem_of_a_name"),)

    def __str__(self) -> str:
        return self.name


class ProblemText(models.Model):
    """A text that a problem had before another took its place."""

    TEAM_PATH = "problem__team"

    problem = models.ForeignKey(ProblemFile, models.CASCADE, related_name="earlier")
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    saved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    saved_at = models.DateTimeField()

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.problem} of {self.saved_at}"
