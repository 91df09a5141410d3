import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("sources", "0001_initial"),
        ("sources", "0002_branch"),
        ("sources", "0003_away"),
        ("sources", "0004_pulls"),
    ]

    initial = True

    dependencies = [
        ("runs", "0001_squashed_0019_trial"),
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="Source",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=40)),
                ("url", models.CharField(max_length=2000)),
                ("refs", models.TextField()),
                ("user", models.CharField(blank=True, default="", max_length=100)),
                ("sealed", models.TextField(blank=True, default="")),
                ("public_key", models.TextField(blank=True, default="")),
                ("host_keys", models.TextField(blank=True, default="")),
                ("submodules", models.BooleanField(default=False)),
                ("lfs", models.BooleanField(default=False)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("rotated_at", models.DateTimeField(blank=True, null=True)),
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
                        on_delete=django.db.models.deletion.CASCADE, related_name="sources", to="teams.team"
                    ),
                ),
                ("api_sealed", models.TextField(blank=True, db_default="", default="")),
                ("api_url", models.CharField(blank=True, db_default="", default="", max_length=2000)),
                ("forge", models.CharField(blank=True, db_default="", default="", max_length=10)),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.UniqueConstraint(fields=("team", "name"), name="one_source_of_a_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunSource",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="begun_from",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("name", models.SlugField(max_length=40)),
                ("url", models.CharField(max_length=2000)),
                ("ref", models.CharField(max_length=255)),
                ("wanted", models.CharField(blank=True, default="", max_length=64)),
                ("commit", models.CharField(blank=True, default="", max_length=64)),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="sources.source",
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Branch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("title", models.CharField(max_length=100)),
                ("root", models.CharField(max_length=43)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "Waits for approval"),
                            ("approved", "To be pushed"),
                            ("pushed", "Pushed"),
                            ("failed", "Failed"),
                            ("declined", "Declined"),
                        ],
                        default="asked",
                        max_length=8,
                    ),
                ),
                ("commit", models.CharField(blank=True, default="", max_length=64)),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("claimed_at", models.DateTimeField(blank=True, null=True)),
                ("pushed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="branches", to="runs.run"
                    ),
                ),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("pull", models.BooleanField(db_default=False, default=False)),
                ("pull_url", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
            options={
                "ordering": ("-pk",),
                "constraints": [models.UniqueConstraint(fields=("run", "name"), name="one_branch_of_a_name")],
            },
        ),
    ]
