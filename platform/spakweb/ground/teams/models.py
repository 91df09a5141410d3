"""Users, teams, memberships with a role, named roles, invitations by link, tokens of programs.

Fields and constraints only; what changes them is in actions.py. A person and a team are never deleted, as
versions and events name them: a person is deactivated, a membership removed.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from spakweb.ground.text import one_line


class Role(StrEnum):
    """In order: each may do what the ones before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def label(self) -> str:
        """The role as pages show it."""
        return self.value.capitalize()


CHOICES = [(role.value, role.label) for role in Role]
VALUES = [role.value for role in Role]


class User(AbstractUser):
    """A person."""

    single_keys = models.BooleanField(default=True)
    """Whether pages act on single letters."""
    token: Token | None = None
    """What a program came with, where it is one that asks in the person's place (bearer.py)."""

    def __str__(self) -> str:
        return one_line(self.get_full_name(), 80) or self.username  # an issuer may tell any name


class ReviewRules(models.Model):
    """What a patch needs before it is merged: the default of a team, or the rules of one spec."""

    class Widening(models.TextChoices):
        """Where a text that widens is saved directly by who may widen alone, who confirms it."""

        SHARED = "shared", "in a team of two or more"
        ALWAYS = "always", "always"
        NEVER = "never", "never"

    widening = models.CharField(max_length=6, choices=Widening, default=Widening.SHARED)
    approvals = models.PositiveSmallIntegerField(default=0)
    """How many must approve a change; with any a spec is protected: texts come in by patches alone."""
    privileged_by_admin = models.BooleanField(default=False)
    """Whether each privileged change needs an admin's approval, and not only what widens."""
    required_checks = models.JSONField(default=list, blank=True)
    """Names of the checks of a patch that have to pass before it is merged."""
    merge_queue = models.BooleanField(default=False)
    """Whether patches are merged by the queue alone, one on top of the other."""
    approvals_follow = models.BooleanField(default=False)
    """Whether approvals count for the text that comes of bringing a patch up to date without a conflict."""

    class Meta:
        abstract = True

    def guards(self, team: Team) -> bool:
        """Whether what widens needs the right to widen, or a patch, in that team."""
        shared = self.widening == self.Widening.SHARED and team.memberships.count() > 1
        return shared or self.widening == self.Widening.ALWAYS


class Team(ReviewRules):
    """Owns specs; whoever is not in it does not learn that it exists. Its rules of review hold for its specs
    without rules of their own."""

    TEAM_PATH = ""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    rules = models.TextField(blank=True, default="")
    """What the team's law says besides the operator's: spakweb.ground.teams.law."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    keep_days = models.PositiveIntegerField(null=True, blank=True)
    """Days after which runs that ended are deleted; 0 never; None: as the platform says."""
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ("name", "pk")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a team."""

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


class NamedRole(models.Model):
    """A name for some members, such as `security`, that rules of approval go by. It gives no right by itself,
    and who leaves the team leaves it."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="named_roles")
    name = models.CharField(max_length=40)
    members = models.ManyToManyField(Membership, related_name="named_roles", blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="one_named_role_of_a_name"),)

    def __str__(self) -> str:
        return self.name


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


def look_only() -> list[str]:
    """The scopes of a token that changes nothing."""
    return ["look"]


class Token(models.Model):
    """Lets a program do what its person may, as far as its scopes go. Only the hash of its secret is kept."""

    user = models.ForeignKey(User, models.PROTECT, related_name="tokens")
    team = models.ForeignKey(Team, models.CASCADE, related_name="+", null=True, blank=True)
    """None: every team that the person is in at that moment."""
    name = models.CharField(max_length=60)
    secret_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=look_only)
    """What it may do besides looking: names of rights.SCOPES."""
    rule = models.ForeignKey("oidc.Rule", models.CASCADE, related_name="tokens", null=True, blank=True)
    """Of one that a job of a CI came by (spakweb.ground.oidc): it is on no page of its person's."""
    specs = models.JSONField(null=True, default=None)
    """Keys of the specs that it is for; None: every one of its teams."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    ends_at = models.DateTimeField()
    used_on = models.DateField(null=True, blank=True)
    """The last day, so that a day of use is one write."""
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-made_at", "-pk")

    def __str__(self) -> str:
        return f"token {self.name} of {self.user}"

    @classmethod
    def live(cls) -> models.QuerySet[Token]:
        """Those that work now, as far as it is theirs."""
        return cls.objects.filter(revoked_at=None, ends_at__gt=timezone.now(), user__is_active=True)

    def reaches(self, team: Team) -> bool:
        """Whether the token is for a team."""
        return self.team_id in (None, team.pk)
