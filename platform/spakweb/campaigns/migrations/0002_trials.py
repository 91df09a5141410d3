"""Runs of pairs that gave no result are run again; and the runs that experiments and campaigns asked for
before runs had a column for it are marked."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def mark(apps: Any, schema_editor: Any) -> None:
    run = apps.get_model("runs", "Run")
    cells = apps.get_model("suites", "Cell").objects.values("run")
    asked = apps.get_model("campaigns", "CampaignRun").objects.values("run")
    run.objects.filter(pk__in=cells).update(trial="experiment")
    run.objects.filter(pk__in=asked).update(trial="campaign")


class Migration(migrations.Migration):
    dependencies = [
        ("campaigns", "0001_initial"),
        ("suites", "0005_attempts_and_golden"),
        ("runs", "0019_trial"),
    ]
    operations = [
        migrations.AddField(
            model_name="campaignrun",
            name="attempt",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.RemoveConstraint(model_name="campaignrun", name="one_run_of_a_pair"),
        migrations.AddConstraint(
            model_name="campaignrun",
            constraint=models.UniqueConstraint(
                fields=("campaign", "number", "case", "k", "text", "attempt"), name="one_run_of_a_pair"
            ),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
