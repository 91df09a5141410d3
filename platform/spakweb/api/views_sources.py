"""Sources: a team's git repositories, listed, added, removed, and their credentials changed; and the branches
that what a run changed goes out on."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import asked
from spakweb.api.views_runs import find_run
from spakweb.sources import actions, branches
from spakweb.sources.models import Branch, Source
from spakweb.teams.models import Team


def find_source(request: Request, team: str, source: str, action: str) -> Source:
    """The source. Raises: Http404, PermissionDenied."""
    rows = Source.objects.select_related("team", "made_by")
    found: Source = access.find(request.user, action, rows, team__slug=team, name=source)
    return found


class SourceList(View):
    """Sources of a team."""

    answers = shapes.Sources

    @extend_schema(operation_id="list_sources", responses=shapes.Sources)
    def get(self, request: Request, team: str) -> Response:
        """All sources, by name."""
        asked(request)
        found = access.find(request.user, "source.view", Team, slug=team)
        rows = Source.objects.filter(team=found).select_related("made_by")
        return Response({"sources": [shapes.source_of(one) for one in rows]})

    @extend_schema(
        operation_id="add_source", request=shapes.SourceRequest, responses={201: shapes.SourceShape}
    )
    def post(self, request: Request, team: str) -> Response:
        """Add a source. Needs the scope admin."""
        found = access.find(request.user, "source.manage", Team, slug=team)
        given = self.given(request, shapes.SourceRequest)

        def work() -> Response:
            named = {name: given.pop(name) for name in ("name", "url")}
            made = actions.add(request.user, found, allowed=given.pop("refs"), **named, **given)
            return Response(shapes.source_of(made), status=201)

        return once(request, work)


class SourceDetail(View):
    """A source."""

    answers = shapes.SourceShape

    @extend_schema(operation_id="get_source", responses=shapes.SourceShape)
    def get(self, request: Request, team: str, source: str) -> Response:
        """A source, without its credentials."""
        return Response(shapes.source_of(find_source(request, team, source, "source.view")))


class SourceRemove(View):
    """Removing a source."""

    @extend_schema(operation_id="remove_source", request=None, responses={204: None})
    def post(self, request: Request, team: str, source: str) -> Response:
        """Remove a source with its credentials. Needs the scope admin."""
        actions.remove(request.user, find_source(request, team, source, "source.manage"))
        return Response(status=204)


class SourceCredentials(View):
    """Credentials of a source."""

    @extend_schema(
        operation_id="rotate_source",
        request=shapes.CredentialsRequest,
        responses={200: shapes.SourceShape},
    )
    def post(self, request: Request, team: str, source: str) -> Response:
        """Other credentials for a source. Needs the scope admin."""
        found = find_source(request, team, source, "source.manage")
        given = self.given(request, shapes.CredentialsRequest)
        return Response(shapes.source_of(actions.rotate(request.user, found, **given)))


class RunBranches(View):
    """Branches of a run."""

    answers = shapes.Branches

    @extend_schema(operation_id="list_branches", responses=shapes.Branches)
    def get(self, request: Request, team: str, run: str) -> Response:
        """Branches that what the run changed goes out on, with their states."""
        rows = Branch.objects.filter(run=find_run(request, team, run))
        found = rows.select_related("asked_by", "decided_by")
        return Response({"branches": [shapes.branch_of(row) for row in found]})

    @extend_schema(
        operation_id="ask_branch", request=shapes.BranchRequest, responses={201: shapes.BranchShape}
    )
    def post(self, request: Request, team: str, run: str) -> Response:
        """Ask for a branch of what the run changed; a person approves it. Needs the scope start."""
        found = find_run(request, team, run)
        given = self.given(request, shapes.BranchRequest)

        def work() -> Response:
            return Response(shapes.branch_of(branches.ask(request.user, found, **given)), status=201)

        return once(request, work)
