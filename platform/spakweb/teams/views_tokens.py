"""Pages of one's own tokens: making one, which is shown this once, and revoking one."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from spakweb import access
from spakweb.errors import Refused
from spakweb.teams import tokens
from spakweb.teams.models import Team, Token

SCOPES = {
    "start": "Start, fork, label, pause and cancel runs, and bring files for them",
    "answer": "Answer what a run waits for",
    "edit": "Create specs, save versions and move tags",
    "review": "Propose patches to specs",
    "admin": "Add, change and remove the team's sources",
}
"""What a token may be given besides looking, in words."""


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required
def new(request: HttpRequest) -> HttpResponse:
    """The form; when it is sent, the token."""
    teams = request.user.teams.all()
    context = {
        "teams": teams,
        "days": tokens.DAYS,
        "given": {"days": "30", **request.POST.dict()},
        "scopes": [(name, words, name in request.POST.getlist("scope")) for name, words in SCOPES.items()],
    }
    if request.method != "POST":
        return render(request, "teams/token.html", context)
    slug, days = request.POST.get("team", ""), request.POST.get("days", "")
    team = access.find(request.user, "team.view", Team, slug=slug) if slug else None
    try:
        known = days in map(str, tokens.DAYS)
        made, secret = tokens.make(
            request.user,
            request.POST.get("name", ""),
            int(days) if known else 0,
            team,
            request.POST.getlist("scope"),
        )
    except Refused as why:
        return render(request, "teams/token.html", {**context, "why": why}, status=why.status)
    first = team or teams.first()
    address = request.build_absolute_uri(reverse("spak-team-runs", args=[first.slug])) if first else ""
    line = f'curl -fsS -H "Authorization: Bearer $SPAK_TOKEN" {address}' if address else ""
    return render(request, "teams/token_made.html", {"made": made, "secret": secret, "line": line})


@require_POST
def revoke(request: HttpRequest, token: int) -> HttpResponse:
    """Revoke one of the person's tokens."""
    found = get_object_or_404(Token, pk=token, user=request.user)
    tokens.revoke(found)
    messages.success(request, f"{found.name} does not work any more.")
    return redirect("spak-account")
