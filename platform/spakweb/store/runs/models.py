"""A run of a team, its records, its blobs, and what people asked of it.

`Run` holds three kinds of columns: what was asked for (never changed but for labels, the mode that the spec
chose, and the backend that somebody called), the ledger's head and lease, and a projection of its records
(store/ledger/projection.py makes it, store/ledger/writer.py writes it, `manage.py rebuild` makes it again).
Who asks something of a run that nobody holds, or puts one back into its queue, sets its state too,
and frees a lease that is over. A `RunRecord` is one line of the ledger and stays as it is, until
its run is deleted (work/worker/retention.py): then the row of the run is what is left of it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from spakweb.ground.database.appendonly import AppendOnly
from spakweb.ground.database.stored import StoredBytes
from spakweb.ground.teams.models import Team
from spakweb.store.jobs.models import Due
from spakweb.store.specs.models import Spec, SpecVersion


class State(models.TextChoices):
    """The states of a run that are stored."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


class Trial(models.TextChoices):
    """What a run was started for, where no person started it for itself."""

    EXPERIMENT = "experiment"
    CAMPAIGN = "campaign"


SANDBOXES = ("", "docker", "gvisor")
"""What a run may ask for; a spec's SANDBOX may name more, a worker may give more."""
TRIES = 6
"""After so many unexpected errors in a row a run is paused until a person resumes it."""
ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.REFUSED, State.CANCELLED})
GOES_ON = frozenset({State.RUNNING, State.WAITING})
"""States of a guarded session that has not ended."""


DELETABLE = models.Q(state__in=sorted(ENDED)) | ~models.Q(only_shown="")
"""Runs that ended, and imported ones that are only shown and never go on."""


class Upload(models.Model):
    """Files that somebody brought for runs: a zip in Django's storage, looked through and never changed."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.PROTECT, related_name="uploads")
    key = models.CharField(max_length=43, unique=True)
    name = models.CharField(max_length=120)
    """What it is called among people: the name of the zip or folder."""
    root = models.CharField(max_length=43)
    """The hash of a workspace of these files: the R3 that a run with them begins with."""
    folder = models.CharField(max_length=255, blank=True, default="")
    """The folder of the zip that they are in, and that the workspace does not have."""
    files = models.PositiveIntegerField()
    size = models.PositiveBigIntegerField()
    """Bytes of the files, unpacked."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now)
    """When it was brought, or brought again."""

    class Meta:
        ordering = ("-made_at",)
        constraints = (models.UniqueConstraint(fields=("team", "root"), name="one_upload_of_the_same_files"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.files})"


class KeptFiles(models.Model):
    """The files that runs of a spec begin with, unless they are given others."""

    TEAM_PATH = "spec__team"

    spec = models.OneToOneField(Spec, models.PROTECT, primary_key=True, related_name="kept_files")
    upload = models.ForeignKey(Upload, models.PROTECT, related_name="keeps")

    def __str__(self) -> str:
        return f"{self.spec_id}: {self.upload_id}"


