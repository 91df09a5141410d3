from typing import Any

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


def room(apps: Any, editor: Any) -> None:
    """Room beside each run on PostgreSQL: every step writes its row anew, and where the page has room for that
    the twelve indexes need not be written too (measured: 0.87 of the server's CPU per step, 0.63 of its WAL). A
    run then takes a page, less than its records do."""
    if editor.connection.vendor == "postgresql":
        editor.execute("ALTER TABLE runs_run SET (fillfactor = 40)")


class Migration(migrations.Migration):
    replaces = [
        ("runs", "0001_initial"),
        ("runs", "0002_saved_view"),
        ("runs", "0003_other_hosts"),
        ("runs", "0004_sandbox"),
        ("runs", "0005_only_shown"),
        ("runs", "0006_of_teams"),
        ("runs", "0007_room"),
        ("runs", "0008_setbacks"),
        ("runs", "0009_snapshots"),
        ("runs", "0010_deletion"),
        ("runs", "0011_brought_files"),
        ("runs", "0012_left_at"),
        ("runs", "0013_upload_folder"),
        ("runs", "0014_run_text"),
        ("runs", "0015_run_recording"),
        ("runs", "0016_by_end"),
        ("runs", "0017_takes_in"),
        ("runs", "0018_prior"),
        ("runs", "0019_trial"),
    ]

    initial = True

    dependencies = [
        ("specs", "0001_squashed_0009_widening"),
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40)),
                ("query", models.CharField(max_length=600)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="run_views", to="teams.team"
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [models.UniqueConstraint(fields=("team", "name"), name="one_view_per_name")],
            },
        ),
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("data", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=43, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("root", models.CharField(max_length=43)),
                ("files", models.PositiveIntegerField()),
                ("size", models.PositiveBigIntegerField()),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="uploads", to="teams.team"
                    ),
                ),
                ("folder", models.CharField(blank=True, default="", max_length=255)),
            ],
            options={
                "ordering": ("-made_at",),
                "constraints": [
                    models.UniqueConstraint(fields=("team", "root"), name="one_upload_of_the_same_files")
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=128, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("mode", models.CharField(blank=True, max_length=12)),
                ("backend", models.CharField(blank=True, max_length=40)),
                ("queue", models.CharField(default="default", max_length=60)),
                ("inputs", models.JSONField(blank=True, default=dict)),
                ("labels", models.JSONField(blank=True, default=list)),
                ("parent_seq", models.PositiveIntegerField(blank=True, null=True)),
                ("count", models.PositiveIntegerField(default=0)),
                ("head", models.CharField(blank=True, max_length=43)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("holder", models.CharField(blank=True, max_length=80)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "wanted",
                    models.CharField(
                        blank=True, choices=[("pause", "pause"), ("cancel", "cancel")], max_length=10
                    ),
                ),
                ("enqueued_at", models.DateTimeField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("waiting", "Waiting"),
                            ("paused", "Paused"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("refused", "Refused"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("task", models.CharField(blank=True, max_length=120)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("projected", models.PositiveIntegerField(default=0)),
                ("summary", models.JSONField(blank=True, default=dict)),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="forks",
                        to="runs.run",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="teams.team"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="specs.specversion",
                    ),
                ),
                ("gpu", models.CharField(default="gpu", max_length=60)),
                ("sandbox", models.CharField(blank=True, max_length=12)),
                ("only_shown", models.CharField(blank=True, max_length=200)),
                ("faults", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "deleted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("deleted_why", models.CharField(blank=True, max_length=120)),
                ("erased_at", models.DateTimeField(blank=True, null=True)),
                (
                    "files",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.upload",
                    ),
                ),
                ("left_at", models.PositiveIntegerField(blank=True, null=True)),
                ("takes_in", models.JSONField(blank=True, null=True)),
                ("prior", models.CharField(blank=True, db_default="", default="", max_length=128)),
                (
                    "trial",
                    models.CharField(
                        blank=True,
                        choices=[("experiment", "Experiment"), ("campaign", "Campaign")],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
            ],
            options={
                "ordering": ("-pk",),
                "indexes": [
                    models.Index(fields=["team", "-id"], name="runs_of_team"),
                    models.Index(fields=["state", "lease_until"], name="runs_to_sweep"),
                    models.Index(
                        condition=models.Q(("wanted", ""), _negated=True),
                        fields=["wanted"],
                        name="runs_to_stop",
                    ),
                    models.Index(fields=["team", "state", "ended_at"], name="runs_of_team_by_state"),
                    models.Index(
                        condition=models.Q(("holder", ""), _negated=True),
                        fields=["lease_until"],
                        name="runs_held",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", False), ("erased_at", None)),
                        fields=["deleted_at"],
                        name="runs_to_erase",
                    ),
                    models.Index(fields=["ended_at"], name="runs_by_end"),
                    models.Index(
                        condition=models.Q(("trial", "")), fields=["team", "-id"], name="runs_without_trials"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("deleted_at", None),
                            ("state__in", ["cancelled", "failed", "refused", "succeeded"]),
                            models.Q(("only_shown", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="only_ended_runs_are_deleted",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Command",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("answer", "answer"),
                            ("call", "call"),
                            ("approve", "approve"),
                            ("deny", "deny"),
                        ],
                        max_length=12,
                    ),
                ),
                ("body", models.JSONField(default=dict)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                ("outcome", models.CharField(blank=True, max_length=200)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="commands", to="runs.run"
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="RunBlob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=43)),
                ("size", models.PositiveBigIntegerField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="blobs", to="runs.run"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "digest"), name="one_row_per_blob")],
            },
        ),
        migrations.CreateModel(
            name="RunRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=20)),
                ("authority", models.CharField(max_length=10)),
                ("task", models.CharField(blank=True, max_length=120)),
                ("step", models.CharField(blank=True, max_length=120)),
                ("at", models.BigIntegerField()),
                ("line", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="records", to="runs.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "seq"),
                "constraints": [models.UniqueConstraint(fields=("run", "seq"), name="one_record_per_place")],
            },
        ),
        migrations.CreateModel(
            name="RunSnapshot",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="snapshot",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("count", models.PositiveIntegerField()),
                ("head", models.CharField(max_length=43)),
                ("data", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="KeptFiles",
            fields=[
                (
                    "spec",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="kept_files",
                        serialize=False,
                        to="specs.spec",
                    ),
                ),
                (
                    "upload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="keeps", to="runs.upload"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunText",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="own",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("text", models.TextField(blank=True)),
                ("seed", models.PositiveBigIntegerField()),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="specs.spec"
                    ),
                ),
                ("pack", models.CharField(blank=True, default="", max_length=43)),
            ],
        ),
        migrations.RunPython(room, migrations.RunPython.noop),
    ]
