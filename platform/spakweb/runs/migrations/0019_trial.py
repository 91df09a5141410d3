"""Which runs belong to an experiment or a campaign."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0018_prior")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="trial",
            field=models.CharField(
                blank=True,
                choices=[("experiment", "Experiment"), ("campaign", "Campaign")],
                db_default="",
                default="",
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("trial", "")), fields=["team", "-id"], name="runs_without_trials"
            ),
        ),
    ]
