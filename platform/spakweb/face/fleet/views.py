"""The page of the fleet: runners, devices, queues, and why the team's runs wait."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from spakweb.face.fleet import show
from spakweb.ground import access
from spakweb.ground.teams.models import Team


@require_safe
@never_cache
def fleet(request: HttpRequest, team: str) -> HttpResponse:
    """The whole page; its part with the rows when a script asks."""
    found = access.find(request.user, "fleet.view", Team, slug=team)
    context = {"team": found, "section": "fleet", **show.page(found)}
    return render(request, "fleet/_fleet.html" if request.htmx else "fleet/fleet.html", context)
