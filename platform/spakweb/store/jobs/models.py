"""Work that a worker is to do: `Due`, what every such row has, and `Job`, the table of all kinds but runs.

Fields only. `queue.py` asks for work and sweeps, `work.py` does it. `runs.models.Run` is the other table: its
fence and its records are written by one statement, so a run keeps its own row.
"""

from __future__ import annotations

from django.db import models

from spakweb.ground.teams.models import Team


class Due(models.Model):
    """A row of work: whom it belongs to, when it is tried, and which worker holds it."""

    key = models.CharField(max_length=128)
    queue = models.CharField(max_length=60, default="default")
    """Workers of this queue take it."""
    enqueued_at = models.DateTimeField(null=True, blank=True)
    """When a message was sent for it, or a worker last had it; null: a message is to be sent."""
    due = models.DateTimeField(null=True, blank=True)
    """It is not tried before; null: at once."""
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How many times in a row it failed in a way that may pass, or its worker died with it."""
    fence = models.PositiveBigIntegerField(default=0)
    """Grows with each worker that takes it: a worker with a lower one writes nothing any more."""
    holder = models.CharField(max_length=80, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Job(Due):
    """One piece of work of a kind. A kind and a key have one row, which is used again."""

    TEAM_PATH = "team"

    kind = models.CharField(max_length=20)
    team = models.ForeignKey(Team, models.CASCADE, related_name="+")
    wanted_at = models.DateTimeField(null=True, blank=True)
    """Since when it is to be done; null: it is not."""
    error = models.CharField(max_length=300, blank=True, default="")
    """Why it is tried again, or why it failed."""
    result = models.JSONField(default=dict, blank=True)
    """What its kind says of the last time that it was done."""
    done_at = models.DateTimeField(null=True, blank=True)
    """When it was last done, or failed."""

    class Meta:
        ordering = ("pk",)
        constraints = (models.UniqueConstraint(fields=("kind", "key"), name="one_job_of_a_key"),)
        indexes = (
            models.Index(fields=("due",), condition=models.Q(wanted_at__isnull=False), name="jobs_to_do"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
