"""A schedule of a spec, and what became of its latest time. Fields only; people change it by actions.py."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec


class Schedule(models.Model):
    """Runs of the newest version of a spec, at times that a cron line names."""

    TEAM_PATH = "spec__team"
    SPEC_PATH = "spec_id"

    class Missed(models.TextChoices):
        """What happens to a time that passed while the platform was down."""

        SKIP = "skip", "Leave it out"
        ONCE = "once", "Start one run late"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="schedules")
    name = models.CharField(max_length=60)
    cron = models.CharField(max_length=100)
    """Minute, hour, day, month, day of the week."""
    zone = models.CharField(max_length=60)
    """The time zone that the line is read in, by its IANA name."""
    missed = models.CharField(max_length=4, choices=Missed, default=Missed.SKIP)
    inputs = models.JSONField(default=dict, blank=True)
    source = models.CharField(max_length=40, blank=True, default="")
    """The name of the source that runs begin from; empty: the spec's files."""
    ref = models.CharField(max_length=255, blank=True, default="")
    active = models.BooleanField(default=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    """Whoever made it or turned it on last: its runs have this person's rights."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    next_at = models.DateTimeField()
    last_at = models.DateTimeField(null=True, blank=True)
    last_run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    last_error = models.CharField(max_length=300, blank=True, default="")
    """Why the latest time began no run; empty where it did."""

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("spec", "name"), name="one_schedule_of_a_name"),)
        indexes = (models.Index(fields=("next_at",), condition=models.Q(active=True), name="schedules_due"),)

    def __str__(self) -> str:
        return self.name

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.spec.team
