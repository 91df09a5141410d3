"""Checks that have not ended become jobs; merge queues are found by the next sweep."""

from typing import Any

from django.db import migrations
from django.utils import timezone


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """The checks of open patches."""
    jobs, now = apps.get_model("jobs", "Job").objects, timezone.now()
    rows = apps.get_model("reviews", "Check").objects.filter(ended_at=None, revision__patch__state="open")
    for revision, team in rows.values_list("revision", "revision__patch__spec__team").distinct().order_by():
        about = {"team_id": team, "wanted_at": now}
        jobs.get_or_create(kind="reviews.check", key=str(revision), defaults=about)


class Migration(migrations.Migration):
    dependencies = [("reviews", "0001_squashed_0008_taken_back"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("check", "made_at"),
        migrations.RemoveField("check", "lost"),
        migrations.RemoveField("queued", "lost"),
    ]
