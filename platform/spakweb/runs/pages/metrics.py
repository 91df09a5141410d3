"""The tab of metrics: candidates over the run as a plot and a table, or the best value as it went."""

from __future__ import annotations

from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from spak.errors import UserError
from spak.kernel.rules import Rules
from spak.program import MetricRule
from spak.records import Kind, Record, decode
from spak.runner.history import History, rules_of
from spak.runner.views.report import baseline, plot
from spakweb.runs import words
from spakweb.runs.models import Run, RunRecord

MOST = 20_000
"""Records of plans, choices and results that are read for the plot."""
ROWS = 200
WHOLE = ("steps", "elapsed_ms", "tokens", "calls", "cost_nanousd", "evaluations", "stopped_by",
         "baseline_ms", "best_ms", "speedup", "baseline", "best", "improvement", "per_unit")  # fmt: skip
"""Metrics of the whole run; all others are of what was measured last."""


def pane(run: Run) -> dict[str, Any]:
    """What the tab of metrics shows."""
    summary = run.summary or {}
    metrics = [(name, words.metric(name, value)[1]) for name, value in (summary.get("metrics") or {}).items()
               if isinstance(value, int | float | str | bool)]  # fmt: skip
    history = candidates(run)
    first = baseline(summary.get("metrics") or {})
    drawing: SafeString | None = None
    if any(row.value for row in history.rows):
        # The report's plot escapes every text that is not its own.
        drawing = mark_safe(plot(history.rows, first))
    values = (summary.get("metric") or {}).get("values") or []
    return {
        "figures": [
            ("The last measurement", [one for one in metrics if one[0] not in WHOLE]),
            ("The run so far", [one for one in metrics if one[0] in WHOLE]),
        ],
        "plot": drawing,
        "candidates": [(row, history.metric(row.task)) for row in history.rows[-ROWS:][::-1]],
        "candidate_count": len(history.rows),
        "spark": sparkline(values, 420, 80) if drawing is None else None,
    }


def candidates(run: Run) -> History:
    """The table of candidates, read off the records that make it."""
    history = History()
    kinds = (Kind.GENESIS, Kind.PLAN, Kind.SELECT, Kind.ACT, Kind.ROUTE)
    rows = RunRecord.objects.filter(run=run, kind__in=kinds).order_by("seq").values_list("line", flat=True)
    for line in rows[:MOST].iterator(chunk_size=500):
        record = decode(bytes(line))
        if record.kind == Kind.GENESIS:
            rules = metric_rules(record)
            if rules is None:
                return history
            history.rules = rules
        history.feed(record)
    return history


def metric_rules(genesis: Record) -> dict[str, MetricRule] | None:
    """The metric rule of each task that has one; None when the rules cannot be read."""
    try:
        return rules_of(Rules.of(genesis.body).program)
    except UserError:
        return None


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
