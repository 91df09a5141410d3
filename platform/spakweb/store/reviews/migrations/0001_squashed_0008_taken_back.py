import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("reviews", "0001_initial"),
        ("reviews", "0002_evidence"),
        ("reviews", "0003_merge_queue"),
        ("reviews", "0004_approval_rules"),
        ("reviews", "0005_team_rules"),
        ("reviews", "0006_origin"),
        ("reviews", "0007_lost_checks"),
        ("reviews", "0008_taken_back"),
    ]

    initial = True

    dependencies = [
        ("specs", "0001_squashed_0009_widening"),
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="Patch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=120)),
                ("rationale", models.TextField(blank=True)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("merged", "Merged"), ("closed", "Closed")],
                        default="open",
                        max_length=8,
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "merged",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="merged_patch",
                        to="specs.specversion",
                    ),
                ),
                (
                    "reverts",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reverted_by",
                        to="reviews.patch",
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="patches", to="specs.spec"
                    ),
                ),
                ("campaign", models.CharField(blank=True, max_length=120)),
                ("origin", models.JSONField(blank=True, db_default={}, default=dict)),
            ],
            options={
                "ordering": ("-pk",),
                "constraints": [
                    models.UniqueConstraint(fields=("spec", "number"), name="one_patch_number_per_spec")
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("content_hash", models.CharField(max_length=43)),
                ("why", models.CharField(blank=True, max_length=500)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="specs.specversion"
                    ),
                ),
                (
                    "patch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revisions",
                        to="reviews.patch",
                    ),
                ),
                (
                    "rebases",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reviews.revision",
                    ),
                ),
                ("also_by", models.JSONField(blank=True, db_default=[], default=list)),
            ],
            options={
                "ordering": ("-number",),
                "constraints": [
                    models.UniqueConstraint(fields=("patch", "number"), name="one_revision_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(blank=True, max_length=200)),
                ("text", models.CharField(max_length=4000)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "patch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="reviews.patch",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reviews.revision"
                    ),
                ),
                ("line", models.PositiveIntegerField(default=0)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="reviews.comment",
                    ),
                ),
                ("quote", models.CharField(blank=True, max_length=400)),
                ("suggestion", models.TextField(blank=True)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("approves", models.BooleanField()),
                ("text", models.CharField(blank=True, max_length=2000)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="reviews.revision",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="Check",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=20)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("passed", "Passed"),
                            ("look", "Look"),
                            ("failed", "Failed"),
                            ("nothing", "Nothing"),
                        ],
                        default="queued",
                        max_length=8,
                    ),
                ),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("words", models.CharField(blank=True, max_length=300)),
                ("result", models.JSONField(default=dict)),
                ("law", models.CharField(blank=True, max_length=43)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="checks",
                        to="reviews.revision",
                    ),
                ),
                ("lost", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "ordering": ("pk",),
                "constraints": [
                    models.UniqueConstraint(fields=("revision", "name"), name="one_check_of_a_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("line", models.BinaryField()),
                ("hash", models.CharField(max_length=43)),
                ("signature", models.CharField(max_length=100)),
                ("key", models.CharField(max_length=60)),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="history", to="specs.spec"
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
                "constraints": [
                    models.UniqueConstraint(fields=("spec", "number"), name="one_record_number_per_spec")
                ],
            },
        ),
        migrations.CreateModel(
            name="Viewed",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("part", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=43)),
                (
                    "patch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="viewed", to="reviews.patch"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("patch", "user", "part"), name="one_view_of_a_part")
                ],
            },
        ),
        migrations.CreateModel(
            name="Queued",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("merged", "Merged"),
                            ("refused", "Refused"),
                            ("left", "Left"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("words", models.CharField(blank=True, max_length=300)),
                ("lost", models.PositiveSmallIntegerField(default=0)),
                (
                    "patch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="queued", to="reviews.patch"
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reviews.revision"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("patch",),
                        name="one_place_in_the_queue",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ApprovalRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=12)),
                (
                    "role",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval_rules",
                        to="teams.namedrole",
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval_rules",
                        to="specs.spec",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval_rules",
                        to="teams.team",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "constraints": [
                    models.UniqueConstraint(fields=("spec", "kind"), name="one_rule_of_a_kind"),
                    models.UniqueConstraint(fields=("team", "kind"), name="one_rule_of_a_kind_of_a_team"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("spec", None), ("team__isnull", False)),
                            models.Q(("spec__isnull", False), ("team", None)),
                            _connector="OR",
                        ),
                        name="a_rule_of_a_spec_or_a_team",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TakenBack",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "verdict",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="taken_back",
                        to="reviews.verdict",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
