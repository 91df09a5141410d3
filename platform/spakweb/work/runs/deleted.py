"""What is left of a run that was deleted, in words: its page, and why nothing else of it can be had."""

from __future__ import annotations

from typing import Any

from spakweb.ground.errors import Refused
from spakweb.ground.text import plural
from spakweb.store.runs.models import Run


def by(run: Run) -> str:
    """Who or what deleted it."""
    return str(run.deleted_by) if run.deleted_by else run.deleted_why


def facts(run: Run) -> dict[str, Any]:
    """The tombstone: what pages show and programs get."""
    return {
        "run": run.key,
        "name": run.name,
        "spec": run.version.spec.slug if run.version else "",
        "version": run.version.number if run.version else None,
        "state": str(run.state),
        "count": run.count,
        "head": run.head,
        "ended_at": run.ended_at.isoformat() if run.ended_at else "",
        "deleted_at": run.deleted_at.isoformat() if run.deleted_at else "",
        "deleted_by": by(run),
    }


def gone(run: Run) -> Refused:
    """Why nothing of it can be had."""
    when = f"{run.deleted_at:%Y-%m-%d %H:%M} UTC" if run.deleted_at else ""
    return Refused(
        "web.run_deleted",
        f"Run {run.key} was deleted on {when} by {by(run)}. It had {plural(run.count, 'record')}.",
        "Its page says what it was; its records no longer exist here.",
        410,
    )
