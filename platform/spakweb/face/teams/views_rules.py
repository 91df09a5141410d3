"""The page of a team's rules: every member reads them, an admin changes them."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.work.teams import actions


@require_safe
def rules(request: HttpRequest, team: str) -> HttpResponse:
    """The page of a team's rules."""
    found = access.find(request.user, "team.view", Team, slug=team)
    return _rules(request, found)


@require_POST
def save(request: HttpRequest, team: str) -> HttpResponse:
    """What does not load stays in the form, with the reason."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    text = request.POST.get("text", "")
    try:
        actions.set_rules(request.user, found, text)
    except Refused as why:
        return _rules(request, found, why, text=text)
    messages.success(request, "The rules are saved. Runs that begin from now on are under them.")
    return redirect("spak-team-rules", team=team)


def _rules(request: HttpRequest, team: Team, why: Refused | None = None, **edited: str) -> HttpResponse:
    context = {
        "team": team,
        "section": "team",
        "text": team.rules,
        "why": why,
        "operator": settings.LAW,
        "may_manage": access.can(request.user, "team.manage", team),
        **edited,
    }
    return render(request, "teams/rules.html", context, status=why.status if why else 200)
