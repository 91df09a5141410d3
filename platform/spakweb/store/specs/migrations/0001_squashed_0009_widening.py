import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("specs", "0001_initial"),
        ("specs", "0002_spec_approvals"),
        ("specs", "0003_evidence"),
        ("specs", "0004_merge_queue"),
        ("specs", "0005_patch_drafts"),
        ("specs", "0006_team_rules"),
        ("specs", "0007_badges"),
        ("specs", "0008_problem_files"),
        ("specs", "0009_widening"),
    ]

    initial = True

    dependencies = [
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProblemFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("text", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[("queued", "Being checked"), ("good", "In order"), ("bad", "Has errors")],
                        default="queued",
                        max_length=6,
                    ),
                ),
                ("found", models.JSONField(default=list)),
                ("sent", models.PositiveSmallIntegerField(default=0)),
                ("saved_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "saved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="problem_files",
                        to="teams.team",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.UniqueConstraint(fields=("team", "name"), name="one_problem_of_a_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="Spec",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=80)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
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
                        on_delete=django.db.models.deletion.PROTECT, related_name="specs", to="teams.team"
                    ),
                ),
                ("approvals", models.PositiveSmallIntegerField(default=0)),
                ("privileged_by_admin", models.BooleanField(default=False)),
                ("required_checks", models.JSONField(blank=True, default=list)),
                ("approvals_follow", models.BooleanField(default=False)),
                ("merge_queue", models.BooleanField(default=False)),
                ("own_rules", models.BooleanField(default=False)),
                (
                    "widening",
                    models.CharField(
                        choices=[
                            ("shared", "in a team of two or more"),
                            ("always", "always"),
                            ("never", "never"),
                        ],
                        default="shared",
                        max_length=6,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "pk"),
            },
        ),
        migrations.CreateModel(
            name="SpecVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("content_hash", models.CharField(db_index=True, max_length=43)),
                ("message", models.CharField(blank=True, max_length=500)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("facts", models.JSONField(default=dict)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "restored_from",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="specs.specversion",
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="specs.spec"
                    ),
                ),
                ("provenance", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ("-number",),
                "constraints": [
                    models.UniqueConstraint(fields=("spec", "number"), name="one_number_per_spec"),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)), name="numbers_start_at_one"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="spec",
            name="head",
            field=models.OneToOneField(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="specs.specversion",
            ),
        ),
        migrations.AddConstraint(
            model_name="spec",
            constraint=models.UniqueConstraint(fields=("team", "slug"), name="one_slug_per_team"),
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9._-]{0,39}\\Z",
                                "Letters, digits, dot, dash and underscore.",
                            )
                        ],
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tags", to="specs.spec"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tags",
                        to="specs.specversion",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [models.UniqueConstraint(fields=("spec", "name"), name="one_tag_per_spec")],
            },
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("base_version", models.PositiveIntegerField()),
                ("saved_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drafts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="drafts", to="specs.spec"
                    ),
                ),
                ("patch", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("spec", "user", "patch"), name="one_draft_per_person")
                ],
            },
        ),
        migrations.CreateModel(
            name="Badge",
            fields=[
                (
                    "spec",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="badge",
                        serialize=False,
                        to="specs.spec",
                    ),
                ),
                ("key", models.CharField(max_length=43, unique=True)),
                ("public", models.BooleanField()),
            ],
        ),
    ]
