"""Which runs' spans were sent, or are to be, becomes jobs."""

from datetime import timedelta
from typing import Any

import django.utils.timezone
from django.db import migrations


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """Spans that are still to be sent, and those that were sent within the hour in which a sweep looks."""
    now = django.utils.timezone.now()
    rows = apps.get_model("telemetry", "Sent").objects.select_related("run")
    job = apps.get_model("jobs", "Job")
    lately = rows.filter(run__ended_at__gt=now - timedelta(hours=2))
    made = [
        job(
            kind="telemetry.send",
            key=row.run.key,
            team_id=row.run.team_id,
            tries=max(0, row.tries - 1),
            error=row.error if row.at is None else "",
            due=row.next_at if row.at is None else None,
            wanted_at=now if row.at is None else None,
            enqueued_at=now,
            done_at=row.at,
        )
        for row in lately.iterator()
    ]
    job.objects.bulk_create(made, ignore_conflicts=True, batch_size=500)


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_initial"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        migrations.DeleteModel(name="Sent"),
    ]
