"""The commits that are frozen with a case."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("suites", "0001_squashed_0005_attempts_and_golden")]
    operations = [
        migrations.AddField(
            model_name="case",
            name="history",
            field=models.CharField(blank=True, db_default="", default="", max_length=43),
        ),
    ]
