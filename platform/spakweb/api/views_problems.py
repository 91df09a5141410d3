"""Problems of a team, which its specs name: listed, saved, checked again, removed."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes_problems as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import asked
from spakweb.specs import problem_files
from spakweb.specs.models import ProblemFile
from spakweb.specs.problem_views import find_problem
from spakweb.teams.models import Team


class ProblemList(View):
    """Problems of a team."""

    answers = shapes.Problems

    @extend_schema(operation_id="list_problems", responses=shapes.Problems)
    def get(self, request: Request, team: str) -> Response:
        """All problems, by name."""
        asked(request)
        found = access.find(request.user, "spec.view", Team, slug=team)
        rows = ProblemFile.objects.filter(team=found).select_related("team", "saved_by").defer("text")
        url = request.build_absolute_uri
        return Response({"problems": [shapes.problem_of(one, url) for one in rows]})

    @extend_schema(
        operation_id="save_problem", request=shapes.ProblemRequest, responses={201: shapes.ProblemShape}
    )
    def post(self, request: Request, team: str) -> Response:
        """Save a problem, in the place of one of its name, and have it checked. Needs the scope edit."""
        found = access.find(request.user, "spec.edit", Team, slug=team)
        given = self.given(request, shapes.ProblemRequest)

        def work() -> Response:
            made = problem_files.save(request.user, found, given["name"], given["text"])
            return Response(shapes.problem_of(made, request.build_absolute_uri), status=201)

        return once(request, work)


class ProblemDetail(View):
    """A problem."""

    answers = shapes.ProblemWithText

    @extend_schema(operation_id="get_problem", responses=shapes.ProblemWithText)
    def get(self, request: Request, team: str, problem: int) -> Response:
        """A problem with its text and what its check found."""
        asked(request)
        found = find_problem(request.user, team, problem)
        return Response({**shapes.problem_of(found, request.build_absolute_uri), "text": found.text})


class ProblemCheck(View):
    """Checking a problem."""

    answers = shapes.ProblemShape

    @extend_schema(operation_id="check_problem", request=None, responses={202: shapes.ProblemShape})
    def post(self, request: Request, team: str, problem: int) -> Response:
        """Have a problem checked again. Needs the scope edit."""
        found = find_problem(request.user, team, problem, "spec.edit")
        problem_files.check_again(request.user, found)
        found.refresh_from_db()
        return Response(shapes.problem_of(found, request.build_absolute_uri), status=202)


class ProblemRemove(View):
    """Removing a problem."""

    @extend_schema(operation_id="remove_problem", request=None, responses={204: None})
    def post(self, request: Request, team: str, problem: int) -> Response:
        """Remove a problem. Runs that began keep its text. Needs the scope edit."""
        problem_files.remove(request.user, find_problem(request.user, team, problem, "spec.edit"))
        return Response(status=204)
