"""A runner: a worker of this installation, what it serves, and how it was when it was last heard.

Runners are the installation's and not a team's: every team's runs go over the same ones. What one does just
now is not kept here: its process holds leases, and the runs know those.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone

from spakweb.ground import clock

SILENT = timedelta(seconds=30)
"""One that was not heard for so long counts as gone."""


class Runner(models.Model):
    """A worker process that has said that it is there."""

    name = models.CharField(max_length=80, unique=True)
    token_hash = models.CharField(max_length=64, blank=True)
    """SHA-256 of its token; empty for one that this installation started itself."""
    queues = models.JSONField(default=list)
    labels = models.JSONField(default=list, blank=True)
    registered_at = models.DateTimeField(default=timezone.now, editable=False)
    seen_at = models.DateTimeField(null=True, blank=True)
    process = models.CharField(max_length=80, blank=True)
    """As the leases of runs name it."""
    slots = models.PositiveIntegerField(default=1)
    """How many runs it advances at a time."""
    devices = models.JSONField(default=list, blank=True)
    """What NVML told, in the order of the devices; a reading that the driver does not give is absent."""

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def alive(self) -> bool:
        """Whether its last heartbeat is recent."""
        return self.seen_at is not None and abs(clock.now() - self.seen_at) < SILENT
