"""Pages of a team's problems: the list with the form, and one with what its check found."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spak.validators.problems import prototype_in
from spakweb import access
from spakweb.errors import Refused
from spakweb.specs import problem_files
from spakweb.specs.models import ProblemFile
from spakweb.teams.models import Team


def find_problem(user: Any, team: str, key: int, action: str = "spec.view") -> ProblemFile:
    """The problem, for who may. Raises: Http404, PermissionDenied."""
    rows = ProblemFile.objects.select_related("team", "saved_by")
    found: ProblemFile = access.find(user, action, rows, team__slug=team, pk=key)
    return found


@require_safe
def problem_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's problems; for editors the form for another."""
    return _list(request, access.find(request.user, "spec.view", Team, slug=team), {})


@require_POST
@never_cache
def save(request: HttpRequest, team: str) -> HttpResponse:
    """Keep a file or a typed text; what was refused stays in the form."""
    found = access.find(request.user, "spec.edit", Team, slug=team)
    file = request.FILES.get("file")
    given = {"name": request.POST.get("name", ""), "text": request.POST.get("text", "")}
    try:
        if file is not None:
            given["name"] = given["name"].strip() or f"problems/{file.name}"
        made = problem_files.save(
            request.user, found, given["name"], given["text"] if file is None else _read(file)
        )
    except Refused as why:
        return _list(request, found, given, why)
    messages.success(request, f"{made.name} is saved.")
    return redirect("spak-problem", team=team, problem=made.pk)


@require_safe
def problem_page(request: HttpRequest, team: str, problem: int) -> HttpResponse:
    """One problem: what its check found, and its text."""
    found = find_problem(request.user, team, problem)
    context = {
        "team": found.team,
        "section": "team",
        "problem": found,
        "prototype": prototype_in(found.text),
        "may_edit": access.can(request.user, "spec.edit", found),
    }
    return render(request, "problems/_state.html" if request.htmx else "problems/problem.html", context)


@require_safe
def text(request: HttpRequest, team: str, problem: int) -> HttpResponse:
    """The exact text as a file."""
    found = find_problem(request.user, team, problem)
    response = HttpResponse(found.text.encode(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.name.rpartition("/")[2]}"'
    return response


@require_POST
@never_cache
def act(request: HttpRequest, team: str, problem: int) -> HttpResponse:
    """What the page's buttons do: check it again, remove it."""
    found = find_problem(request.user, team, problem, "spec.edit")
    match request.POST.get("do", ""):
        case "check":
            problem_files.check_again(request.user, found)
        case "remove":
            problem_files.remove(request.user, found)
            messages.success(request, f"{found.name} is removed.")
            return redirect("spak-problem-list", team=team)
        case _:
            raise Refused("web.problem_do", "A problem cannot do that.", "Use the buttons of its page.")
    return redirect("spak-problem", team=team, problem=problem)


def _read(file: UploadedFile) -> bytes:
    return bytes(file.read(problem_files.MOST_BYTES + 1))


def _list(
    request: HttpRequest, team: Team, given: dict[str, str], why: Refused | None = None
) -> HttpResponse:
    context = {
        "team": team,
        "section": "team",
        "problems": ProblemFile.objects.filter(team=team).select_related("saved_by").defer("text"),
        "may_edit": access.can(request.user, "spec.edit", team),
        "most_kb": problem_files.MOST_BYTES // 1024,
        "given": given,
        "why": why,
    }
    return render(request, "problems/list.html", context, status=why.status if why else 200)
