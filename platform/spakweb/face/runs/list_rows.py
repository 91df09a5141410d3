"""What a row of a list of runs shows beyond its columns: the state that is true now, why it waits, its time.

Takes the runs of one page of one team; asks the database the same few questions however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from spakweb.face.fleet.show import reasons
from spakweb.face.runs import times
from spakweb.face.runs.metrics import sparkline
from spakweb.face.streams.summaries import standing
from spakweb.ground import clock
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.runs.models import Run, State


def filled(team: Team, rows: Iterable[Run]) -> list[Run]:
    """The runs, each with `elapsed` (ms), `tokens_used`, `line` (its metric, small) and `waits_for`."""
    now, found = clock.now(), list(rows)
    for run in found:
        summary = run.summary or {}
        run.state = standing(run.state, run.holder, run.lease_until, now, run.heard_at)
        run.tokens_used = tokens_used(summary)
        run.elapsed = times.whole(run, now)
        run.line = sparkline((summary.get("metric") or {}).get("values") or [], 96, 22)
    why = reasons(team, [run for run in found if run.state == State.QUEUED])
    for run in found:
        run.waits_for = why.get(run.pk, "")
    return found
