"""Places of a run from which it can be tried again: a fork there does again what came after.

Takes a row, gives numbers of records: a fork at one takes over what came before it. The run stays as it is.
"""

from __future__ import annotations

from typing import Any

from spak.records import Kind, decode
from spakweb.store.runs.models import Run, RunRecord

ROUTES = 2_000
"""Routes that are looked through for the last entry of a task."""
PERMITS = 2_000
"""Permits that are looked through for the last question."""


def last_effect(run: Run) -> int:
    """The last place at which a tool, a validator, a model or a person did something: a fork there does it
    again. The end of a run that has not ended, and of one that did nothing. The check of success conditions
    is no such place: it would only find the same again."""
    if not run.ended:
        return run.count
    rows = RunRecord.objects.filter(run=run)
    done = rows.filter(authority="proposal", kind__in=(Kind.ACT, Kind.PLAN)).order_by("-seq").first()
    permits = rows.filter(kind=Kind.PERMIT, seq__lt=done.seq).order_by("-seq") if done else []
    for permit in permits[:PERMITS]:
        if permit.seq and decode(bytes(permit.line)).body.get("act") != "check":
            return int(permit.seq)
    return run.count


def last_question(run: Run) -> tuple[int, str] | None:
    """The permit of the last question that was asked, and its step; none of a run that asked nothing."""
    rows = RunRecord.objects.filter(run=run, kind=Kind.PERMIT).order_by("-seq")
    for row in rows[:PERMITS]:
        if decode(bytes(row.line)).body.get("act") in ("ask", "plan"):
            return row.seq, f"{row.task}/{row.step}" if row.step else row.task
    return None


def entered(rows: Any, task: str) -> int | None:
    """The record after which a task was entered last; its first record where no route leads there."""
    first = rows.filter(task=task).order_by("seq").first()
    if first is None:
        return None
    for row in rows.filter(kind=Kind.ROUTE).order_by("-seq")[:ROUTES]:
        if decode(bytes(row.line)).body.get("to") == f"{task}/":
            return int(row.seq) + 1
    return int(first.seq)


def points(run: Run) -> list[dict[str, Any]]:
    """What the page of an ended run offers, each with the record to fork at and what it does."""
    found: list[dict[str, Any]] = []
    asked = last_question(run)
    if asked:
        text = f"Asks {asked[1]} again. Records before {asked[0]} are reused."
        found.append({"at": asked[0], "word": "From the last question", "text": text})
    at = entered(RunRecord.objects.filter(run=run), run.task) if run.task else None
    if at:
        text = f"Runs {run.task} again. Records before {at} are reused."
        found.append({"at": at, "word": "From this task", "text": text})
    return found