class Run(Due):
    """A run: a projection of its ledger, and what people say about it."""

    TEAM_PATH = "team"
    SPEC_PATH = "version__spec_id"

    # what was asked for
    team = models.ForeignKey(Team, models.PROTECT, related_name="runs")
    version = models.ForeignKey(SpecVersion, models.PROTECT, related_name="runs", null=True, blank=True)
    """Null for a run that came in by import, as its genesis holds its spec, and for one of a `RunText`."""
    key = models.CharField(max_length=128, unique=True)
    """The run's id, as the ledger and the command line have it."""
    name = models.CharField(max_length=120)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    mode = models.CharField(max_length=12, blank=True)
    backend = models.CharField(max_length=40, blank=True)
    sandbox = models.CharField(max_length=12, blank=True)
    """The least strict launcher that was asked for; empty: as the spec says."""
    takes_in = models.JSONField(null=True, blank=True)
    """Other specs of the team whose text is in what it runs, by number, as it began; null: nobody knows."""
    gpu = models.CharField(max_length=60, default="gpu")
    """The queue of those of its effects that need a device: `gpu`, or `gpu.<model>`."""
    only_shown = models.CharField(max_length=200, blank=True)
    """Why an imported run does not go on here and cannot be forked; empty for all others."""
    agent = models.CharField(max_length=60, blank=True, default="", db_default="")
    """The agent of a guarded session, whose records come from the machine that guards it; such a run is only
    shown. Empty for all others."""
    heard_at = models.DateTimeField(null=True, blank=True)
    """When the guard of a session was heard of last."""
    inputs = models.JSONField(default=dict, blank=True)
    files = models.ForeignKey(Upload, models.PROTECT, related_name="runs", null=True, blank=True)
    """What its workspace begins with; null: nothing, or what a shipped example works on."""
    labels = models.JSONField(default=list, blank=True)
    parent = models.ForeignKey("self", models.PROTECT, related_name="forks", null=True, blank=True)
    parent_seq = models.PositiveIntegerField(null=True, blank=True)
    trial = models.CharField(max_length=10, choices=Trial, blank=True, default="", db_default="")
    """What measures with it: no person answers it, and lists leave it out unless they are asked for it."""
    prior = models.CharField(max_length=128, blank=True, default="", db_default="")
    """The key of the earlier run whose search it begins with; what it found is copied into the genesis."""
    sealed = models.CharField(max_length=43, blank=True, default="", db_default="")
    """The case whose sealed checks judge what it made (spakweb.store.ledger.packs)."""
    history = models.CharField(max_length=43, blank=True, default="", db_default="")
    """The pack with the commits that its jobs see, as far as the spec's HISTORY asks for them."""

    # the ledger
    count = models.PositiveIntegerField(default=0)
    head = models.CharField(max_length=43, blank=True)

    # what is wanted of it, and when it is tried; its queue is that which its next effect belongs to
    wanted = models.CharField(max_length=10, blank=True, choices=[("pause", "pause"), ("cancel", "cancel")])
    due = models.DateTimeField(null=True, blank=True, db_column="not_before")
    """When it is tried again, after it could not go on (work/worker/retry_policy.py)."""
    tries = models.PositiveSmallIntegerField(default=0, db_default=0, db_column="faults")
    """How many times in a row its worker failed by an error that nobody expected, or died with it, or its
    repository was away."""
    left_at = models.PositiveIntegerField(null=True, blank=True)
    """How many records it had when it was taken in hand, until it is given back: whoever had it died if it is
    free and this is set."""

    # the projection
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    reason = models.CharField(max_length=200, blank=True)
    task = models.CharField(max_length=120, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    projected = models.PositiveIntegerField(default=0)
    """How many records the projection has seen."""
    summary = models.JSONField(default=dict, blank=True)
    """Steps, metrics, tokens, cost, waiting question: what lists and headers show."""

    # deletion
    deleted_at = models.DateTimeField(null=True, blank=True)
    """When it was deleted: its content is shown no more, and is removed a part at a time."""
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True
    )
    deleted_why = models.CharField(max_length=120, blank=True)
    erased_at = models.DateTimeField(null=True, blank=True)
    """When nothing was left but this row."""

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(deleted_at=None) | DELETABLE, name="only_ended_runs_are_deleted"
            ),
        )
        indexes = (
            models.Index(
                fields=("deleted_at",),
                condition=models.Q(deleted_at__isnull=False, erased_at=None),
                name="runs_to_erase",
            ),
            models.Index(fields=("team", "-id"), name="runs_of_team"),
            models.Index(fields=("team", "-id"), condition=models.Q(trial=""), name="runs_without_trials"),
            models.Index(fields=("team", "state", "ended_at"), name="runs_of_team_by_state"),
            models.Index(fields=("state", "lease_until"), name="runs_to_sweep"),
            models.Index(fields=("ended_at",), name="runs_by_end"),
            models.Index(fields=("lease_until",), condition=~models.Q(holder=""), name="runs_held"),
            models.Index(fields=("wanted",), condition=~models.Q(wanted=""), name="runs_to_stop"),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def forked_at(self) -> int:
        """Milliseconds; what was recorded before it was taken over. 0 where the run is no fork."""
        return int(self.made_at.timestamp() * 1000) if self.parent_id else 0

    @property
    def ended(self) -> bool:
        """Whether it goes on no more."""
        return self.state in ENDED

    @property
    def unchecked(self) -> bool:
        """Whether it ended well by its own account alone; unknown, so False, of runs projected before."""
        return self.state == State.SUCCEEDED and (self.summary or {}).get("checks") == 0

    @property
    def own_tests(self) -> list[str]:
        """The changed paths without which the check of a run that succeeded fails."""
        if self.state != State.SUCCEEDED:
            return []
        return list((self.summary or {}).get("by_own_tests") or ())

    @property
    def shown_state(self) -> str:
        """The state as people read it: a success that nothing checked is `unchecked`, one whose check needs
        tests that the run changed `own-tests`, a guarded session that reports no more `unheard`."""
        if self.agent:
            return "unheard" if self.state == State.PAUSED else str(self.state)
        if self.own_tests:
            return "own-tests"
        return "unchecked" if self.unchecked else str(self.state)

    @property
    def deletable(self) -> bool:
        """Whether it may be deleted: it has ended, or is an import that is only shown."""
        return self.ended or bool(self.only_shown)


class RunText(models.Model):
    """What a campaign asked of a run beside what people may ask: a seed, and a text that is no version."""

    TEAM_PATH = "run__team"

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="own")
    spec = models.ForeignKey(Spec, models.PROTECT, related_name="+")
    """The spec whose files the text may import."""
    text = models.TextField(blank=True)
    """Empty: the text of the run's version."""
    seed = models.PositiveBigIntegerField()
    pack = models.CharField(max_length=43, blank=True, default="")
    """The case whose recording answers for the model (spakweb.store.ledger.packs)."""

    def __str__(self) -> str:
        return f"{self.run_id}"


