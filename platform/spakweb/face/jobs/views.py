"""The page *Work*: the jobs of a team by state, why they wait or failed, and trying one again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.store.jobs.models import Job
from spakweb.work.jobs import show


@require_safe
@never_cache
def work(request: HttpRequest, team: str) -> HttpResponse:
    """The whole page; its part with the rows when a script asks."""
    found = access.find(request.user, "work.manage", Team, slug=team)
    parts = []
    for state in show.STATES:
        rows = show.of_state(found, state)
        parts.append((state, rows.count(), [show.row_of(job) for job in rows[: show.SHOWN]]))
    context = {"team": found, "section": "team", "parts": parts}
    return render(request, "jobs/_work.html" if request.htmx else "jobs/work.html", context)


@require_POST
@never_cache
def retry(request: HttpRequest, team: str, job: int) -> HttpResponse:
    """Try a job again now."""
    rows = Job.objects.select_related("team")
    found: Job = access.find(request.user, "work.manage", rows, team__slug=team, pk=job)
    show.retry(request.user, found)
    messages.success(request, "It is tried again now.")
    return redirect("spak-work", team=team)
