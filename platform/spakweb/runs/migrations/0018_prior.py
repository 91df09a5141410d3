"""Which earlier run a search begins with."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0017_takes_in")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="prior",
            field=models.CharField(blank=True, db_default="", default="", max_length=128),
        ),
    ]
