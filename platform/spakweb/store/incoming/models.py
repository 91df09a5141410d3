"""An address that takes signed messages, and the log of those that came. Fields only; actions.py writes.

No secret is stored: it is derived from the platform's key and a salt. No message is stored either, only what
is needed to know it again and to say what became of it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Source


class Receiver(models.Model):
    """An address with a secret: of a source, whose repository reports pushes, or of a trigger."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="receivers")
    source = models.OneToOneField(Source, models.CASCADE, related_name="receiver", null=True, blank=True)
    """The source whose pushes are reported; None: a trigger has it."""
    key = models.CharField(max_length=32, unique=True)
    """What stands in the address."""
    salt = models.CharField(max_length=48)
    old_salt = models.CharField(max_length=48, blank=True, default="")
    old_until = models.DateTimeField(null=True, blank=True)
    """Until when the secret before the last rotation is taken too."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    rotated_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"receiver {self.pk} of {self.team}"


class Received(models.Model):
    """A message that came, and what became of it."""

    TEAM_PATH = "receiver__team"

    class State(models.TextChoices):
        """What became of it."""

        DONE = "done", "Done"
        IGNORED = "ignored", "Ignored"
        HELD = "held", "Nothing started"
        REPEATED = "repeated", "Repeated"
        REFUSED = "refused", "Refused"

    receiver = models.ForeignKey(Receiver, models.CASCADE, related_name="deliveries")
    known_by = models.CharField(max_length=100, blank=True, default="")
    """What its signature covers and no other message has: its id, or the hash of its body; empty
    where the signature or the time was wrong."""
    message = models.CharField(max_length=100, blank=True, default="")
    """Its id, as the sender gave it."""
    event = models.CharField(max_length=100, blank=True, default="")
    ref = models.CharField(max_length=255, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    state = models.CharField(max_length=8, choices=State)
    reason = models.CharField(max_length=300, blank=True, default="")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    """The run that it started."""
    at = models.DateTimeField()

    class Meta:
        ordering = ("-pk",)
        indexes = (models.Index(fields=("receiver", "-id"), name="incoming_log"),)
        constraints = (
            models.UniqueConstraint(
                fields=("receiver", "known_by"), condition=models.Q(state="done"), name="done_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} to {self.receiver_id}: {self.state}"

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.receiver.team
