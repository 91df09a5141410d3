"""What the policy's folds hold of a run, for the tab of its registers.

Takes a run; gives the monitors of its policy (spak.policy.history.monitors) as of the newest projection, each
with the records that it rests on. A law without folds, and a run of which nothing is known yet, have none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.urls import reverse

from spak.datalog import Policy
from spak.errors import SpakError
from spak.kernel.gate import gate_of
from spak.policy.history.monitors import Monitor, monitors
from spak.policy.history.state import from_data
from spak.program.semantics import require_known
from spak.records import decode
from spakweb.store.runs.models import Run, RunRecord

RECORDS = 6
"""Records that a row links."""


def rows(run: Run) -> list[dict[str, Any]]:
    """Each monitor with words and links."""
    kept = (((run.summary or {}).get("registers") or {}).get("R7") or {}).get("history")
    policy = _policy(run.key) if kept else None
    if not kept or policy is None:
        return []
    try:
        found = monitors(policy, from_data(kept))
    except (KeyError, TypeError, ValueError, SpakError):  # a projection of another version
        return []
    return [_row(run, item) for item in found]


def _row(run: Run, item: Monitor) -> dict[str, Any]:
    where = [run.team.slug, run.key]
    limit = item.limit if isinstance(item.value, int) else None
    return {
        "item": item,
        "key": ", ".join(item.key),
        "limit": limit,
        "value": min(int(item.value or 0), limit) if limit else 0,
        "high": item.share is not None and item.share >= 0.8,
        "records": [(seq, reverse("spak-run-record", args=[*where, seq])) for seq in item.records[:RECORDS]],
        "more": max(len(item.records) - RECORDS, 0),
    }


@lru_cache(maxsize=64)
def _policy(run: str) -> Policy | None:
    """The policy that a run's first record names; None where it keeps no folds, or another kernel made it."""
    first = RunRecord.objects.filter(run__key=run, seq=0).values_list("line", flat=True).first()
    rules = decode(bytes(first)).body.get("rules", {}) if first is not None else {}
    try:
        require_known(rules)
        gate = gate_of(rules["policy"])
    except (KeyError, SpakError):  # of another kernel, whose law need not load here
        return None
    return gate.policy if gate.folds else None
