from typing import Any

from django.db import migrations, models


def still(apps: Any, schema_editor: Any) -> None:
    """Imports of earlier versions were not held to the law of this platform."""
    runs = apps.get_model("runs", "Run").objects.filter(version=None)
    runs.update(only_shown="an earlier version imported it, without a check of its law")


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_sandbox")]

    operations = [
        migrations.AddField("run", "only_shown", models.CharField(blank=True, max_length=200)),
        migrations.RunPython(still, migrations.RunPython.noop),
    ]
