"""What a run takes in besides its own spec. Of older runs it is known where the version imports nothing."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def those_that_import_nothing(apps: Any, schema_editor: Any) -> None:
    versions = apps.get_model("specs", "SpecVersion").objects.exclude(text__icontains="import")
    apps.get_model("runs", "Run").objects.filter(version__in=versions.values("pk")).update(takes_in=[])


class Migration(migrations.Migration):
    dependencies = [("runs", "0016_by_end")]
    operations = [
        migrations.AddField(model_name="run", name="takes_in", field=models.JSONField(blank=True, null=True)),
        migrations.RunPython(those_that_import_nothing, migrations.RunPython.noop, elidable=True),
    ]
