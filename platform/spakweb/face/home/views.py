"""The first page of a person and of a team, the theme, and whether the platform is well."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from spak.cancel import apart
from spak.files.disk import unwritable
from spakweb.face.home import first
from spakweb.face.home.context import THEMES
from spakweb.face.reviews import inbox
from spakweb.face.runs import dashboards
from spakweb.ground import access
from spakweb.ground.database import damage, restoring
from spakweb.ground.teams.models import Team
from spakweb.store.specs.models import Draft, Spec

LAST_TEAM = "spak_team"
READY_S = 5.0
"""How long `/readyz` waits for the database; who asks it has a limit of their own."""


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The team that the person last looked at, or their first; a page that helps when there is none."""
    teams = list(request.user.teams.all())
    if not teams:
        return render(request, "home/no_team.html")
    last = next((team for team in teams if team.slug == request.session.get(LAST_TEAM)), teams[0])
    return redirect("spak-team-home", team=last.slug)


@require_safe
def team_home(request: HttpRequest, team: str) -> HttpResponse:
    """The first page of a team."""
    found = access.find(request.user, "team.view", Team, slug=team)
    may_edit, may_manage = access.can_each(request.user, found, "spec.edit", "team.manage")
    if request.session.get(LAST_TEAM) != found.slug:
        request.session[LAST_TEAM] = found.slug
    specs = Spec.objects.filter(team=found, archived_at=None).select_related("head", "head__author")
    specs = specs.defer("head__text")
    recent = specs.order_by("-head__made_at")
    drafts = (
        Draft.objects.filter(spec__team=found, user=request.user).select_related("spec").order_by("-saved_at")
    )
    broken = [spec for spec in recent if spec.head.facts.get("errors")]
    wells = [] if request.htmx else dashboards.health(found)
    return render(
        request,
        "home/_runs.html" if request.htmx else "home/team.html",
        {
            "team": found,
            "section": "home",
            "health": wells,
            "newest_only": dashboards.newest_of(wells),
            "metrics": dashboards.metrics(wells),
            "tries": [] if request.htmx else first.card(request, found),
            **dashboards.home(found),
            "recent": recent[:6],
            "first": next((spec for spec in recent[:20] if not spec.head.facts.get("errors")), None),
            "spec_count": specs.count(),
            "drafts": drafts[:6],
            "patches": inbox.waiting(request.user, found)[:6],
            "broken": broken[:6],
            "member_count": found.memberships.count(),
            "may_edit": may_edit,
            "may_manage": may_manage,
        },
    )


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keeps the chosen theme in a cookie; scripts do the same without a round trip."""
    wanted, back = request.POST.get("theme", ""), request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
    response = HttpResponseRedirect(back if safe else "/")
    if wanted in THEMES:
        response.set_cookie(
            "spak_theme", wanted, max_age=31536000, samesite="Lax", secure=request.is_secure()
        )
    return response


@require_POST
def put_away(request: HttpRequest) -> HttpResponse:
    """Put the card of the first visit away, in this browser."""
    response = redirect("spak-home")
    response.set_cookie(first.COOKIE, "away", max_age=31536000, samesite="Lax", secure=request.is_secure())
    return response


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """The database answers too, within READY_S, is not damaged, no restore is unfinished, and the data folder
    can be written, and that of runs in it, which may be another disk."""
    data = Path(settings.DATA_DIR)
    if restoring.is_unfinished(data):
        reason = f"restore not finished: {restoring.CODE}\n"
        return HttpResponse(reason, content_type="text/plain", status=503)
    try:
        apart(_asked, None, limit_s=READY_S)
    except (DatabaseError, TimeoutError):
        return HttpResponse("database not reachable\n", content_type="text/plain", status=503)
    folders = [one for one in (data, data / "runs") if one == data or one.is_dir()]
    if why := next(filter(None, map(unwritable, folders)), ""):
        return HttpResponse(f"data folder not writable: {why}\n", content_type="text/plain", status=503)
    if damage.health.ask():
        reason = "database damaged: manage.py check_store says what\n"
        return HttpResponse(reason, content_type="text/plain", status=503)
    return HttpResponse("ready\n", content_type="text/plain")


def _asked() -> None:
    """One question, over the connection of the thread that asks. Raises: DatabaseError."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()
