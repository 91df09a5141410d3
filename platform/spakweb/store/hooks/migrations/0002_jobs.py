"""A webhook's rest becomes that of its job."""

from typing import Any

import django.utils.timezone
from django.db import migrations


def to_jobs(apps: Any, schema_editor: Any) -> None:
    """Webhooks that rest, with the time until when."""
    now = django.utils.timezone.now()
    jobs = apps.get_model("jobs", "Job").objects
    rows = apps.get_model("hooks", "Webhook").objects.filter(rest_until__gt=now)
    for pk, team, due in rows.values_list("pk", "team", "rest_until"):
        about = {"team_id": team, "wanted_at": now, "enqueued_at": now, "due": due}
        jobs.update_or_create(kind="hooks.deliver", key=str(pk), defaults=about)


class Migration(migrations.Migration):
    dependencies = [("hooks", "0001_initial"), ("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(to_jobs, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField(model_name="webhook", name="rest_until"),
    ]