class RunRecord(AppendOnly):
    """A record of a run's ledger, with its exact line."""

    TEAM_PATH = "run__team"
    GOES_WITH = ("run_id", "runs_run")

    run = models.ForeignKey(Run, models.PROTECT, related_name="records")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    authority = models.CharField(max_length=10)
    task = models.CharField(max_length=120, blank=True)
    step = models.CharField(max_length=120, blank=True)
    at = models.BigIntegerField()
    """Unix time in milliseconds, as the record has it."""
    line = StoredBytes()

    class Meta:
        ordering = ("run", "seq")
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="one_record_per_place"),)

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.kind}"


class RunBlob(models.Model):
    """That a run has a blob; the bytes are in Django's storage under their digest."""

    TEAM_PATH = "run__team"

    run = models.ForeignKey(Run, models.PROTECT, related_name="blobs")
    digest = models.CharField(max_length=43)
    size = models.PositiveBigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "digest"), name="one_row_per_blob"),)

    def __str__(self) -> str:
        return self.digest


class RunSnapshot(models.Model):
    """The newest snapshot of a run's state (spak.kernel.snapshot): a cache, from which it is taken up."""

    TEAM_PATH = "run__team"

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="snapshot")
    count = models.PositiveIntegerField()
    head = models.CharField(max_length=43)
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.run_id}/{self.count}"


class StoredFile(models.Model):
    """A file of the storage in the database: bytes under a name, for hosts that share no disk."""

    name = models.CharField(max_length=200, unique=True)
    data = models.BinaryField()

    def __str__(self) -> str:
        return self.name


class Command(models.Model):
    """What a person asked of a run that only the holder of its lease can do, or the guard of a session."""

    TEAM_PATH = "run__team"

    run = models.ForeignKey(Run, models.PROTECT, related_name="commands")
    kind = models.CharField(
        max_length=12,
        choices=[(word, word) for word in ("answer", "call", "approve", "deny", "take_back", "extend")],
    )
    body = models.JSONField(default=dict)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=200, blank=True)
    """Empty when it was done, else why not."""

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.kind} for {self.run}"


class SavedView(models.Model):
    """A filter of the list of runs, kept under a name for the whole team."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.PROTECT, related_name="run_views")
    name = models.CharField(max_length=40)
    query = models.CharField(max_length=600)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="one_view_per_name"),)

    def __str__(self) -> str:
        return self.name


class LogLeaf(AppendOnly):
    """A leaf of a team's log of runs (spak.ledger.log): what a run had at a checkpoint, or its tombstone."""

    TEAM_PATH = "team"

    team = models.ForeignKey(Team, models.PROTECT, related_name="+")
    index = models.PositiveIntegerField()
    run = models.CharField(max_length=128)
    """The run's key: its row may be gone, which the log then shows."""
    count = models.PositiveIntegerField()
    erased = models.BooleanField()
    text = StoredBytes()
    """What the tree hashes."""
    nodes = StoredBytes()
    """The hashes of the perfect subtrees that this leaf completes, 32 bytes each, from level 0 on."""

    class Meta:
        ordering = ("team", "index")
        constraints = (models.UniqueConstraint(fields=("team", "index"), name="one_leaf_per_place"),)
        indexes = (models.Index(fields=("team", "run", "-index"), name="last_leaf_of_a_run"),)

    def __str__(self) -> str:
        return f"{self.run} {self.count}"


class LogCheckpoint(models.Model):
    """The last signed checkpoint of a team's log."""

    TEAM_PATH = "team"

    team = models.OneToOneField(Team, models.PROTECT, primary_key=True, related_name="+")
    note = models.TextField()
    size = models.PositiveIntegerField()
    key = models.CharField(max_length=400)
    """The public key that verifies it."""
    made_at = models.DateTimeField()
    problems = models.JSONField(default=list)
    """What went wrong: runs that were rewritten or are gone, places, witnesses."""

    def __str__(self) -> str:
        return f"{self.team_id}: {self.size}"
