"""A patch to a spec, its revisions that never change, verdicts and checks that are pinned to a revision,
comments, what each person has viewed, the merge queue, and the signed history of merges.

What changes rows is in actions.py, talk.py, checks.py and protection.py; how many must approve is in
`Spec.review_rules`, and which kinds of edit a named role has to approve in ApprovalRule.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.teams.models import NamedRole, Team
from spakweb.store.specs.models import Spec, SpecVersion


class Patch(models.Model):
    """A proposed change of a spec."""

    TEAM_PATH = "spec__team"
    SPEC_PATH = "spec_id"

    class State(models.TextChoices):
        """What may become of a patch."""

        OPEN = "open"
        MERGED = "merged"
        CLOSED = "closed"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="patches")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=120)
    rationale = models.TextField(blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    """Of a campaign's patch: who brought it."""
    campaign = models.CharField(max_length=120, blank=True)
    """The campaign that proposes it; empty: a person does."""
    origin = models.JSONField(default=dict, db_default={}, blank=True)
    """Of a text from a repository: source, path, ref, commit, author."""
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
        """Its newest revision."""
        return self.revisions.select_related("base", "author").latest("number")

    @property
    def proposer(self) -> str:
        """Who proposed it: a campaign, or a person by name."""
        return f"campaign {self.campaign}" if self.campaign else str(self.author)


class ApprovalRule(models.Model):
    """That a kind of edit (kinds.py) of a spec, or of a team's specs without rules of their own, needs the
    approval of somebody of a named role."""

    TEAM_PATH = "role__team"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="approval_rules", null=True, blank=True)
    team = models.ForeignKey(Team, models.PROTECT, related_name="approval_rules", null=True, blank=True)
    kind = models.CharField(max_length=12)
    role = models.ForeignKey(NamedRole, models.PROTECT, related_name="approval_rules")

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("spec", "kind"), name="one_rule_of_a_kind"),
            models.UniqueConstraint(fields=("team", "kind"), name="one_rule_of_a_kind_of_a_team"),
            models.CheckConstraint(
                condition=models.Q(spec=None, team__isnull=False) | models.Q(spec__isnull=False, team=None),
                name="a_rule_of_a_spec_or_a_team",
            ),
        )


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
    also_by = models.JSONField(default=list, db_default=[], blank=True)
    """Keys of others who wrote a part of it: who suggested a line, who wrote the patch that it began from."""
    rebases = models.ForeignKey("self", models.PROTECT, related_name="+", null=True, blank=True)
    """The revision that it brings up to date without a conflict: no person wrote it."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("patch", "number"), name="one_revision_number"),)


class Verdict(AppendOnly):
    """A person's verdict on one revision; it never changes."""

    TEAM_PATH = "revision__patch__spec__team"

    revision = models.ForeignKey(Revision, models.PROTECT, related_name="verdicts")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    approves = models.BooleanField()
    text = models.CharField(max_length=2000, blank=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("pk",)

    @classmethod
    def standing(cls) -> models.QuerySet[Verdict]:
        """Those that nobody took back."""
        return cls.objects.filter(taken_back=None)


class TakenBack(AppendOnly):
    """That a person took a verdict back: it is as if they had not given it."""

    TEAM_PATH = "verdict__revision__patch__spec__team"

    verdict = models.OneToOneField(Verdict, models.PROTECT, related_name="taken_back")
    made_at = models.DateTimeField(default=timezone.now, editable=False)


class Check(models.Model):
    """One check of one revision; judging it again replaces the row's result."""

    TEAM_PATH = "revision__patch__spec__team"

    class State(models.TextChoices):
        """How far a check is, or how it ended."""

        QUEUED = "queued"
        RUNNING = "running"
        PASSED = "passed"
        LOOK = "look"
        """It found something that a person has to decide."""
        FAILED = "failed"
        NOTHING = "nothing"
        """There was nothing to judge it by."""

    revision = models.ForeignKey(Revision, models.PROTECT, related_name="checks")
    name = models.CharField(max_length=20)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    words = models.CharField(max_length=300, blank=True)
    """The outcome in a sentence."""
    result = models.JSONField(default=dict)
    law = models.CharField(max_length=43, blank=True)
    """The law that it was judged under: another one makes it stale, as do other texts of what is imported
    (`result["imports"]`)."""
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("pk",)
        constraints = (models.UniqueConstraint(fields=("revision", "name"), name="one_check_of_a_name"),)


class Queued(models.Model):
    """That a patch waits in the merge queue of its spec, or how that ended."""

    TEAM_PATH = "patch__spec__team"

    class State(models.TextChoices):
        """Whether a patch waits in the queue, or how it left it."""

        WAITING = "waiting"
        MERGED = "merged"
        REFUSED = "refused"
        """The queue took it out."""
        LEFT = "left"
        """A person took it out, closed the patch or made a new revision."""

    patch = models.ForeignKey(Patch, models.PROTECT, related_name="queued")
    revision = models.ForeignKey(Revision, models.PROTECT, related_name="+")
    """What is to be merged; the queue's own revision once it brought the patch up to date."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    """Who queued it, and merges it."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    words = models.CharField(max_length=300, blank=True)
    """Why it is in the queue no more."""

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("patch",), condition=models.Q(state="waiting"), name="one_place_in_the_queue"
            ),
        )


class Comment(models.Model):
    """A remark on a part of a patch."""

    TEAM_PATH = "patch__spec__team"

    patch = models.ForeignKey(Patch, models.PROTECT, related_name="comments")
    revision = models.ForeignKey(Revision, models.PROTECT, related_name="+")
    parent = models.ForeignKey("self", models.PROTECT, related_name="answers", null=True, blank=True)
    path = models.CharField(max_length=200, blank=True)
    """The part of the spec that it is about, as the list of changes names it."""
    line = models.PositiveIntegerField(default=0)
    """The line of the revision's text; 0: none."""
    quote = models.CharField(max_length=400, blank=True)
    """That line as it was: where the newest text has it no more, the comment is outdated."""
    text = models.CharField(max_length=4000)
    suggestion = models.TextField(blank=True)
    """What to put in the line's place."""
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("pk",)


class Viewed(models.Model):
    """That a person has viewed a part of a patch, as it was then."""

    TEAM_PATH = "patch__spec__team"

    patch = models.ForeignKey(Patch, models.CASCADE, related_name="viewed")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    part = models.CharField(max_length=200)
    digest = models.CharField(max_length=43)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("patch", "user", "part"), name="one_view_of_a_part"),)


class HistoryRecord(AppendOnly):
    """A line of a spec's own ledger: each names the hash of the one before and is signed by the platform."""

    TEAM_PATH = "spec__team"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="history")
    number = models.PositiveIntegerField()
    line = models.BinaryField()
    """Canonical JSON: `previous`, `number`, `at`, `what` and `body`."""
    hash = models.CharField(max_length=43)
    signature = models.CharField(max_length=100)
    key = models.CharField(max_length=60)
    """The id of the key that signed it."""

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("spec", "number"), name="one_record_number_per_spec"),)
