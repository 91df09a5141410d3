"""A campaign of a team: what was asked for, its ledger, and the runs that its pairs and its proposer took.

The ledger is the truth (spak.evolve.campaigns says what is in it); `shown` is a projection of it for lists.
The worker that advances a campaign holds its lease under a fence, and every write of it carries the fence.
Rows are written by actions.py and, for that worker, by ledger.py.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.suites.models import Case, Suite


class State(models.TextChoices):
    """What a campaign does."""

    RUNNING = "running"
    PAUSED = "paused"
    """By a person, or by an error that `why` names; it can be resumed. One that waits until a model is back
    is running, and shown as paused (queue.standing)."""
    STOPPED = "stopped"
    """By a person, for good."""
    ENDED = "ended"
    """Its budget or its proposals are used up."""


class Campaign(models.Model):
    """A campaign over a version of a spec."""

    TEAM_PATH = "team"
    SPEC_PATH = "spec_id"

    # what was asked for
    team = models.ForeignKey(Team, models.PROTECT, related_name="campaigns")
    number = models.PositiveIntegerField()
    spec = models.ForeignKey(Spec, models.PROTECT, related_name="campaigns")
    version = models.ForeignKey(SpecVersion, models.PROTECT, related_name="campaigns")
    """The base."""
    suite = models.ForeignKey(Suite, models.PROTECT, related_name="campaigns")
    proposer = models.CharField(max_length=12)
    evolve_runs = models.PositiveIntegerField(default=0)
    """Runs of training cases that evolution may make."""
    asks = models.CharField(max_length=40, blank=True)
    """The backend that proposes, where a model does."""
    backend = models.CharField(max_length=40, blank=True)
    """The backend of its runs; empty: as the spec says."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    # the ledger
    count = models.PositiveIntegerField(default=0)
    head = models.CharField(max_length=43, blank=True)

    # its state
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    why = models.CharField(max_length=300, blank=True)
    """Why it is paused or ended."""
    ended_at = models.DateTimeField(null=True, blank=True)
    shown = models.JSONField(default=dict)
    """The projection: `counts` of verdicts, `runs` that pairs took, `front` (evolve.campaigns.front)."""

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("team", "number"), name="one_campaign_number_per_team"),
            models.CheckConstraint(
                condition=Q(state__in=("running", "paused"), ended_at=None)
                | Q(state__in=("stopped", "ended"), ended_at__isnull=False),
                name="an_ended_campaign_says_when",
            ),
        )
        indexes = (models.Index(F("state"), condition=Q(state="running"), name="campaigns_running"),)

    def __str__(self) -> str:
        return f"campaign {self.number}"

    @property
    def patches_name(self) -> str:
        """How the patches of its candidates begin to call it."""
        return f"{self.number} ({self.suite.slug})"


class CampaignRecord(AppendOnly):
    """A record of a campaign's ledger, with its exact line."""

    TEAM_PATH = "campaign__team"

    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="records")
    seq = models.PositiveIntegerField()
    line = models.BinaryField()

    class Meta:
        ordering = ("campaign", "seq")
        constraints = (models.UniqueConstraint(fields=("campaign", "seq"), name="one_campaign_record"),)


class CampaignRun(AppendOnly):
    """A run that a campaign asked for: a case under a text for the k-th time."""

    TEAM_PATH = "campaign__team"

    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="asked")
    number = models.PositiveIntegerField()
    """The candidate that it judges; 0: evolution scores a text of its own."""
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    k = models.PositiveIntegerField()
    text = models.CharField(max_length=43)
    """The hash of the text that it is to run."""
    attempt = models.PositiveSmallIntegerField(default=0, db_default=0)
    """It is run again where a run gave no result; the newest counts."""
    run = models.OneToOneField(Run, models.PROTECT, related_name="campaign_run")

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("campaign", "number", "case", "k", "text", "attempt"), name="one_run_of_a_pair"
            ),
        )
