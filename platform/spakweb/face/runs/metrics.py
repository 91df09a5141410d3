"""The tab of metrics: candidates over the run as pictures and a table, or the best value as it went."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from spak.runner.history import best_of
from spak.runner.views.plots import parallel, plot
from spak.runner.views.report import baseline
from spakweb.face.runs import candidates
from spakweb.store.runs import words
from spakweb.store.runs.models import Run

WHOLE = ("steps", "elapsed_ms", "tokens", "calls", "cost_nanousd", "evaluations", "stopped_by",
         "baseline_ms", "best_ms", "speedup", "speedup_low", "speedup_high",
         "baseline", "best", "improvement", "per_unit")  # fmt: skip
"""Metrics of the whole run; all others are of what was measured last."""


def pane(run: Run, given: Mapping[str, str]) -> dict[str, Any]:
    """What the tab of metrics shows; `given` orders the table and chooses two sources."""
    summary = run.summary or {}
    metrics = [(name, words.metric(name, value)[1]) for name, value in (summary.get("metrics") or {}).items()
               if isinstance(value, int | float | str | bool)]  # fmt: skip
    found = candidates.candidates(run)
    rows = found.history.rows
    drawing: SafeString | None = None
    if any(row.shown is not None for row in rows):
        # spak.runner.views.plots escapes every text that is not its own.
        drawing = mark_safe(plot(rows, baseline(summary.get("metrics") or {})))
    values = (summary.get("metric") or {}).get("values") or []
    return {
        "figures": [
            ("The last measurement", [one for one in metrics if one[0] not in WHOLE]),
            ("The run so far", [one for one in metrics if one[0] in WHOLE]),
        ],
        "plot": drawing,
        "space": mark_safe(parallel(rows, best_of(rows))),
        "spark": sparkline(values, 420, 80) if drawing is None else None,
        "best_record": candidates.offered(rows),
        **candidates.table(found, given),
        **candidates.compared(run, found, given),
    }


def sparkline(values: list[Any], wide: int = 120, high: int = 28) -> SafeString | None:
    """A line of numbers, without axes; the figure stands beside it."""
    found = [float(value) for value in values if isinstance(value, int | float)]
    if len(found) < 2:
        return None
    low, top = min(found), max(found)
    span = (top - low) or 1.0
    step = (wide - 4) / (len(found) - 1)
    points = " ".join(
        f"{2 + place * step:.1f},{2 + (high - 4) * (1 - (value - low) / span):.1f}"
        for place, value in enumerate(found)
    )
    label = f"{len(found)} values from {words.figure(found[0])} to {words.figure(found[-1])}"
    return mark_safe(
        f'<svg class="spark" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title><polyline points="{points}"/></svg>'
    )
