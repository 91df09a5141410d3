"""Pages of a team's problems: the list with the form, and one with what its check found."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spak import data
from spak.validators.problems import prototype_in
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.specs.models import ProblemFile
from spakweb.work.specs import problem_files

SHIPPED = data.path("specs/problems")


def find_problem(user: Any, team: str, key: int, action: str = "spec.view") -> ProblemFile:
    """The problem, for who may. Raises: Http404, PermissionDenied."""
    rows = ProblemFile.objects.select_related("team", "saved_by")
    found: ProblemFile = access.find(user, action, rows, team__slug=team, pk=key)
    return found


@require_safe
def problem_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's problems; for editors the form for another."""
    found, name = access.find(request.user, "spec.view", Team, slug=team), request.GET.get("from", "")
    given = (
        {"name": f"problems/my_{name}", "text": (SHIPPED / name).read_text()} if name in _shipped() else {}
    )
    return _list(request, found, given)


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
        text = given["text"] if file is None else _read(file)
        replaces = request.POST.get("replaces", "")
        made = problem_files.save(request.user, found, given["name"], text, replaces)
    except Refused as why:
        old = ProblemFile.objects.filter(team=found, name=given["name"].strip()).first()
        if old is not None and "replaces" in request.POST:
            return _page(request, old, given["text"], why)
        return _list(request, found, given, why)
    messages.success(request, f"{made.name} is saved.")
    return redirect("spak-problem", team=team, problem=made.pk)


@require_safe
def problem_page(request: HttpRequest, team: str, problem: int) -> HttpResponse:
    """One problem: what its check found, and its text."""
    return _page(request, find_problem(request.user, team, problem))


def _page(
    request: HttpRequest, found: ProblemFile, typed: str | None = None, why: Refused | None = None
) -> HttpResponse:
    context = {
        "team": found.team,
        "section": "team",
        "problem": found,
        "prototype": prototype_in(found.text),
        "may_edit": access.can(request.user, "spec.edit", found),
        "earlier": found.earlier.select_related("saved_by"),
        "typed": found.text if typed is None else typed,
        "why": why,
    }
    page = "problems/_state.html" if request.htmx else "problems/problem.html"
    return render(request, page, context, status=why.status if why else 200)


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
        case "restore":
            problem_files.restore(request.user, found, as_number(request.POST.get("earlier", "")) or 0)
            messages.success(request, f"{found.name} has its earlier text again. It is checked.")
        case "remove":
            problem_files.remove(request.user, found)
            messages.success(request, f"{found.name} is removed.")
            return redirect("spak-problem-list", team=team)
        case _:
            raise Refused("web.problem_do", "A problem cannot do that.", "Use the buttons of its page.")
    return redirect("spak-problem", team=team, problem=problem)


def _shipped() -> list[str]:
    """The problems that ship, by their files."""
    return sorted(path.name for path in SHIPPED.glob("*.py"))


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
        "shipped": _shipped(),
        "most_kb": problem_files.MOST_BYTES // 1024,
        "given": given,
        "why": why,
    }
    return render(request, "problems/list.html", context, status=why.status if why else 200)
