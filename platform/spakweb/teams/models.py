"""Users, teams, memberships with a role, invitations by link.

Fields and constraints only; what changes them is in actions.py. A person and a team are never deleted, as
versions and events name them: a person is deactivated, a membership removed.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from spakweb.specs.text import one_line


class Role(StrEnum):
    """In order: each may do what the ones before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def label(self) -> str:
        return self.value.capitalize()


CHOICES = [(role.value, role.label) for role in Role]
VALUES = [role.value for role in Role]


class User(AbstractUser):
    """A person."""

    def __str__(self) -> str:
        return one_line(self.get_full_name(), 80) or self.username  # an issuer may tell any name


class Team(models.Model):
    """Owns specs; whoever is not in it does not learn that it exists."""

    TEAM_PATH = ""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ("name", "pk")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=CHOICES)
    since = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("user__username",)
        constraints = (
            models.UniqueConstraint(fields=("team", "user"), name="one_membership"),
            models.CheckConstraint(condition=models.Q(role__in=VALUES), name="known_role"),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"


class Invitation(models.Model):
    """A link that makes its bearer a member once. Only the hash of its secret is kept."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=CHOICES)
    note = models.CharField(max_length=120, blank=True)
    secret_hash = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    ends_at = models.DateTimeField()
    used_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-made_at", "-pk")
        constraints = (
            models.CheckConstraint(condition=models.Q(role__in=VALUES), name="known_invited_role"),
        )

    def __str__(self) -> str:
        return f"invitation to {self.team} as {self.role}"

    def open(self, now: datetime | None = None) -> bool:
        """True while the link works."""
        return self.used_at is None and self.withdrawn_at is None and (now or timezone.now()) < self.ends_at
