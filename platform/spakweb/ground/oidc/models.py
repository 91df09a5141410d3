"""Rules of a team that let jobs of a CI in without a secret of the team, and the id tokens that were used up.

Fields only; what changes them is in actions.py.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team, look_only


class Kind(models.TextChoices):
    """Whose id tokens they are: what their claims are called."""

    GITHUB = "github", "GitHub"
    GITLAB = "gitlab", "GitLab"


class Rule(models.Model):
    """Which jobs get a token of the team, and what it may do. It stands for whoever made the rule: what they
    may not do any more, it may not do either."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="oidc_rules")
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    issuer = models.CharField(max_length=200)
    audience = models.CharField(max_length=200)
    repository = models.CharField(max_length=200)
    repository_id = models.CharField(max_length=40, blank=True, default="")
    """What the issuer calls the repository of the first job; one that takes its name later has another."""
    ref = models.CharField(max_length=200)
    """A pattern of whole refs, such as refs/heads/main or refs/tags/v*."""
    environment = models.CharField(max_length=100, blank=True, default="")
    """Empty: jobs of any environment, and of none."""
    scopes = models.JSONField(default=look_only)
    specs = models.JSONField(null=True, default=None)
    """Keys of the specs that its tokens are for; None: every spec of the team."""
    minutes = models.PositiveIntegerField()
    """For how long its tokens work."""
    once = models.BooleanField(default=True)
    """Whether an id token is exchanged once."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("made_at", "pk")
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="one_rule_of_a_name"),)

    def __str__(self) -> str:
        return f"rule {self.name} of {self.team}"


class UsedToken(models.Model):
    """An id token that was exchanged, by the hash of its `jti`, until it ends by itself."""

    rule = models.ForeignKey(Rule, models.CASCADE, related_name="used")
    jti_hash = models.CharField(max_length=64)
    ends_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("rule", "jti_hash"), name="one_use_of_a_token"),)

    def __str__(self) -> str:
        return f"used token of {self.rule_id}"
