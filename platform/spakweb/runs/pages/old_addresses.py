"""Addresses of 0.1 that had no team in front: programs that still ask for them are sent on (301).

Whoever may not see what an address is about gets a 404 here already, as at the address of today.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from spakweb import access
from spakweb.runs.models import Run
from spakweb.teams.models import Team


@access.by_token
@require_safe
def run_events(request: HttpRequest, key: str) -> HttpResponsePermanentRedirect:
    """`runs/KEY/events`"""
    run = access.find(request.user, "run.view", Run.objects.select_related("team"), key=key)
    return _moved(request, "spak-run-events", run.team.slug, key)


@access.by_token
@require_safe
def team_events(request: HttpRequest, team: str) -> HttpResponsePermanentRedirect:
    """`team/TEAM/runs/events`"""
    access.find(request.user, "team.view", Team, slug=team)
    return _moved(request, "spak-team-events", team)


@access.by_token
@require_safe
def team_runs(request: HttpRequest, team: str) -> HttpResponsePermanentRedirect:
    """`team/TEAM/runs.json`"""
    access.listed(request.user, "run.view", Run, team)
    return _moved(request, "spak-team-runs", team)


def _moved(request: HttpRequest, name: str, *args: str) -> HttpResponsePermanentRedirect:
    query = request.META.get("QUERY_STRING", "")
    return HttpResponsePermanentRedirect(reverse(name, args=args) + (f"?{query}" if query else ""))
