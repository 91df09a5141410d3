"""Pages of a team's triggers: the list with the form, and one with its address and its log."""

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
from spakweb.ground.text import as_number, pairs
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.store.triggers.models import Trigger
from spakweb.work.incoming import log
from spakweb.work.triggers import actions

GIVEN = ("spec", "name", "runs", "event", "ref", "mapping", "inputs", "source", "ref_at", "commit_at")
MOST_SPECS = 500
NO_INPUT = ("web.trigger_inputs", "name = /pointer, or name = value, a line each")
"""Code and hint for a line of the form that names no input."""
ROWS = Trigger.objects.select_related("spec__team", "person", "version", "receiver", "last_run")


def find_trigger(request: HttpRequest, team: str, trigger: int, action: str) -> Trigger:
    """The trigger, for who may."""
    found: Trigger = access.find(request.user, action, ROWS, spec__team__slug=team, pk=trigger)
    return found


@require_safe
def trigger_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's triggers; for editors the form for another."""
    found = access.find(request.user, "trigger.view", Team, slug=team)
    return _list(request, found, {"ref_at": "/ref", "commit_at": "/after"})


@require_POST
@never_cache
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Add one; its page shows the secret this once. What was refused stays in the form."""
    found = access.find(request.user, "trigger.edit", Team, slug=team)
    given = {name: request.POST.get(name, "") for name in GIVEN}
    try:
        specs = Spec.objects.select_related("head", "team").filter(team=found, archived_at=None)
        chosen = specs.filter(slug=given["spec"]).first() if given["spec"].isprintable() else None
        if chosen is None:
            raise Refused("web.trigger_spec", "Choose a spec of the team.", "The list has them.", 422)
        number = as_number(given["runs"].strip())
        made, secret = actions.add(
            request.user, chosen, given["name"], version=number, tag="" if number else given["runs"].strip(),
            event=given["event"], ref=given["ref"], mapping=pairs(given["mapping"], *NO_INPUT),
            inputs=pairs(given["inputs"], *NO_INPUT), source=given["source"], ref_at=given["ref_at"],
            commit_at=given["commit_at"],
        )  # fmt: skip
    except Refused as why:
        return _list(request, found, given, why)
    return _page(request, made, secret)


def _list(
    request: HttpRequest, team: Team, given: dict[str, Any], why: Refused | None = None
) -> HttpResponse:
    context = {
        "team": team,
        "section": "automation",
        "triggers": ROWS.filter(spec__team=team),
        "may_edit": access.can(request.user, "trigger.edit", team),
        "specs": Spec.objects.filter(team=team, archived_at=None).order_by("name")[:MOST_SPECS],
        "sources": Source.objects.filter(team=team),
        "given": given,
        "why": why,
    }
    return render(request, "triggers/list.html", context, status=why.status if why else 200)


@require_safe
def trigger_page(request: HttpRequest, team: str, trigger: int) -> HttpResponse:
    """One trigger; for editors with its address and its log."""
    return _page(request, find_trigger(request, team, trigger, "trigger.view"))


def _page(request: HttpRequest, trigger: Trigger, secret: str = "") -> HttpResponse:
    may_edit = access.can(request.user, "trigger.edit", trigger)
    context = {
        "team": trigger.team,
        "section": "automation",
        "trigger": trigger,
        "may_edit": may_edit,
        "address": log.address(request, trigger.receiver) if may_edit else "",
        "deliveries": log.deliveries(trigger.receiver) if may_edit else (),
        "secret": secret,
    }
    return render(request, "triggers/trigger.html", context)


@require_POST
@never_cache
def act(request: HttpRequest, team: str, trigger: int) -> HttpResponse:
    """What the buttons of a trigger do: on, off, rotate, remove."""
    found = find_trigger(request, team, trigger, "trigger.edit")
    match request.POST.get("do", ""):
        case "on" | "off" as do:
            actions.switch(request.user, found, do == "on")
            messages.success(request, f"{found.name} is {do}.")
        case "rotate":
            return _page(request, found, actions.rotate(request.user, found))
        case "remove":
            actions.remove(request.user, found)
            messages.success(request, f"{found.name} is removed.")
            return redirect("spak-trigger-list", team=team)
        case _:
            raise Refused("web.trigger_do", "A trigger cannot do that.", "Use the buttons of its page.")
    return redirect("spak-trigger", team=team, trigger=trigger)
