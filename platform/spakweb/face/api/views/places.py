"""Places that a person may go to, for the palette of the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request

from spakweb.face.api.documents import Document, listing
from spakweb.face.api.operations import Query, get
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec

MOST_RUNS, MOST_SPECS = 50, 500
TEAM_PAGES = {
    "Home": "spak-team-home",
    "Specs": "spak-spec-list",
    "Gallery": "spak-gallery",
    "Runs": "spak-run-list",
    "Suites": "spak-suite-list",
    "Reviews": "spak-reviews",
    "Campaigns": "spak-campaign-list",
    "Runners": "spak-fleet",
    "Members": "spak-team-members",
    "Schedules": "spak-schedule-list",
    "Triggers": "spak-trigger-list",
    "Sources": "spak-source-list",
    "Problems that judge kernels": "spak-problem-list",
    "Compare runs": "spak-run-compare",
    "Rules of the team": "spak-team-rules",
    "Rules of review": "spak-review-rules",
}
OWN_PAGES = {
    "Account": "spak-account",
    "New team": "spak-team-new",
    "Documentation": "spak-docs",
    "API": "spak-explorer",
}


class PagePlace(Document):
    """A spec, a run, a team or another page, and its address on this host."""

    kind = serializers.ChoiceField(["Spec", "Run", "Page", "Team"])
    name = serializers.CharField()
    url = serializers.CharField()


Places = listing(
    "Places", PagePlace, "Pages of a team, or of the first one: its specs and newest runs first."
)


@get(
    "spak-api-places", "places/", gives=Places,
    query=(
        Query("team", str, description="By its slug; else the first."),
        Query("q", str, description="Only runs whose id or name holds it, of all of the team's."),
    ),
)  # fmt: skip
def list_places(request: Request, query: dict[str, Any]) -> Any:
    """Pages that the palette leads to: specs of the team, its newest runs, its pages, other teams."""
    teams = list(access.visible_to(request.user, Team.objects.all()))
    team = next((one for one in teams if one.slug == query.get("team")), teams[0] if teams else None)
    if team is not None and (wanted := query.get("q")):
        return _runs(request, team, Q(key__icontains=wanted) | Q(name__icontains=wanted))
    others = [_place("Team", one.name, "spak-team-home", one.slug) for one in teams if one != team]
    own = [_place("Page", name, view) for name, view in OWN_PAGES.items()]
    return [*(_of_team(request, team) if team is not None else ()), *others, *own]


def _of_team(request: Request, team: Team) -> list[dict[str, str]]:
    rows = access.visible_to(request.user, Spec.objects.filter(team=team, archived_at=None))
    specs = rows.values_list("name", "slug")[:MOST_SPECS]
    may_edit, may_manage, may_audit = access.can_each(
        request.user, team, "spec.edit", "team.manage", "audit.view"
    )
    pages = {
        **TEAM_PAGES,
        **({"New spec": "spak-spec-new"} if may_edit else {}),
        **({"Webhooks": "spak-webhook-list", "CI sign-in": "spak-oidc-list"} if may_manage else {}),
        **({"Audit log": "spak-audit", "Work": "spak-work"} if may_audit else {}),
    }
    return [
        *(_place("Spec", name, "spak-spec-detail", team.slug, slug) for name, slug in specs),
        *_runs(request, team, Q(trial="")),
        *(_place("Page", name, view, team.slug) for name, view in pages.items()),
    ]


def _runs(request: Request, team: Team, which: Q) -> list[dict[str, str]]:
    rows: QuerySet[Run] = access.visible_to(
        request.user, Run.objects.filter(which, team=team, deleted_at=None)
    )
    found = rows.order_by("-pk").values_list("name", "key")[:MOST_RUNS]
    return [_place("Run", f"{name} {key}", "spak-run", team.slug, key) for name, key in found]


def _place(kind: str, name: str, view: str, *args: str) -> dict[str, str]:
    return {"kind": kind, "name": name, "url": reverse(view, args=args)}
