"""What a row of a list of runs shows beyond its columns: the state that is true now, why it waits, its time.

Takes the runs of one page of one team; asks the database the same few questions however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from spakweb import clock
from spakweb.fleet.show import reasons
from spakweb.ledger.projection import tokens_used
from spakweb.live.summaries import standing
from spakweb.runs.models import Run, State
from spakweb.runs.pages.metrics import sparkline
from spakweb.teams.models import Team


def filled(team: Team, rows: Iterable[Run]) -> list[Run]:
    """The runs, each with `elapsed` (ms), `tokens_used`, `line` (its metric, small) and `waits_for`."""
    now, found = clock.now(), list(rows)
    for run in found:
        summary = run.summary or {}
        run.state = standing(run.state, run.holder, run.lease_until, now)
        run.tokens_used = tokens_used(summary)
        run.elapsed = None
        if run.started_at is not None:
            run.elapsed = max(0, round(((run.ended_at or now) - run.started_at).total_seconds() * 1000))
        run.line = sparkline((summary.get("metric") or {}).get("values") or [], 96, 22)
    why = reasons(team, [run for run in found if run.state == State.QUEUED])
    for run in found:
        run.waits_for = why.get(run.pk, "")
    return found
