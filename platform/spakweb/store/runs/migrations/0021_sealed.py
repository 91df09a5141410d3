"""The case whose sealed checks judge what a run made."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0020_earlier_kernels")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="sealed",
            field=models.CharField(blank=True, db_default="", default="", max_length=43),
        ),
    ]
