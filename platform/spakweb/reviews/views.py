"""Pages of patches: the team's inbox, the list of a spec, a patch; and the forms in them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spakweb import access
from spakweb.error_pages import wants_json
from spakweb.errors import Refused
from spakweb.reviews import actions
from spakweb.reviews.inbox import waiting as inbox_of
from spakweb.reviews.models import Patch
from spakweb.specs import show
from spakweb.specs.beside import Beside
from spakweb.specs.changes import given_by
from spakweb.specs.views import around, find_spec
from spakweb.teams.models import Team
from spakweb.text import as_number, clean

MOST = 200
"""Patches that a list shows, newest first."""


def find_patch(request: HttpRequest, team: str, spec: str, number: int) -> Patch:
    rows = Patch.objects.select_related("spec__team", "spec__head__author", "author", "merged", "reverts")
    lookup = {"spec__team__slug": team, "spec__slug": spec, "number": number}
    return access.find(request.user, "spec.view", rows, **lookup)


@require_safe
def inbox(request: HttpRequest, team: str) -> HttpResponse:
    """Open patches of all specs of the team."""
    found = access.find(request.user, "spec.view", Team, slug=team)
    rows = Patch.objects.filter(spec__team=found, state=Patch.State.OPEN).select_related("spec", "author")
    needs = inbox_of(request.user, found)
    context = {"team": found, "section": "reviews", "needs": needs, "patches": rows[:MOST]}
    return render(request, "reviews/inbox.html", context)


@require_safe
def patch_list(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    found = find_spec(request, team, spec)
    context = around(request, found, "patches") | {
        "patches": found.patches.select_related("author")[:MOST],
        "may_protect": access.can(request.user, "spec.protect", found),
    }
    return render(request, "reviews/list.html", context)


@require_POST
def propose(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """A patch from a typed or uploaded text or unified diff."""
    found = find_spec(request, team, spec, "spec.propose")
    given, file = given_by(request), request.FILES.get("file")
    text = given.get("text")
    if file:
        if (file.size or 0) > settings.UPLOAD_BYTES:
            raise Refused("web.text_size", "The file is too large.", "Take out what does not belong.", 413)
        text = clean(file.read(), settings.UPLOAD_BYTES)
    if not isinstance(text, str):
        raise Refused("web.no_text", "There is no text to propose.", "Send `text` and `base_version`.")
    title, why = (str(given.get(name) or "") for name in ("title", "rationale"))
    base, typed = _whole(given.get("base_version")), not file
    made = actions.propose(request.user, found, text, base, title, why, typed=typed)
    if wants_json(request):
        return JsonResponse({"patch": made.number, "url": _to(made)["Location"]}, status=201)
    messages.success(request, f"Patch {made.number} is proposed.")
    return _to(made)


@require_POST
def protect(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    found = find_spec(request, team, spec)
    asked = as_number(request.POST.get("approvals", ""))
    actions.protect(request.user, found, -1 if asked is None else asked)
    return redirect("spak-patch-list", team=team, spec=spec)


@require_safe
def page(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """What the newest revision changes, who said what, what it still needs."""
    found = find_patch(request, team, spec, patch)
    latest, beside = found.latest, Beside.of(found.spec)
    shown = show.difference(latest.base.text, latest.text, lambda text: beside.whole(text).parsed)
    opened = found.state == Patch.State.OPEN
    shown["capabilities"] = sorted(shown["capabilities"], key=lambda one: one.widens is False)
    context = around(request, found.spec, "patches") | {
        "patch": found,
        "revision": latest,
        "revisions": found.revisions.select_related("author", "base"),
        "edits": list(enumerate(actions.edits(latest), 1)),
        "approvals": actions.standing_approvals(found),
        "verdicts": [
            verdict for one in found.revisions.all() for verdict in one.verdicts.select_related("user")
        ],
        "comments": found.comments.select_related("author", "revision"),
        "missing": actions.missing(found) if opened else [],
        "opened": opened,
        "may_review": access.can(request.user, "spec.review", found),
        "wrote": request.user.pk in actions.authors(found),
        **shown,
    }
    return render(request, "reviews/patch.html", context)


@require_POST
def act(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """One form of the page: `do` names what, `revision` the one that the page showed."""
    found = find_patch(request, team, spec, patch)
    access.demand(request.user, "spec.propose", found)
    given, user = request.POST, request.user
    seen, text = _whole(given.get("revision")), given.get("text", "")
    match given.get("do"):
        case "approve" | "refuse" as verdict:
            actions.judge(user, found, seen, verdict == "approve", text)
        case "comment":
            actions.comment(user, found, text, given.get("path", ""))
        case "resolve":
            actions.resolve(user, found, _whole(given.get("comment")), given.get("resolved") != "0")
        case "drop":
            actions.drop_edit(user, found, seen, _whole(given.get("edit")) - 1, text)
        case "revise":
            actions.revise(user, found, seen, text, given.get("why", ""))
        case "update":
            actions.update(user, found, seen)
        case "merge":
            version = actions.merge(user, found, seen)
            messages.success(request, f"Merged as version {version.number}.")
        case "close":
            actions.close(user, found, seen)
        case "revert":
            return _to(actions.revert(user, found))
        case _:
            raise Refused("web.patch_do", "The form does not say what to do.", "Reload the page.")
    return _to(found)


def _whole(value: Any) -> int:
    return as_number(str(value)) or 0


def _to(patch: Patch) -> HttpResponse:
    return redirect("spak-patch", team=patch.spec.team.slug, spec=patch.spec.slug, patch=patch.number)
