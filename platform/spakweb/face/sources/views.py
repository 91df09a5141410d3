"""Pages of a team's sources: the list with the form, and one with its credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spakweb.face.runs.start_files import GIT
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.incoming.models import Receiver
from spakweb.store.sources.models import Source
from spakweb.work.incoming import actions as incoming
from spakweb.work.incoming import log as incoming_log
from spakweb.work.sources import actions, forges, mending

GIVEN = ("name", "url", "refs", "login", "host_keys", "submodules", "lfs", "forge", "api_url")
"""What of the form is shown again when it is refused; never a token."""
LATEST = 20
"""Runs that the page of a source lists."""


def find_source(request: HttpRequest, team: str, source: str, action: str = "source.view") -> Source:
    """The source, for who may."""
    rows = Source.objects.select_related("team", "made_by")
    found: Source = access.find(request.user, action, rows, team__slug=team, name=source)
    return found


@require_safe
def source_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's sources; for admins the form for another."""
    return _list(request, access.find(request.user, "source.view", Team, slug=team), {"refs": "main"})


@require_POST
@never_cache
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Add one. What was refused stays in the form, but for a token."""
    found = access.find(request.user, "source.manage", Team, slug=team)
    given = {name: request.POST.get(name, "") for name in GIVEN}
    try:
        made = actions.add(
            request.user, found, given["name"], given["url"], [given["refs"]],
            token=request.POST.get("token", "").strip(), login=given["login"].strip(),
            host_keys=given["host_keys"], submodules=bool(given["submodules"]), lfs=bool(given["lfs"]),
            forge=given["forge"], api_url=given["api_url"],
            api_token=request.POST.get("api_token", "").strip(),
        )  # fmt: skip
    except Refused as why:
        return _list(request, found, given, why)
    messages.success(request, f"{made.name} is added.")
    return redirect("spak-source", team=team, source=made.name)


def _list(
    request: HttpRequest, team: Team, given: dict[str, Any], why: Refused | None = None
) -> HttpResponse:
    context = {
        "team": team,
        "section": "automation",
        "sources": Source.objects.filter(team=team),
        "may_manage": access.can(request.user, "source.manage", team),
        "forges": forges.NAMES,
        "api_example": forges.EXAMPLE,
        "given": given,
        "why": why,
    }
    return render(request, "sources/list.html", context, status=why.status if why else 200)


@require_safe
def source_page(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """One source, and the runs that began from it."""
    return _page(request, find_source(request, team, source))


def _page(request: HttpRequest, source: Source, why: Refused | None = None, secret: str = "") -> HttpResponse:
    receiver = Receiver.objects.filter(source=source).first()
    may_manage = access.can(request.user, "source.manage", source)
    rows = source.runs.filter(run__deleted_at=None).select_related("run").order_by("-run_id")
    context = {
        "team": source.team,
        "section": "automation",
        "source": source,
        "runs": rows[:LATEST],
        "may_manage": may_manage,
        "may_mend": mending.may(request.user, source),
        "forge": forges.NAMES.get(source.forge, ""),
        "receiver": receiver,
        "address": incoming_log.address(request, receiver) if receiver and may_manage else "",
        "deliveries": incoming_log.deliveries(receiver) if receiver and may_manage else (),
        "secret": secret,
        "why": why,
    }
    return render(request, "sources/source.html", context, status=why.status if why else 200)


@require_POST
@never_cache
def act(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """What the page's buttons do: new credentials, the address for pushes and its secret, remove."""
    found = find_source(request, team, source, "source.manage")
    match request.POST.get("do", ""):
        case "rotate":
            try:
                names = ("token", "login", "api_token")
                actions.rotate(request.user, found, *(request.POST.get(name, "").strip() for name in names))
            except Refused as why:
                return _page(request, found, why)
            messages.success(request, f"{found.name} has new credentials.")
        case "hook":
            return _shown(request, found, lambda: incoming.open_for(request.user, found)[1])
        case "hook_rotate":
            return _shown(request, found, lambda: incoming.rotate(request.user, found))
        case "hook_remove":
            incoming.close(request.user, found)
            messages.success(request, "Pushes are not taken any more.")
        case "remove":
            actions.remove(request.user, found)
            messages.success(request, f"{found.name} is removed.")
            return redirect("spak-source-list", team=team)
        case _:
            raise Refused("git.do", "A source cannot do that.", "Use the buttons of its page.")
    return redirect("spak-source", team=team, source=source)


@require_POST
def mend(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """The form that starts a repair of a failing test from this source, with the team's spec for that."""
    found = find_source(request, team, source)
    spec = mending.spec_for(request.user, found)
    form = reverse("spak-run-new", kwargs={"team": team, "spec": spec.slug})
    return redirect(f"{form}?{urlencode({'files': GIT, 'source': found.name, 'focus': 'test'})}")


def _shown(request: HttpRequest, source: Source, made: Callable[[], str]) -> HttpResponse:
    """The page with a secret that is shown this once."""
    try:
        secret = made()
    except Refused as why:
        return _page(request, source, why)
    return _page(request, source, secret=secret)
