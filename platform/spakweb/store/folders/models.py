"""The folder of a source that is kept the same as specs of the team, and what is known of each of its files.

Fields only; people change a folder by actions.py, a worker by steps.py.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.reviews.models import Patch
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec, SpecVersion


class Folder(models.Model):
    """A folder on a branch of a source, and what its latest sync did."""

    TEAM_PATH = "source__team"

    class Out(models.TextChoices):
        """How a version that the repository does not have gets there."""

        NONE = "none", "Nothing: files come in alone"
        COMMIT = "commit", "A commit on the branch"
        PULL = "pull", "A pull request"

    class State(models.TextChoices):
        """The result of the latest sync."""

        NEW = "new", "Not synced yet"
        SAME = "same", "In sync"
        LOOK = "look", "Needs a look"
        FAILED = "failed", "Failed"

    source = models.OneToOneField(Source, models.CASCADE, related_name="folder")
    branch = models.CharField(max_length=255)
    """The whole name, refs/heads/..."""
    path = models.CharField(max_length=200, blank=True, default="")
    """Without a slash at its ends; empty: the whole repository."""
    out = models.CharField(max_length=6, choices=Out, default=Out.NONE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    """Whoever set it up: what comes in is saved with this person's rights."""
    active = models.BooleanField(default=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    state = models.CharField(max_length=6, choices=State, default=State.NEW)
    error = models.CharField(max_length=300, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    """Of the branch, when it was synced last."""
    result = models.JSONField(default=list, blank=True)
    """What the latest sync says of each file that is not as it was: path, spec, what, words."""
    done_at = models.DateTimeField(null=True, blank=True)
    pull_url = models.CharField(max_length=500, blank=True, default="")
    """Where the pull request is that was opened or updated last."""

    def __str__(self) -> str:
        return f"{self.source}: {self.path or '/'} on {self.short_branch}"

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.source.team

    @property
    def short_branch(self) -> str:
        """The branch as people write it."""
        return self.branch.removeprefix("refs/heads/")


class FolderFile(models.Model):
    """A file of a folder and its spec, as they were when both were the same, or were looked at last."""

    TEAM_PATH = "folder__source__team"

    folder = models.ForeignKey(Folder, models.CASCADE, related_name="files")
    path = models.CharField(max_length=250)
    """Below the folder's."""
    spec = models.OneToOneField(Spec, models.CASCADE, related_name="file")
    there = models.CharField(max_length=43, blank=True, default="")
    """The hash of the text that the file had when it was looked at last; empty for no file."""
    base = models.ForeignKey(SpecVersion, models.PROTECT, related_name="+", null=True, blank=True)
    """The version whose text both had last; empty: they never had the same."""
    seen = models.ForeignKey(SpecVersion, models.PROTECT, related_name="+", null=True, blank=True)
    """The newest version when the two were looked at last; empty: the file is to be made."""
    patch = models.ForeignKey(Patch, models.SET_NULL, related_name="+", null=True, blank=True)
    """The patch that the file's text waits in."""
    sent = models.CharField(max_length=43, blank=True, default="")
    """The hash of the text that a pull request has."""
    pull_url = models.CharField(max_length=500, blank=True, default="", db_default="")
    """Where its pull request is, or was."""
    pull_commits = models.JSONField(default=list, db_default=[], blank=True)
    """What the branch of its pull request is at as far as this platform pushed it; two while it is pushed."""

    class Meta:
        ordering = ("path",)
        constraints = (models.UniqueConstraint(fields=("folder", "path"), name="one_file_of_a_path"),)

    def __str__(self) -> str:
        return self.path
