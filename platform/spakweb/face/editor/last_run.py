"""What a task was given and put out in the last run that entered it, for the editor's pane of that task.

Takes a spec and the request's `task`; gives the run and the entries of its newest visit as the run's log has
them, or no run. Looks at the newest RUNS of the spec; runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from spakweb.face.runs import log
from spakweb.ground.errors import Refused
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.specs.models import Spec

RUNS, RECORDS, SHOWN = 20, 12, 2000
"""Runs that are looked at, newest first; records of the task; characters of one output."""


def last(spec: Spec, body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises: Refused `web.request` when no task is named."""
    task = body.get("task")
    if not isinstance(task, str):
        raise Refused("web.request", "The request names no task.")
    rows = Run.objects.filter(version__spec=spec, deleted_at=None, trial="").order_by("-pk")
    for run in rows.select_related("team", "version")[:RUNS]:
        if task in ((run.summary or {}).get("nodes") or {}):
            return {"run": _run(run), "entries": _entries(run, task)}
    return {"run": None, "entries": []}


def _run(run: Run) -> dict[str, Any]:
    number = run.version.number if run.version else None
    address = reverse("spak-run", args=[run.team.slug, run.key])
    return {"key": run.key, "state": str(run.state), "version": number, "url": address}


def _entries(run: Run, task: str) -> list[dict[str, Any]]:
    records = RunRecord.objects.filter(run=run, task=task, kind__in=log.KINDS).order_by("-seq")
    lines = list(map(bytes, records.values_list("line", flat=True)[:RECORDS]))[::-1]
    found = log.entries(lines, DatabaseLedgers().reader(run.key).blobs, SHOWN)
    return [
        {"seq": one.seq, "where": one.where, "input": one.what, "result": one.result, "output": one.out,
         "bad": one.bad}
        for one in found
    ]  # fmt: skip
