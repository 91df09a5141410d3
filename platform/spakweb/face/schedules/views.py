"""The page of a team's schedules: the list with what became of each, and the form for another."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import pairs
from spakweb.store.schedules.models import Schedule
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.work.schedules import actions

GIVEN = ("spec", "name", "cron", "zone", "missed", "inputs", "source", "ref")
MOST_SPECS = 500
NO_INPUT = ("web.schedule_inputs", "name = value, a line each")
"""Code and hint for a line of the form that names no input."""


@require_safe
def schedule_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's schedules; for editors the form for another."""
    found = access.find(request.user, "schedule.view", Team, slug=team)
    return _list(request, found, {"cron": "0 6 * * 1-5", "zone": "UTC", "missed": "skip"})


@require_POST
@never_cache
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Add one. What was refused stays in the form."""
    found = access.find(request.user, "schedule.edit", Team, slug=team)
    given = {name: request.POST.get(name, "") for name in GIVEN}
    try:
        spec = Spec.objects.select_related("head", "team").filter(
            team=found, slug=given["spec"], archived_at=None
        )  # fmt: skip
        chosen = spec.first() if given["spec"].isprintable() else None
        if chosen is None:
            raise Refused("web.schedule_spec", "Choose a spec of the team.", "The list has them.", 422)
        made = actions.add(
            request.user, chosen, given["name"], given["cron"], given["zone"], missed=given["missed"],
            inputs=pairs(given["inputs"], *NO_INPUT), source=given["source"], ref=given["ref"],
        )  # fmt: skip
    except Refused as why:
        return _list(request, found, given, why)
    messages.success(request, f"{made.name} is on.")
    return redirect("spak-schedule-list", team=team)


@require_POST
def act(request: HttpRequest, team: str, schedule: int) -> HttpResponse:
    """What the buttons of a schedule do: on, off, run, remove."""
    rows = Schedule.objects.select_related("spec__team", "person")
    found = access.find(request.user, "schedule.edit", rows, spec__team__slug=team, pk=schedule)
    match request.POST.get("do", ""):
        case "on" | "off" as do:
            actions.switch(request.user, found, do == "on")
            messages.success(request, f"{found.name} is {do}.")
        case "run":
            run = actions.run_now(request.user, found)
            return redirect("spak-run", team=team, run=run.key)
        case "remove":
            actions.remove(request.user, found)
            messages.success(request, f"{found.name} is removed.")
        case _:
            raise Refused("web.schedule_do", "A schedule cannot do that.", "Use the buttons of its page.")
    return redirect("spak-schedule-list", team=team)


def _list(
    request: HttpRequest, team: Team, given: dict[str, Any], why: Refused | None = None
) -> HttpResponse:
    rows = Schedule.objects.filter(spec__team=team).select_related("spec", "person", "last_run")
    context = {
        "team": team,
        "section": "automation",
        "schedules": rows,
        "may_edit": access.can(request.user, "schedule.edit", team),
        "specs": Spec.objects.filter(team=team, archived_at=None).order_by("name")[:MOST_SPECS],
        "sources": Source.objects.filter(team=team),
        "given": given,
        "why": why,
    }
    return render(request, "schedules/list.html", context, status=why.status if why else 200)
