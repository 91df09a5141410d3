"""A suite of a team, its cases that never change, experiments on it, and their cells.

A cell is one run: a case under a version for the k-th time. The result of a run is read from the run and not
copied here. Rows are written by actions.py.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run, Upload
from spakweb.store.specs.models import SpecVersion


class Suite(models.Model):
    """A named set of cases of a team."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.PROTECT, related_name="suites")
    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=80)
    seed = models.PositiveBigIntegerField()
    """Splits are drawn from it and the hash of a case."""
    golden = models.JSONField(null=True, blank=True)
    """Names of the cases that people marked as golden here."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("team", "slug"), name="one_suite_slug_per_team"),)

    def __str__(self) -> str:
        return self.name

    @property
    def current(self) -> models.QuerySet[Case]:
        """Its cases as they are now: one that was given sealed checks counts in its new form once these were
        tried before any run and fail there, and in its old form until then."""
        return self.cases.filter(pk__in=current())


class Case(AppendOnly):
    """Inputs and files that a run begins with, and the end that counts as right."""

    TEAM_PATH = "suite__team"

    suite = models.ForeignKey(Suite, models.PROTECT, related_name="cases")
    name = models.CharField(max_length=80)
    content_hash = models.CharField(max_length=43)
    split = models.CharField(max_length=6)
    inputs = models.JSONField(default=dict, blank=True)
    files = models.ForeignKey(Upload, models.PROTECT, related_name="cases", null=True, blank=True)
    state = models.CharField(max_length=10)
    """How a right run ends."""
    reason = models.CharField(max_length=200, blank=True)
    """The codes that it ends with; empty for one that succeeds."""
    origin = models.CharField(max_length=128, blank=True)
    """The key of the run that it was kept from."""
    pack = models.CharField(max_length=43, blank=True, default="")
    """The case's folder, of one that was brought (store/ledger/packs.py); its hash is the kernel's then."""
    history = models.CharField(max_length=43, blank=True, default="", db_default="")
    """The pack with the commits that runs of it see (`Run.history`)."""
    seed = models.PositiveBigIntegerField(default=0)
    recorded = models.BooleanField(default=False)
    """Whether its pack has a recording that answers for the model."""
    checked = models.BooleanField(default=False)
    """Whether files, a validator or sealed checks decide as well: a worker judges its runs."""
    golden = models.BooleanField(default=False)
    """Whether it came marked as golden (`is_golden`)."""
    replaces = models.ForeignKey(
        "self", models.PROTECT, related_name="successors", null=True, blank=True, default=None
    )
    """The case that this one is, with sealed checks: it takes its place when they were tried and hold."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name", "pk")
        constraints = (
            models.UniqueConstraint(fields=("suite", "name"), name="one_case_name_per_suite"),
            models.UniqueConstraint(fields=("suite", "content_hash"), name="one_case_of_the_same_content"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_golden(self) -> bool:
        """Whether no candidate of a campaign may lose it."""
        return self.golden or self.name in (self.suite.golden or ())


class Experiment(models.Model):
    """Its plan is fixed when it is made. `plan` holds what the kernel's experiments call a plan."""

    TEAM_PATH = "suite__team"

    suite = models.ForeignKey(Suite, models.PROTECT, related_name="experiments")
    number = models.PositiveIntegerField()
    plan = models.JSONField()
    sealed = models.PositiveIntegerField(default=0)
    """How many sealed cases it looks at."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    stopped_at = models.DateTimeField(null=True, blank=True)
    ran_out = models.CharField(max_length=8, blank=True, default="")
    """The budget that stopped it: runs, tokens, money or time; empty where a person did."""

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("suite", "number"), name="one_experiment_number"),)

    def __str__(self) -> str:
        return f"{self.suite.slug} experiment {self.number}"

    @property
    def team(self) -> Team:
        """The team of its suite."""
        return self.suite.team


class Cell(AppendOnly):
    """One run of an experiment: a case under a version for the k-th time."""

    TEAM_PATH = "experiment__suite__team"

    experiment = models.ForeignKey(Experiment, models.PROTECT, related_name="cells")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    version = models.ForeignKey(SpecVersion, models.PROTECT, related_name="+")
    label = models.CharField(max_length=80)
    """What the version is called in the plan."""
    k = models.PositiveIntegerField()
    attempt = models.PositiveSmallIntegerField(default=0, db_default=0)
    """It is run again where a run gave no result; the newest counts."""
    run = models.OneToOneField(Run, models.PROTECT, related_name="cell")

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("experiment", "case", "version", "k", "attempt"), name="one_run_per_cell"
            ),
        )


class Vetting(AppendOnly):
    """What trying the sealed checks of a case before any run came to; `trouble` keeps it out of use."""

    TEAM_PATH = "case__suite__team"

    case = models.OneToOneField(Case, models.PROTECT, related_name="vetting")
    trouble = models.CharField(max_length=300, blank=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)


class CaseRun(AppendOnly):
    """A run of a case that a worker is to judge once it has ended."""

    TEAM_PATH = "case__suite__team"

    run = models.OneToOneField(Run, models.PROTECT, related_name="of_case")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")


class Judgement(AppendOnly):
    """The verdict on a run of a checked case."""

    TEAM_PATH = "of__case__suite__team"

    of = models.OneToOneField(CaseRun, models.PROTECT, related_name="judgement")
    outcome = models.CharField(max_length=4)
    why = models.TextField(blank=True)
    results = models.JSONField(default=list)
    """The result of each check (`spak.evolve.suites.sealed`)."""
    made_at = models.DateTimeField(default=timezone.now, editable=False)


def current(at: datetime | None = None) -> models.QuerySet[Case]:
    """Cases of all suites that are in use (see `Suite.current`), or were at a time, for a subquery."""
    holds = models.Q(vetting__trouble="")
    made = models.Q()
    if at is not None:
        holds &= models.Q(vetting__made_at__lte=at)
        made = models.Q(made_at__lte=at)
    taken = Case.objects.filter(holds, replaces__isnull=False).values("replaces")
    in_use = models.Q(replaces=None) | holds
    return Case.objects.filter(made & in_use).exclude(pk__in=taken).order_by().values("pk")


def counted(split: str) -> models.Count:
    """How many cases of a split are in use, to annotate suites with."""
    return models.Count("cases", filter=models.Q(cases__split=split, cases__in=current()), distinct=True)
