"""Unfinished runs of an earlier kernel end: no worker goes on with one (`ledger.semantics`)."""

from __future__ import annotations

import json
from typing import Any

from django.db import migrations
from django.utils import timezone

ENDED = ("succeeded", "failed", "refused", "cancelled")
REASON = "ledger.semantics: an earlier kernel made it, and this one does not replay it"


def end(apps: Any, schema_editor: Any) -> None:
    """A run is told by its first record, which names no `kernel`. One that a worker holds is left to it."""
    runs, records = apps.get_model("runs", "Run"), apps.get_model("runs", "RunRecord")
    going = runs.objects.filter(count__gt=0, deleted_at=None).exclude(state__in=ENDED)
    for row in going.exclude(lease_until__gt=timezone.now()).iterator():
        first = records.objects.filter(run=row, seq=0).values_list("line", flat=True).first()
        if first is None or "kernel" in (json.loads(bytes(first))["body"].get("rules") or {}):
            continue
        row.state, row.reason, row.ended_at = "cancelled", REASON, timezone.now()
        row.wanted, row.holder, row.lease_until = "", "", None
        row.summary = {name: value for name, value in (row.summary or {}).items() if name != "waiting"}
        row.save(update_fields=["state", "reason", "ended_at", "wanted", "holder", "lease_until", "summary"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_squashed_0019_trial")]
    operations = [migrations.RunPython(end, migrations.RunPython.noop, elidable=True)]
