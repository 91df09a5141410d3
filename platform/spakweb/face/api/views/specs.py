"""Teams, specs, versions, and the check of a text."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.urls import reverse
from rest_framework.request import Request

from spak.lang.diagnostics import Severity
from spakweb.face.api.operations import SPEC, TEAM, Answer, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.api.shapes import common as shapes
from spakweb.face.api.shapes import versions as shapes_versions
from spakweb.ground import access
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.ground.text import clean
from spakweb.store.specs import reach
from spakweb.store.specs.facts import findings
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.work.specs.actions import create_spec as create

SPECS = f"{TEAM}specs/"


def find_spec(request: Request, team: str, spec: str, action: str = "spec.view") -> Spec:
    """The spec. Raises: Http404, PermissionDenied."""
    rows = Spec.objects.select_related("team", "head")
    found: Spec = access.find(request.user, action, rows, team__slug=team, slug=spec)
    return found


def located(request: Request, view: str, *parts: Any) -> dict[str, str]:
    """The header that says where a new thing is."""
    return {"Location": request.build_absolute_uri(reverse(view, args=parts))}


@get("spak-api-teams", "teams/", gives=shapes.Teams)
def list_teams(request: Request) -> Any:
    """The teams that the token reaches."""
    return access.visible_to(request.user, Team.objects.all()).order_by("slug")


@get(
    "spak-api-specs", SPECS, gives=shapes.Specs,
    query=(
        Query("q", str, description="What the name or the slug holds."),
        Query("archived", str, enum=["1"], description="Archived ones instead."),
        Query("after", str, description="The slug that the last page ended with."),
    ),
)  # fmt: skip
def list_specs(request: Request, team: str, query: dict[str, Any]) -> Any:
    """The specs of a team that are not archived, by slug."""
    _, rows = access.listed(request.user, "spec.view", Spec, team)
    rows = rows.filter(archived_at__isnull="archived" not in query)
    if words := query.get("q"):
        rows = rows.filter(Q(name__icontains=words) | Q(slug__icontains=words))
    rows = rows.select_related("team", "head").defer("head__text").prefetch_related("tags__version")
    return paged(request, rows, query, "after", "slug")


@post("spak-api-specs", SPECS, takes=shapes_versions.NewSpecRequest, gives=shapes.SpecShape, status=201)
def create_spec(request: Request, team: str, body: Any) -> Any:
    """Create a spec with its first version. Needs the scope edit."""
    found, given = access.find(request.user, "spec.edit", Team, slug=team), body()

    def work() -> Answer:
        made = create(request.user, found, given["name"], given["text"], given.get("message", ""))
        return Answer(made, headers=located(request, "spak-api-spec", team, made.slug))

    return work


@get("spak-api-spec", SPEC, gives=shapes.SpecShape)
def get_spec(request: Request, team: str, spec: str) -> Any:
    """A spec with its tags."""
    return find_spec(request, team, spec)


@get("spak-api-version", f"{SPEC}versions/<int:number>/", gives=shapes.VersionShape)
def get_version(request: Request, team: str, spec: str, number: int) -> Any:
    """A version of a spec with its text."""
    rows = SpecVersion.objects.select_related("author")
    here = {"spec__team__slug": team, "spec__slug": spec, "number": number}
    found = access.find(request.user, "spec.view", rows, **here)
    return Answer(found, headers={"ETag": shapes_versions.etag_of(found)})


@post("spak-api-check", f"{SPEC}check/", takes=shapes.CheckRequest, gives=shapes.Checked)
def check_spec(request: Request, team: str, spec: str, body: Any) -> Any:
    """What `spak check` says of a text, with the files that the spec imports and the law of the team. For
    a token for some specs an IMPORT finds these alone."""
    found = find_spec(request, team, spec)
    text = clean(body()["text"], shapes.TEXT_BYTES)
    rows = findings(reach.files_for(request.user, found).whole(text), law_of(found.team))
    return {"ok": all(one.severity != Severity.ERROR for one in rows), "findings": rows}
