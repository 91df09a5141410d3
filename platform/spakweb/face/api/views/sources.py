"""Sources: a team's git repositories, listed, added, removed, and their credentials changed; and the branches
that what a run changed goes out on."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from spakweb.face.api.operations import RUN, TEAM, get, post
from spakweb.face.api.shapes import common as shapes
from spakweb.face.api.views.runs import find_run
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.sources.models import Branch, Source
from spakweb.work.sources import actions, branches

SOURCES = f"{TEAM}sources/"
SOURCE = f"{SOURCES}<slug:source>/"
BRANCHES = f"{RUN}branches/"


def find_source(request: Request, team: str, source: str, action: str) -> Source:
    """The source. Raises: Http404, PermissionDenied."""
    rows = Source.objects.select_related("team", "made_by")
    found: Source = access.find(request.user, action, rows, team__slug=team, name=source)
    return found


@get("spak-api-sources", SOURCES, gives=shapes.Sources, query=())
def list_sources(request: Request, team: str, query: Any) -> Any:
    """All sources, by name."""
    found = access.find(request.user, "source.view", Team, slug=team)
    return Source.objects.filter(team=found).select_related("made_by")


@post("spak-api-sources", SOURCES, takes=shapes.SourceRequest, gives=shapes.SourceShape, status=201)
def add_source(request: Request, team: str, body: Any) -> Any:
    """Add a source. Needs the scope admin."""
    found, given = access.find(request.user, "source.manage", Team, slug=team), body()
    named = {name: given.pop(name) for name in ("name", "url")}
    return lambda: actions.add(request.user, found, allowed=given.pop("refs"), **named, **given)


@get("spak-api-source", SOURCE, gives=shapes.SourceShape)
def get_source(request: Request, team: str, source: str) -> Any:
    """A source, without its credentials."""
    return find_source(request, team, source, "source.view")


@post("spak-api-source-remove", f"{SOURCE}remove/", status=204)
def remove_source(request: Request, team: str, source: str) -> None:
    """Remove a source with its credentials. Needs the scope admin."""
    actions.remove(request.user, find_source(request, team, source, "source.manage"))


@post(
    "spak-api-source-credentials", f"{SOURCE}credentials/",
    takes=shapes.CredentialsRequest, gives=shapes.SourceShape,
)  # fmt: skip
def rotate_source(request: Request, team: str, source: str, body: Any) -> Any:
    """Other credentials for a source. Needs the scope admin."""
    found = find_source(request, team, source, "source.manage")
    return actions.rotate(request.user, found, **body())


@get("spak-api-branches", BRANCHES, gives=shapes.Branches)
def list_branches(request: Request, team: str, run: str) -> Any:
    """Branches that what the run changed goes out on, with their states."""
    rows = Branch.objects.filter(run=find_run(request, team, run))
    return rows.select_related("asked_by", "decided_by")


@post("spak-api-branches", BRANCHES, takes=shapes.BranchRequest, gives=shapes.BranchShape, status=201)
def ask_branch(request: Request, team: str, run: str, body: Any) -> Any:
    """Ask for a branch of what the run changed; a person approves what would run by itself.

    Needs the scope start."""
    found, given = find_run(request, team, run), body()
    return lambda: branches.ask(request.user, found, **given)
