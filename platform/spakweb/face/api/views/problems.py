"""Problems of a team, which its specs name: listed, saved, checked again, removed."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from spakweb.face.api.operations import TEAM, get, post
from spakweb.face.api.shapes import problems as shapes
from spakweb.face.specs.problem_views import find_problem
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.specs.models import ProblemFile
from spakweb.work.specs import problem_files

PROBLEMS = f"{TEAM}problems/"
PROBLEM = f"{PROBLEMS}<int:problem>/"


@get("spak-api-problems", PROBLEMS, gives=shapes.Problems, query=())
def list_problems(request: Request, team: str, query: Any) -> Any:
    """All problems, by name."""
    found = access.find(request.user, "spec.view", Team, slug=team)
    return ProblemFile.objects.filter(team=found).select_related("team", "saved_by").defer("text")


@post("spak-api-problems", PROBLEMS, takes=shapes.ProblemRequest, gives=shapes.ProblemShape, status=201)
def save_problem(request: Request, team: str, body: Any) -> Any:
    """Save a problem, in the place of one of its name, and have it checked. Needs the scope edit."""
    found, given = access.find(request.user, "spec.edit", Team, slug=team), body()
    return lambda: problem_files.save(request.user, found, given["name"], given["text"])


@get("spak-api-problem", PROBLEM, gives=shapes.ProblemWithText, query=())
def get_problem(request: Request, team: str, problem: int, query: Any) -> Any:
    """A problem with its text and what its check found."""
    return find_problem(request.user, team, problem)


@post("spak-api-problem-check", f"{PROBLEM}check/", gives=shapes.ProblemShape, status=202)
def check_problem(request: Request, team: str, problem: int) -> Any:
    """Have a problem checked again. Needs the scope edit."""
    found = find_problem(request.user, team, problem, "spec.edit")
    problem_files.check_again(request.user, found)
    found.refresh_from_db()
    return found


@post("spak-api-problem-remove", f"{PROBLEM}remove/", status=204)
def remove_problem(request: Request, team: str, problem: int) -> None:
    """Remove a problem. Runs that began keep its text. Needs the scope edit."""
    problem_files.remove(request.user, find_problem(request.user, team, problem, "spec.edit"))
