"""That the spans of a run were sent, or how often that was tried in vain."""

from __future__ import annotations

from django.db import models

from spakweb.runs.models import Run


class Sent(models.Model):
    """One run's spans, as far as sending them has come."""

    TEAM_PATH = "run__team"

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="spans_sent")
    at = models.DateTimeField(null=True, blank=True)
    """When the collector took them; null: it has not."""
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    """When it is tried again, or may count as lost."""
    error = models.CharField(max_length=200, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.run_id}: {self.at or self.tries}"
