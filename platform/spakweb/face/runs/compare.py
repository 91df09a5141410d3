"""Two runs beside each other: their specs, what each task took and reached, the first record that differs.

Takes two rows of one team; gives what the page shows. Records are compared by what they decide, not by clocks
or side notes, up to `MOST` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from spak.costs import cost_of
from spak.kernel import fit
from spak.records import Authority, Kind, Record, decode
from spakweb.face.runs import record_parts, times
from spakweb.face.runs.candidates import metric_rules
from spakweb.face.runs.filters import within
from spakweb.face.runs.template_tags import cost
from spakweb.face.runs.views import find_run
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.runs.spec_text import spec_text
from spakweb.work.specs.show import difference

MOST = 20_000
CHOICES = 50


@require_safe
def compare(request: HttpRequest, team: str) -> HttpResponse:
    """?one=KEY&two=KEY; without the second, a choice of runs to compare with."""
    found = access.find(request.user, "team.view", Team, slug=team)
    keys = [request.GET.get(name, "").replace("\0", "") for name in ("one", "two")]
    context: dict[str, Any] = {"team": found, "section": "runs"}
    choices = Run.objects.filter(team=found, count__gt=0, deleted_at=None, trial="").only(
        "key", "name", "made_at", "state", "agent"
    )
    context["choices"] = list(choices.order_by("-pk")[:CHOICES])
    if not all(keys):
        context["one"] = keys[0]
        mine = Run.objects.filter(team=found, key=keys[0]).values_list("version__spec", flat=True).first()
        others = (
            choices.exclude(key=keys[0]).filter(version__spec=mine).order_by("-pk")
            if mine
            else choices.none()
        )
        context["two"] = others.values_list("key", flat=True).first()  # the newest of the same spec
        return render(request, "runs/compare.html", context)
    one, two = (find_run(request, team, key) for key in keys)
    context["choices"] += [run for run in {one, two} if run not in context["choices"]]
    if not (one.count and two.count):
        raise Http404
    texts = [spec_text(run) for run in (one, two)]
    context |= {
        "runs": (one, two),
        "one": one.key,
        "two": two.key,
        "same_spec": texts[0] == texts[1],
        "tasks": tasks(one, two),
        "totals": totals(one, two),
        "first": first_difference(one, two),
        "most": MOST,
        "notes": abs(one.count - two.count),
        **(difference(texts[0], texts[1]) if texts[0] != texts[1] else {}),
    }
    return render(request, "runs/compare.html", context)


def totals(one: Run, two: Run) -> list[dict[str, Any]]:
    """Figures of both, with what the second has more."""

    def of(run: Run) -> dict[str, Any]:
        summary = run.summary or {}
        metrics = summary.get("metrics") or {}
        return {
            "steps": summary.get("steps"),
            "working time": times.working(run),
            "time with waiting": times.whole(run, timezone.now()) if run.ended else None,
            "tokens": tokens_used(summary),
            "cost": summary.get("cost") or None,
            "denied": summary.get("denied", 0),
            "failures of tasks": summary.get("failures", 0),
            "recovered automatically": summary.get("healed", 0),
            "best_ms": metrics.get("best_ms"),
            "records": run.count,
        }

    first, second = of(one), of(two)
    return [
        _row(name, first[name], second[name]) for name in first if first[name] is not None or second[name]
    ]


def _row(name: str, first: Any, second: Any, metric: str = "") -> dict[str, Any]:
    shown = FORMATS.get(name) or (lambda value: words.metric(metric if name == "best" else name, value)[1])
    delta = second - first if first is not None and second is not None else None
    return {
        "name": name.removesuffix("_ms"),
        "one": shown(first),
        "two": shown(second),
        "delta": _delta(shown, delta),
    }


def _delta(shown: Callable[[Any], str], delta: Any) -> str:
    if delta is None:
        return "not available"
    return f"{'-' if delta < 0 else '+'}{shown(abs(delta))}" if delta else "the same"


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "working time": words.took,
    "time with waiting": words.took,
    "time": words.took,
    "cost": cost,
}


@dataclass(slots=True)
class Spent:
    """On one task of a run, over all visits."""

    visits: int = 0
    time: int = 0
    tokens: int = 0
    cost: int = 0
    best: int | float | None = None
    """The best value of its metric when it was left last."""


def tasks(one: Run, two: Run) -> list[dict[str, Any]]:
    """Each task of either: how often it was entered, what it took, and its metric, with the differences."""
    spent = [_spent(run) for run in (one, two)]
    names = list(dict.fromkeys([*spent[0], *spent[1]]))
    metrics = _metrics(one) | _metrics(two)
    found = []
    for name in names:
        sides = [side.get(name, Spent()) for side in spent]
        figures = []
        for what, label in TASK_FIGURES.items():
            first, second = (getattr(side, what) for side in sides)
            figures.append(
                _row(what, first, second, metrics.get(name, ""))
                | {"label": label, "said": bool(first or second)}
            )
        found.append({"name": name, "visits": [side.visits for side in sides], "figures": figures})
    return found


TASK_FIGURES: Mapping[str, str] = {
    "time": "Working time",
    "tokens": "Tokens",
    "cost": "Cost",
    "best": "Metric",
}


def _spent(run: Run) -> dict[str, Spent]:
    """Its time is the working time of its records (`times`)."""
    found: dict[str, Spent] = {}
    before = ""
    rows = RunRecord.objects.filter(run=run).exclude(task="").order_by("seq")
    for task in rows.values_list("task", flat=True)[:MOST]:
        if task != before:
            found.setdefault(task, Spent()).visits += 1
            before = task
    for task, node in ((run.summary or {}).get("nodes") or {}).items():
        if task in found:  # a task that goes on to itself stands in one piece
            found[task].visits = node.get("visits", 0)
    rows = rows.alias(
        tokens=within("line", b'"tokens"'),
        price=within("line", b'"cost_nanousd"'),
        best=within("line", b'"best"'),
        worked=within("line", b'"ms"'),
    )
    answered = Q(authority="proposal") & (Q(tokens__gt=0) | Q(price__gt=0)) | Q(worked__gt=0)
    telling = rows.filter(answered | Q(kind=Kind.ROUTE, best__gt=0))
    for line in telling.values_list("line", flat=True)[:MOST].iterator(chunk_size=500):
        record = decode(bytes(line))
        if record.task in found:
            _add(found[record.task], record)
    return found


def _metrics(run: Run) -> dict[str, str]:
    first = RunRecord.objects.filter(run=run, seq=0).first()
    rules = metric_rules(decode(bytes(first.line))) if first else None
    return {task: rule.metric for task, rule in (rules or {}).items()}


def _add(spent: Spent, record: Record) -> None:
    cost, best = cost_of(record.side), record.body.get("best")
    spent.time += fit.count(record.side, "ms")
    spent.tokens += cost.tokens
    spent.cost += cost.nanousd
    if isinstance(best, int | float) and not isinstance(best, bool):
        spent.best = best


def first_difference(one: Run, two: Run) -> dict[str, Any] | None:
    """The first place where the two decide or answer differently; None when they do not."""
    sides = [
        RunRecord.objects.filter(run=run, seq__gt=0).exclude(authority=Authority.HOST).order_by("seq")
        for run in (one, two)
    ]
    lines = [rows.values_list("line", flat=True)[:MOST].iterator(chunk_size=500) for rows in sides]
    for first, second in zip_longest(*lines):
        pair = [None if line is None else decode(bytes(line)) for line in (first, second)]
        if pair[0] is None or pair[1] is None or pair[0].content != pair[1].content:
            shown = [
                {"record": record, "said": words.sentence(record), "run": run}
                for record, run in zip(pair, (one, two), strict=True)
                if isinstance(record, Record)
            ]
            both = [
                (record, DatabaseLedgers().reader(run.key).blobs)
                for record, run in zip(pair, (one, two), strict=True)
                if isinstance(record, Record)
            ]
            parts = [record_parts.between(both[0], both[1])] if len(both) == 2 else []
            return {"sides": shown, "missing": len(shown) == 1, "parts": parts}
    return None
