"""Cells whose run gave no result are run again, and people mark cases as golden."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("suites", "0004_case_replaces")]
    operations = [
        migrations.AddField(
            model_name="cell",
            name="attempt",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="suite",
            name="golden",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.RemoveConstraint(model_name="cell", name="one_run_per_cell"),
        migrations.AddConstraint(
            model_name="cell",
            constraint=models.UniqueConstraint(
                fields=("experiment", "case", "version", "k", "attempt"), name="one_run_per_cell"
            ),
        ),
    ]
