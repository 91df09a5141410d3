"""A trigger of a spec. Fields only; people change it by actions.py. A Receiver has its address and log."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.incoming.models import Receiver
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec, SpecVersion


class Trigger(models.Model):
    """A run of a spec for each message that fits."""

    TEAM_PATH = "spec__team"
    SPEC_PATH = "spec_id"

    spec = models.ForeignKey(Spec, models.PROTECT, related_name="triggers")
    name = models.CharField(max_length=60)
    receiver = models.OneToOneField(Receiver, models.CASCADE, related_name="trigger")
    version = models.ForeignKey(SpecVersion, models.PROTECT, related_name="+", null=True, blank=True)
    """The version that runs; empty: that of the tag, else the newest."""
    tag = models.CharField(max_length=40, blank=True, default="")
    event = models.CharField(max_length=100, blank=True, default="")
    """The event that it is for; empty: any."""
    ref = models.CharField(max_length=200, blank=True, default="")
    """A pattern of full refs; empty: any, and none."""
    mapping = models.JSONField(default=dict, blank=True)
    """Inputs that come from the message: a JSON pointer for each name."""
    inputs = models.JSONField(default=dict, blank=True)
    """Inputs that are the same each time, as texts."""
    source = models.CharField(max_length=40, blank=True, default="")
    """The name of the source whose files the run begins with, at the ref and commit of the message; empty:
    the spec's files."""
    ref_at = models.CharField(max_length=200, default="/ref")
    commit_at = models.CharField(max_length=200, default="/after")
    """Where the message has ref and commit, as JSON pointers."""
    active = models.BooleanField(default=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    """Whoever made it or turned it on last: its runs have this person's rights."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    last_run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("spec", "name"), name="one_trigger_of_a_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.spec.team

    @property
    def runs_what(self) -> str:
        """The version in words."""
        if self.version is not None:
            return f"version {self.version.number}"
        return f"the version tagged {self.tag}" if self.tag else "the newest version"
