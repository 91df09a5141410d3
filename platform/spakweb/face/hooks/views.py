"""Pages of a team's webhooks, for its admins: the list with the form, and one with its log."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.hooks.models import EVENTS, Delivery, Webhook
from spakweb.work.hooks import actions

SHOWN = 50
"""Deliveries that the log shows, newest first."""
WORDS = {
    "waiting": "Waiting for an answer or approval",
    "paused": "Paused",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "refused": "Refused",
    "cancelled": "Cancelled",
}
PILLS = {"due": "queued", "delivered": "succeeded", "failed": "failed"}


def find_webhook(request: HttpRequest, team: str, webhook: int) -> Webhook:
    """The webhook, for an admin of its team."""
    rows = Webhook.objects.filter(user=None).select_related("team", "made_by")
    found: Webhook = access.find(request.user, "team.manage", rows, team__slug=team, pk=webhook)
    return found


@require_safe
def webhook_list(request: HttpRequest, team: str) -> HttpResponse:
    """The team's webhooks and the form for another."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    return _list(request, found, {"events": ["waiting", "succeeded", "failed", "refused"]})


@require_POST
@never_cache
def new(request: HttpRequest, team: str) -> HttpResponse:
    """Add one; its page shows the secret this once. What was refused stays in the form."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    given = {"url": request.POST.get("url", "")[:2000], "name": request.POST.get("name", "")}
    events = request.POST.getlist("event")
    try:
        made, secret = actions.add(request.user, found, given["url"], events, given["name"])
    except Refused as why:
        return _list(request, found, {**given, "events": events}, why)
    return _page(request, made, secret)


def _list(
    request: HttpRequest, team: Team, given: dict[str, Any], why: Refused | None = None
) -> HttpResponse:
    states = Delivery.State
    rows = Webhook.objects.filter(team=team, user=None).annotate(
        pending=Count("deliveries", filter=Q(deliveries__state=states.DUE)),
        failed=Count("deliveries", filter=Q(deliveries__state=states.FAILED)),
    )
    words = [(event, WORDS[event], event in given["events"]) for event in EVENTS]
    context = {
        "team": team,
        "section": "automation",
        "webhooks": rows,
        "given": given,
        "events": words,
        "why": why,
    }
    return render(request, "hooks/list.html", context, status=why.status if why else 200)


@require_safe
def webhook_page(request: HttpRequest, team: str, webhook: int) -> HttpResponse:
    """One webhook and its log."""
    return _page(request, find_webhook(request, team, webhook))


def _page(request: HttpRequest, hook: Webhook, secret: str = "") -> HttpResponse:
    rows = list(hook.deliveries.select_related("run")[:SHOWN])
    context = {
        "team": hook.team,
        "section": "automation",
        "webhook": hook,
        "words": [WORDS[event] for event in hook.wanted],
        "secret": secret,
        "deliveries": [(row, PILLS[row.state]) for row in rows],
        "pending": any(row.state == Delivery.State.DUE for row in rows),
    }
    return render(request, "hooks/webhook.html", context)


@require_POST
@never_cache
def act(request: HttpRequest, team: str, webhook: int) -> HttpResponse:
    """What the page's buttons do: test, on, off, rotate, remove, redeliver."""
    hook = find_webhook(request, team, webhook)
    match request.POST.get("do", ""):
        case "test":
            actions.test(request.user, hook)
            messages.success(request, "The test message is on its way.")
        case "on" | "off" as which:
            actions.switch(request.user, hook, which == "on")
            messages.success(request, f"The webhook is {which}.")
        case "rotate":
            secret = actions.rotate(request.user, hook)
            return _page(request, find_webhook(request, team, webhook), secret)
        case "remove":
            actions.remove(request.user, hook)
            messages.success(request, f"{hook.name} is removed.")
            return redirect("spak-webhook-list", team=team)
        case "redeliver":
            rows = Delivery.objects.filter(webhook=hook).select_related("webhook__team")
            number = as_number(request.POST.get("delivery", ""))
            row = rows.filter(pk=number).first()
            if row is None:
                raise Http404
            actions.redeliver(request.user, row)
            messages.success(request, "The message is sent again.")
        case _:
            raise Refused("web.webhook_do", "A webhook cannot do that.", "Use the buttons of its page.")
    return redirect("spak-webhook", team=team, webhook=webhook)
