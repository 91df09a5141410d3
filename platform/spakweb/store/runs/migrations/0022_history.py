"""The commits that a run's spec asks for, where a source or a case gave them."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0021_sealed")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="history",
            field=models.CharField(blank=True, db_default="", default="", max_length=43),
        ),
    ]
