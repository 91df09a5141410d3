"""Teams, specs, versions, the check of a text, and patches."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spak.lang.diagnostics import Severity
from spakweb import access
from spakweb.api import shapes, shapes_versions
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, page_of
from spakweb.specs import reach
from spakweb.specs.actions import create_spec
from spakweb.specs.facts import findings
from spakweb.specs.models import Spec, SpecVersion
from spakweb.teams.law import law_of
from spakweb.teams.models import Team
from spakweb.text import clean


def find_spec(request: Request, team: str, spec: str, action: str = "spec.view") -> Spec:
    """The spec. Raises: Http404, PermissionDenied."""
    rows = Spec.objects.select_related("team", "head")
    found: Spec = access.find(request.user, action, rows, team__slug=team, slug=spec)
    return found


class TeamList(View):
    """Teams."""

    answers = shapes.Teams

    @extend_schema(operation_id="list_teams", responses=shapes.Teams)
    def get(self, request: Request) -> Response:
        """The teams that the token reaches."""
        rows = access.visible_to(request.user, Team.objects.all()).order_by("slug")
        found = [
            {
                "slug": team.slug,
                "name": team.name,
                "role": str(access.role_in(request.user, team)),
                "html_url": request.build_absolute_uri(reverse("spak-team-home", args=[team.slug])),
            }
            for team in rows
        ]
        return Response({"teams": found})


class SpecList(View):
    """Specs."""

    answers = shapes.Specs

    @extend_schema(
        operation_id="list_specs",
        responses=shapes.Specs,
        parameters=[
            OpenApiParameter("q", str, description="What the name or the slug holds."),
            OpenApiParameter("archived", str, enum=["1"], description="Archived ones instead."),
            OpenApiParameter("after", str, description="The slug that the last page ended with."),
        ],
    )
    def get(self, request: Request, team: str) -> Response:
        """The specs of a team that are not archived, by slug."""
        _, rows = access.listed(request.user, "spec.view", Spec, team)
        given = asked(request, "q", "archived", "after")
        rows = rows.filter(archived_at__isnull="archived" not in given)
        if words := given.get("q"):
            rows = rows.filter(Q(name__icontains=words) | Q(slug__icontains=words))
        if after := given.get("after"):
            rows = rows.filter(slug__gt=after)
        rows = rows.select_related("team", "head").defer("head__text")
        rows = rows.prefetch_related("tags__version").order_by("slug")[: PAGE + 1]
        page, more = page_of(request, rows, "after", lambda one: one.slug)
        return Response({"specs": [shapes.spec_of(request, one) for one in page], "next": more})

    @extend_schema(
        operation_id="create_spec",
        request=shapes_versions.NewSpecRequest,
        responses={201: shapes.SpecShape},
    )
    def post(self, request: Request, team: str) -> Response:
        """Create a spec with its first version. Needs the scope edit."""
        found = access.find(request.user, "spec.edit", Team, slug=team)
        given = self.given(request, shapes_versions.NewSpecRequest)

        def work() -> Response:
            made = create_spec(request.user, found, given["name"], given["text"], given.get("message", ""))
            address = reverse("spak-api-spec", args=[team, made.slug])
            headers = {"Location": request.build_absolute_uri(address)}
            return Response(shapes.spec_of(request, made), status=201, headers=headers)

        return once(request, work)


class SpecDetail(View):
    """A spec."""

    answers = shapes.SpecShape

    @extend_schema(operation_id="get_spec", responses=shapes.SpecShape)
    def get(self, request: Request, team: str, spec: str) -> Response:
        """A spec with its tags."""
        return Response(shapes.spec_of(request, find_spec(request, team, spec)))


class VersionDetail(View):
    """A version."""

    answers = shapes.VersionShape

    @extend_schema(operation_id="get_version", responses=shapes.VersionShape)
    def get(self, request: Request, team: str, spec: str, number: int) -> Response:
        """A version of a spec with its text."""
        rows = SpecVersion.objects.select_related("author")
        here = {"spec__team__slug": team, "spec__slug": spec, "number": number}
        found = access.find(request.user, "spec.view", rows, **here)
        return Response(shapes.version_of(found), headers={"ETag": shapes_versions.etag_of(found)})


class SpecCheck(View):
    """A check of a text."""

    @extend_schema(operation_id="check_spec", request=shapes.CheckRequest, responses=shapes.Checked)
    def post(self, request: Request, team: str, spec: str) -> Response:
        """What `spak check` says of a text, with the files that the spec imports and the law of the team. For
        a token for some specs an IMPORT finds these alone."""
        found = find_spec(request, team, spec)
        text = clean(self.given(request, shapes.CheckRequest)["text"], shapes.TEXT_BYTES)
        rows = findings(reach.files_for(request.user, found).whole(text), law_of(found.team))
        shown = [
            {
                "code": one.code,
                "severity": str(one.severity),
                "message": one.message,
                "hint": one.hint,
                "line": one.line,
                "column": one.column,
            }
            for one in rows
        ]
        return Response({"ok": all(one.severity != Severity.ERROR for one in rows), "findings": shown})
