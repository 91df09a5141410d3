"""A webhook of a team, or mail to a person about a spec, and its deliveries: the outbox that a trigger of the
database fills (triggers.py).

Fields only; people change rows by actions.py and follow.py, deliver.py sends what is in the outbox. No secret
is stored: signing.py derives it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec

EVENTS = ("waiting", "paused", "succeeded", "failed", "refused", "cancelled")
"""States of a run that can be reported. Queued and running alternate while a run goes on, and are not."""
MAILED = ("waiting", "paused", "failed", "refused")
"""States of a run that need a person: those who follow its spec are mailed about them."""
DELIVER = "hooks.deliver"
"""The kind of job that sends a webhook's messages."""
TEST = "test"
"""The event of a delivery that somebody asked for by hand."""


class Webhook(models.Model):
    """An address that is notified of a team's runs; or a person who follows a spec and is mailed about its
    runs, without `url` and secret."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=60)
    url = models.CharField(max_length=2000)
    events = models.CharField(max_length=100)
    """Those of EVENTS that it wants, with commas between."""
    active = models.BooleanField(default=True)
    salt = models.CharField(max_length=48)
    old_salt = models.CharField(max_length=48, blank=True, default="")
    old_until = models.DateTimeField(null=True, blank=True)
    """Until when the secret before the last rotation signs too."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", null=True, blank=True
    )
    spec = models.ForeignKey(Spec, models.CASCADE, related_name="+", null=True, blank=True)
    """Who follows which spec; None for an address."""

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("spec", "user"), name="hooks_followed_once"),)

    def __str__(self) -> str:
        return f"webhook {self.name} of {self.team}"

    @property
    def wanted(self) -> list[str]:
        """Its events."""
        return [event for event in self.events.split(",") if event]


class Delivery(models.Model):
    """One message to one webhook, with the outcome of its last attempt."""

    TEAM_PATH = "webhook__team"

    class State(models.TextChoices):
        """How far the delivery is."""

        DUE = "due", "Pending"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Failed"

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    run = models.ForeignKey(Run, models.CASCADE, related_name="+", null=True, blank=True)
    """None for a test."""
    message = models.CharField(max_length=40, unique=True)
    """Its id, the same at each attempt, so that a receiver can drop repetitions."""
    event = models.CharField(max_length=10)
    count = models.PositiveIntegerField(default=0)
    """Records that the run had."""
    reason = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField()
    body = models.TextField(blank=True, default="")
    """The bytes that are sent, made at the first attempt and the same at each."""
    state = models.CharField(max_length=9, choices=State, default=State.DUE)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(default=0)
    """The HTTP status of the last answer; 0: none came."""
    error = models.CharField(max_length=300, blank=True, default="")
    tried_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-pk",)
        indexes = (
            models.Index(fields=("next_at",), name="hooks_due", condition=models.Q(state="due")),
            models.Index(fields=("webhook", "-id"), name="hooks_log"),
        )

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.webhook.team
