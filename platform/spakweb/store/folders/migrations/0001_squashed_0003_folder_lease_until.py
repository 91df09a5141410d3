import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("folders", "0001_initial"),
        ("folders", "0002_pull_per_spec"),
        ("folders", "0003_folder_lease_until"),
    ]

    initial = True

    dependencies = [
        ("reviews", "0001_squashed_0008_taken_back"),
        ("sources", "0001_squashed_0004_pulls"),
        ("specs", "0001_squashed_0009_widening"),
        ("teams", "0001_squashed_0011_widening_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="Folder",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("branch", models.CharField(max_length=255)),
                ("path", models.CharField(blank=True, default="", max_length=200)),
                (
                    "out",
                    models.CharField(
                        choices=[
                            ("none", "Nothing: files come in alone"),
                            ("commit", "A commit on the branch"),
                            ("pull", "A pull request"),
                        ],
                        default="none",
                        max_length=6,
                    ),
                ),
                ("active", models.BooleanField(default=True)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("wanted_at", models.DateTimeField(blank=True, null=True)),
                ("claimed_at", models.DateTimeField(blank=True, null=True)),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "Not synced yet"),
                            ("same", "In sync"),
                            ("look", "Needs a look"),
                            ("failed", "Failed"),
                        ],
                        default="new",
                        max_length=6,
                    ),
                ),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("commit", models.CharField(blank=True, default="", max_length=64)),
                ("result", models.JSONField(blank=True, default=list)),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                ("pull_url", models.CharField(blank=True, default="", max_length=500)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="folder",
                        to="sources.source",
                    ),
                ),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("active", True)), fields=["wanted_at"], name="folders_wanted"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FolderFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(max_length=250)),
                ("there", models.CharField(blank=True, default="", max_length=43)),
                ("sent", models.CharField(blank=True, default="", max_length=43)),
                (
                    "base",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="specs.specversion",
                    ),
                ),
                (
                    "folder",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="files", to="folders.folder"
                    ),
                ),
                (
                    "patch",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="reviews.patch",
                    ),
                ),
                (
                    "seen",
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
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="file", to="specs.spec"
                    ),
                ),
                ("pull_commits", models.JSONField(blank=True, db_default=[], default=list)),
                ("pull_url", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
            options={
                "ordering": ("path",),
                "constraints": [
                    models.UniqueConstraint(fields=("folder", "path"), name="one_file_of_a_path")
                ],
            },
        ),
    ]
