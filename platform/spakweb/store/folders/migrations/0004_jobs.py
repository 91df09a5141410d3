"""Folders that are to be synced become jobs."""

from typing import Any

from django.db import migrations


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """Those that somebody asked for, with their pauses."""
    jobs = apps.get_model("jobs", "Job").objects
    rows = apps.get_model("folders", "Folder").objects.filter(active=True, wanted_at__isnull=False)
    for row in rows.select_related("source"):
        about = {"team_id": row.source.team_id, "wanted_at": row.wanted_at, "due": row.not_before}
        jobs.update_or_create(kind="folders.sync", key=str(row.pk), defaults=about | {"tries": row.tries})


class Migration(migrations.Migration):
    dependencies = [("folders", "0001_squashed_0003_folder_lease_until"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        migrations.RemoveIndex("folder", "folders_wanted"),
        *(
            migrations.RemoveField("folder", name)
            for name in ("wanted_at", "claimed_at", "lease_until", "not_before", "tries")
        ),
    ]
