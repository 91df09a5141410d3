"""One event: who did what to what, from where, with the content before and after."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.audit.words import words
from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.teams.models import Team


class Event(AppendOnly):
    """`action` is one of the names in actions.py of the apps; `thing` is the object in words."""

    TEAM_PATH = "team"

    at = models.DateTimeField(default=timezone.now, db_index=True)
    team = models.ForeignKey(Team, models.PROTECT, related_name="events", null=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=40)
    thing = models.CharField(max_length=200, blank=True)
    before = models.CharField(max_length=43, blank=True)
    after = models.CharField(max_length=43, blank=True)
    detail = models.JSONField(default=dict)
    ip = models.GenericIPAddressField(null=True)
    request = models.CharField(max_length=36, blank=True)

    class Meta:
        ordering = ("-pk",)
        indexes = (models.Index(fields=("team", "action")),)

    @property
    def words(self) -> str:
        """The action as people read it."""
        return words(self.action)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor_name} {self.action} {self.thing}"
