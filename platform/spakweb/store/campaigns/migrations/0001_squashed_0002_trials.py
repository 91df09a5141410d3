import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("campaigns", "0001_initial"), ("campaigns", "0002_trials")]

    initial = True

    dependencies = [
        ("runs", "0001_squashed_0019_trial"),
        ("specs", "0001_squashed_0009_widening"),
        ("suites", "0001_squashed_0005_attempts_and_golden"),
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="Campaign",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("proposer", models.CharField(max_length=12)),
                ("evolve_runs", models.PositiveIntegerField(default=0)),
                ("asks", models.CharField(blank=True, max_length=40)),
                ("backend", models.CharField(blank=True, max_length=40)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("count", models.PositiveIntegerField(default=0)),
                ("head", models.CharField(blank=True, max_length=43)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("holder", models.CharField(blank=True, max_length=80)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("stopped", "Stopped"),
                            ("ended", "Ended"),
                        ],
                        default="running",
                        max_length=8,
                    ),
                ),
                ("why", models.CharField(blank=True, max_length=300)),
                ("enqueued_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("shown", models.JSONField(default=dict)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="campaigns", to="specs.spec"
                    ),
                ),
                (
                    "suite",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="campaigns",
                        to="suites.suite",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="campaigns", to="teams.team"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="campaigns",
                        to="specs.specversion",
                    ),
                ),
            ],
            options={
                "ordering": ("-number",),
                "indexes": [
                    models.Index(
                        models.F("state"), condition=models.Q(("state", "running")), name="campaigns_running"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("team", "number"), name="one_campaign_number_per_team"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("state__in", ("running", "paused"))),
                            models.Q(("ended_at__isnull", False), ("state__in", ("stopped", "ended"))),
                            _connector="OR",
                        ),
                        name="an_ended_campaign_says_when",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CampaignRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                ("line", models.BinaryField()),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="records",
                        to="campaigns.campaign",
                    ),
                ),
            ],
            options={
                "ordering": ("campaign", "seq"),
                "constraints": [
                    models.UniqueConstraint(fields=("campaign", "seq"), name="one_campaign_record")
                ],
            },
        ),
        migrations.CreateModel(
            name="CampaignRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("k", models.PositiveIntegerField()),
                ("text", models.CharField(max_length=43)),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="asked",
                        to="campaigns.campaign",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="suites.case"
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="campaign_run",
                        to="runs.run",
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
            options={
                "ordering": ("pk",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("campaign", "number", "case", "k", "text", "attempt"),
                        name="one_run_of_a_pair",
                    )
                ],
            },
        ),
    ]
