"""The page of a team's rules for jobs of a CI: its admins add and remove them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spakweb.face.teams.views_tokens import SCOPES
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.oidc.models import Kind, Rule
from spakweb.ground.teams.models import Team
from spakweb.work.oidc import actions
from spakweb.work.teams import tokens

TEXTS = ("name", "kind", "repository", "ref", "audience", "issuer", "environment")


@require_safe
def rule_list(request: HttpRequest, team: str) -> HttpResponse:
    """The rules, and the form for another."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    origin = request.build_absolute_uri("/").rstrip("/")
    given = {"kind": "github", "audience": origin, "ref": "refs/heads/main", "minutes": "60", "once": "on"}
    return _list(request, found, {**given, "scope": ["start"]})


@require_POST
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Add a rule. What was refused stays in the form."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    given = {name: request.POST.get(name, "")[:500] for name in (*TEXTS, "specs", "minutes", "once")}
    scopes = request.POST.getlist("scope")
    minutes = int(given["minutes"]) if given["minutes"] in map(str, actions.MINUTES) else 0
    try:
        made = actions.add(
            request.user, found,
            actions.Wanted(
                **{name: given[name] for name in TEXTS}, scopes=tuple(scopes), minutes=minutes,
                specs=tuple(given["specs"].replace(",", " ").split()), once=bool(given["once"]),
            ),
        )  # fmt: skip
    except Refused as why:
        return _list(request, found, {**given, "scope": scopes}, why)
    messages.success(request, f"Jobs of {made.repository} can sign in.")
    return redirect("spak-oidc-list", team=team)


@require_POST
def remove(request: HttpRequest, team: str, rule: int) -> HttpResponse:
    """Remove a rule."""
    found = access.find(request.user, "team.manage", Rule, team__slug=team, pk=rule)
    actions.remove(request.user, found)
    messages.success(request, f"{found.name} was removed; its tokens have ended.")
    return redirect("spak-oidc-list", team=team)


def _list(
    request: HttpRequest, team: Team, given: dict[str, Any], why: Refused | None = None
) -> HttpResponse:
    rules = list(Rule.objects.filter(team=team).select_related("made_by"))
    names = tokens.spec_names(rules)
    for one in rules:
        one.names = names[one.pk]
    context = {
        "team": team,
        "section": "automation",
        "origin": request.build_absolute_uri("/").rstrip("/"),
        "hosts": sorted({one.kind for one in rules}),
        "rules": rules,
        "given": given,
        "why": why,
        "kinds": Kind.choices,
        "minutes": actions.MINUTES,
        "scopes": [(name, words, name in given["scope"]) for name, words in SCOPES.items()],
    }
    return render(request, "oidc/list.html", context, status=why.status if why else 200)
