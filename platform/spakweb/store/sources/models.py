"""A team's git repositories, and where the files of a run came from.

Fields only; people change sources by actions.py, a worker fills a `RunSource` in (freeze.py). Credentials are
sealed with the platform's key (credentials.py); no page, record or event has them.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run


class Source(models.Model):
    """A git repository of a team."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.CASCADE, related_name="sources")
    name = models.SlugField(max_length=40)
    url = models.CharField(max_length=2000)
    """As addresses.py wrote it: no user's password, no query."""
    refs = models.TextField()
    """Patterns of full names, a line each: what runs may begin from."""
    user = models.CharField(max_length=100, blank=True, default="")
    """The name that goes with a token; empty for others."""
    sealed = models.TextField(blank=True, default="")
    """The token, or the private half of the deploy key; empty where none is needed."""
    public_key = models.TextField(blank=True, default="")
    """The public half of the deploy key, as the host of the repository wants it."""
    host_keys = models.TextField(blank=True, default="")
    """What the host proves itself by over ssh: `ssh-ed25519 AAAA...`, a line each."""
    submodules = models.BooleanField(default=False)
    """Whether repositories with submodules are taken, without these."""
    lfs = models.BooleanField(default=False)
    """Whether pointers of Git LFS are taken as the files that they are."""
    forge = models.CharField(max_length=10, blank=True, default="", db_default="")
    """Whose API opens pull requests (forges.py); empty: none does."""
    api_url = models.CharField(max_length=2000, blank=True, default="", db_default="")
    """Where that API is; empty: where the forge has it for the repository's host."""
    api_sealed = models.TextField(blank=True, default="", db_default="")
    """The token of the API; empty: the token of git is."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    rotated_at = models.DateTimeField(null=True, blank=True)
    code = models.CharField(max_length=32, blank=True, default="", db_default="")
    """The key of the model of its code (code_index.py); empty: it was never read."""
    code_ref = models.CharField(max_length=255, blank=True, default="", db_default="")
    code_commit = models.CharField(max_length=64, blank=True, default="", db_default="")
    """What that model is of."""
    code_at = models.DateTimeField(null=True, blank=True)
    """When it was last found that the ref is at this commit."""

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="one_source_of_a_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def patterns(self) -> list[str]:
        """The allowed refs."""
        return self.refs.split()


class Branch(models.Model):
    """A branch that what a run changed goes out on: asked for, approved by a person where something of it
    would run by itself, pushed by a worker."""

    TEAM_PATH = "run__team"
    SPEC_PATH = "run__version__spec_id"

    class State(models.TextChoices):
        """Where it is."""

        ASKED = "asked", "Waits for approval"
        APPROVED = "approved", "To be pushed"
        PUSHED = "pushed", "Pushed"
        FAILED = "failed", "Failed"
        DECLINED = "declined", "Declined"

    run = models.ForeignKey(Run, models.CASCADE, related_name="branches")
    name = models.CharField(max_length=200)
    """Without `refs/heads/`."""
    title = models.CharField(max_length=100)
    """The first line of the commit's message."""
    root = models.CharField(max_length=43)
    """The R3 that was shown to whoever asked and approved."""
    signed = models.CharField(max_length=43, blank=True, default="", db_default="")
    """The digest of what the door said of it, as whoever approved saw that (`spak.door.Leaving`)."""
    state = models.CharField(max_length=8, choices=State, default=State.ASKED)
    commit = models.CharField(max_length=64, blank=True, default="")
    error = models.CharField(max_length=300, blank=True, default="")
    pull = models.BooleanField(default=False, db_default=False)
    """Whether a pull request is opened with it."""
    pull_url = models.CharField(max_length=500, blank=True, default="", db_default="")
    """Where the pull request is, once it is open."""
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    pushed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (models.UniqueConstraint(fields=("run", "name"), name="one_branch_of_a_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.run.team


class RunSource(models.Model):
    """That a run begins with the files of a source at a ref; `commit` is empty until a worker has them."""

    TEAM_PATH = "run__team"

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="begun_from")
    source = models.ForeignKey(Source, models.SET_NULL, null=True, related_name="runs")
    name = models.SlugField(max_length=40)
    url = models.CharField(max_length=2000)
    ref = models.CharField(max_length=255)
    """What was asked for; once it is fetched, the full name of what was found."""
    wanted = models.CharField(max_length=64, blank=True, default="")
    """The commit that the ref has to be at; empty: whichever it is at."""
    commit = models.CharField(max_length=64, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.name} at {self.ref}"
