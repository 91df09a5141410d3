"""The page of a spec's health, version by version: what it is filtered by stands in its address.

Takes a spec and a query string; renders what dashboards counts. Odd values are left out, never an error.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from spakweb.face.runs import dashboards
from spakweb.face.runs.filters import word
from spakweb.face.specs.views import around, find_spec
from spakweb.ground.text import as_number
from spakweb.work.runs.modes import MODES

SPANS = (7, 14, 30, 90)
PAGE = 25
"""Versions of a page."""


@require_safe
def health_page(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """`?days=&label=&mode=&baseline=`: each version with its figures, beside a baseline and the targets."""
    found = find_spec(request, team, spec)
    asked = asked_for(request.GET)
    rows = dashboards.versions(found, asked["days"], asked["label"], asked["mode"])
    baseline = dashboards.baseline_of(rows, asked["baseline"])
    newest = rows[:1]
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = around(request, found, "health") | {
        "asked": asked,
        "spans": SPANS,
        "modes": MODES[1:],
        "health": [(one, one.against(baseline)) for one in page],
        "newest_only": dashboards.newest_of(rows),
        "page": page,
        "query": _query(asked),
        "baseline": baseline,
        "baselines": [one.version for one in rows if one.tokens_each],
        "newest": newest[0] if newest else None,
        "metrics": dashboards.metrics(newest, baseline if baseline not in newest else None),
    }
    return render(request, "runs/health.html", context)


def asked_for(query: QueryDict) -> dict[str, Any]:
    """The span, label, baseline and mode of a query."""
    days, baseline, mode = (query.get(name, "") for name in ("days", "baseline", "mode"))
    return {
        "days": next((span for span in SPANS if str(span) == days), dashboards.DAYS),
        "label": word(query.get("label", "")),
        "mode": mode if mode in MODES else "",
        "baseline": as_number(baseline),
    }


def _query(asked: dict[str, Any]) -> str:
    """What the page is filtered by, as an address has it."""
    return urlencode({name: value for name, value in asked.items() if value})
