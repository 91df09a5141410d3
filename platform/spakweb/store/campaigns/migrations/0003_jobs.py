"""The lease of a campaign is that of its job, which the next sweep makes."""

from typing import Any

from django.db import migrations
from django.utils import timezone


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """Those that run, with the workers that died with them."""
    jobs, now = apps.get_model("jobs", "Job").objects, timezone.now()
    rows = apps.get_model("campaigns", "Campaign").objects.filter(state="running")
    for row in rows:
        about = {"team_id": row.team_id, "wanted_at": now, "tries": row.faults, "fence": row.fence}
        jobs.update_or_create(kind="campaigns.step", key=str(row.pk), defaults=about)


class Migration(migrations.Migration):
    dependencies = [("campaigns", "0001_squashed_0002_trials"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        *(
            migrations.RemoveField("campaign", name)
            for name in ("fence", "holder", "lease_until", "faults", "enqueued_at")
        ),
    ]
