"""Branches that are to be pushed become jobs; a run counts itself how often its repository was away."""

from typing import Any

from django.db import migrations
from django.utils import timezone


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """Those that were approved, with their pauses."""
    jobs = apps.get_model("jobs", "Job").objects
    rows = apps.get_model("sources", "Branch").objects.filter(state="approved").select_related("run")
    for row in rows:
        about = {"team_id": row.run.team_id, "wanted_at": timezone.now(), "due": row.not_before}
        jobs.update_or_create(kind="sources.push", key=str(row.pk), defaults=about | {"tries": row.tries})


class Migration(migrations.Migration):
    dependencies = [("sources", "0005_signed"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        *(migrations.RemoveField("branch", name) for name in ("claimed_at", "tries", "not_before")),
        migrations.RemoveField("runsource", "tries"),
    ]
