"""A log of runs for each team, and its last signed checkpoint."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0024_guarded"),
        ("teams", "0012_remove_team_commands"),
    ]

    operations = [
        migrations.CreateModel(
            name="LogCheckpoint",
            fields=[
                (
                    "team",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="teams.team",
                    ),
                ),
                ("note", models.TextField()),
                ("size", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=400)),
                ("made_at", models.DateTimeField()),
                ("problems", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="LogLeaf",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("run", models.CharField(max_length=128)),
                ("count", models.PositiveIntegerField()),
                ("erased", models.BooleanField()),
                ("text", models.BinaryField()),
                ("nodes", models.BinaryField()),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="teams.team"
                    ),
                ),
            ],
            options={
                "ordering": ("team", "index"),
                "indexes": [models.Index(fields=["team", "run", "-index"], name="last_leaf_of_a_run")],
                "constraints": [models.UniqueConstraint(fields=("team", "index"), name="one_leaf_per_place")],
            },
        ),
    ]
