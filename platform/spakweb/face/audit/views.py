"""What happened in a team: a page with filters in its address, and the same rows as CSV or JSONL."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from spakweb.ground import access
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team

PAGE = 100
FIELDS = ("at", "actor", "action", "thing", "before", "after", "detail", "ip", "request")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for the beginning of a formula."""


@require_safe
def events(request: HttpRequest, team: str) -> HttpResponse:
    """The page of what happened in a team."""
    found = access.find(request.user, "audit.view", Team, slug=team)
    rows, filters = _filtered(request, found)
    context = {
        "team": found,
        "section": "team",
        "events": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "actions": Event.objects.filter(team=found)
        .order_by("action")
        .values_list("action", flat=True)
        .distinct(),
        "filters": filters,
        "query": _query(request),
    }
    return render(request, "audit/_events.html" if request.htmx else "audit/events.html", context)


@require_safe
def export(request: HttpRequest, team: str) -> HttpResponse:
    """Every row that the filters leave, oldest first; `as=csv` or `as=jsonl`."""
    found = access.find(request.user, "audit.view", Team, slug=team)
    rows, _ = _filtered(request, found)
    kind = request.GET.get("as", "jsonl")
    if kind not in ("csv", "jsonl"):
        raise Refused("web.export", f"{kind[:20]!r} is not a form of export.", "Choose csv or jsonl.")
    lines = (_csv if kind == "csv" else _jsonl)(rows.order_by("pk"))
    mime = "text/csv" if kind == "csv" else "application/jsonl"
    response = StreamingHttpResponse(lines, content_type=f"{mime}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.slug}-events.{kind}"'
    return response


def _filtered(request: HttpRequest, team: Team) -> tuple[QuerySet, dict[str, str]]:
    filters = {
        key: request.GET.get(key, "").replace("\0", "")[:100].strip()
        for key in ("q", "action", "since", "until")
    }
    return narrowed(Event.objects.filter(team=team), filters), filters


def narrowed(rows: QuerySet[Event], filters: Mapping[str, str]) -> QuerySet[Event]:
    """The events that fit `q`, `action`, `since` and `until`, of which each may be missing or empty.

    Raises: Refused `web.date`.
    """
    if words := filters.get("q"):
        rows = rows.filter(Q(actor_name__icontains=words) | Q(thing__icontains=words))
    if action := filters.get("action"):
        rows = rows.filter(action=action)
    if since := filters.get("since"):
        rows = rows.filter(at__gte=_moment(since, time.min))
    if until := filters.get("until"):
        rows = rows.filter(at__lte=_moment(until, time.max))
    return rows


def _moment(text: str, at: time) -> datetime:
    try:
        return timezone.make_aware(datetime.combine(date.fromisoformat(text), at))
    except (ValueError, OverflowError) as error:
        raise Refused("web.date", f"{text[:20]!r} is not a date.", "Write it as 2026-01-31.") from error


def _query(request: HttpRequest) -> str:
    """The filters without the page, for links."""
    kept = request.GET.copy()
    kept.pop("page", None)
    return kept.urlencode()


def row_of(event: Event) -> dict[str, object]:
    """An event as exports have it."""
    return {
        "at": event.at.isoformat(),
        "actor": event.actor_name,
        "action": event.action,
        "thing": event.thing,
        "before": event.before,
        "after": event.after,
        "detail": event.detail,
        "ip": event.ip or "",
        "request": event.request,
    }


def _jsonl(rows: QuerySet) -> Iterator[str]:
    for event in rows.iterator(1000):
        yield json.dumps(row_of(event), ensure_ascii=False) + "\n"


def _csv(rows: QuerySet) -> Iterator[str]:
    yield _line(FIELDS)
    for event in rows.iterator(1000):
        row = row_of(event) | {"detail": json.dumps(event.detail, ensure_ascii=False) if event.detail else ""}
        yield _line(tuple(_safe(str(row[field])) for field in FIELDS))


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _line(cells: tuple[str, ...]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
