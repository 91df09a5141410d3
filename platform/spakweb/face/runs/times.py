"""The two times of a run, as every page names them.

`working` is what its steps and backends took, as its records say and as BUDGET counts it; what a fork took
over is part of it. `whole` is from its first record to its end, or to now, with all that it waited. Takes
the row.
"""

from __future__ import annotations

from datetime import datetime

from spakweb.store.runs.models import Run


def working(run: Run) -> int:
    """Milliseconds of work."""
    return int((run.summary or {}).get("elapsed_ms") or 0)


def whole(run: Run, now: datetime) -> int | None:
    """Milliseconds from the first record to the end; None where it has none yet."""
    if run.started_at is None:
        return None
    return max(0, round(((run.ended_at or now) - run.started_at).total_seconds() * 1000))
