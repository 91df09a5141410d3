"""The page *Code* of a source and of a run: what is defined where, what depends on a symbol, and why."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from spak.errors import UsageError
from spak.world.ask import Model
from spakweb.face.runs.views import find_run
from spakweb.face.sources import code_page
from spakweb.face.sources.views import find_source
from spakweb.ground.unsafe_text import revealing
from spakweb.store.jobs.models import Job
from spakweb.store.sources import code_index
from spakweb.work.sources import mending, reading, run_reading

LONGEST = 500
"""Characters of a question that are read."""
KEPT_S = 3600
"""A reading does not change, so what most of it depends on is found out once."""


@revealing
@require_safe
def code(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """One symbol of a source's code, or what matters most of it; before it was read, the button for that."""
    found = find_source(request, team, source)
    names = {"team": team, "source": found.name}
    context = {
        "team": found.team,
        "section": "automation",
        "name": found.name,
        "crumbs": [
            ("Automation", reverse("spak-schedule-list", args=(team,))),
            ("Sources", reverse("spak-source-list", args=(team,))),
            (found.name, reverse("spak-source", kwargs=names)),
        ],
        "here": reverse("spak-source-code", kwargs=names),
        "read": reverse("spak-source-code-read", kwargs=names),
        "of": f"{found.code_ref} {found.code_commit[:12]}",
        "at": found.code_at,
        "mend": reverse("spak-source-mend", kwargs=names) if mending.may(request.user, found) else "",
    }
    return _page(request, context, reading.job_of(found), code_index.of_source(found))


@require_POST
def read(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """Have the code of a source read by a worker."""
    reading.ask(request.user, find_source(request, team, source))
    return redirect("spak-source-code", team=team, source=source)


@revealing
@require_safe
def run_code(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """The same of the files that a run has now, or had when they were read."""
    found = find_run(request, team, run)
    job = run_reading.job_of(found)
    folder, stale = run_reading.folder_of(found, job)
    names = {"team": team, "run": found.key}
    context = {
        "team": found.team,
        "section": "runs",
        "name": found.name,
        "crumbs": [
            ("Runs", reverse("spak-run-list", args=(team,))),
            (found.name, reverse("spak-run", kwargs=names)),
        ],
        "here": reverse("spak-run-code", kwargs=names),
        "read": reverse("spak-run-code-read", kwargs=names),
        "of": f"run {found.key}",
        "at": job.done_at if job is not None else None,
        "stale": stale,
        "no_files": not run_reading.has_files(found),
    }
    return _page(request, context, job, folder, stale)


@require_POST
def run_read(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Have the code of a run read by a worker."""
    run_reading.ask(request.user, find_run(request, team, run))
    return redirect("spak-run-code", team=team, run=run)


def _page(
    request: HttpRequest, context: dict[str, Any], job: Job | None, folder: Path | None, stale: int = 0
) -> HttpResponse:
    words = request.GET.get("q", "").strip()[:LONGEST]
    context |= {
        "words": words,
        "again": f"{context['here']}?{urlencode({'q': words})}" if words else context["here"],
        "reading": job is not None and job.wanted_at is not None,
        "error": job.error if job is not None else "",
        "known": folder is not None,
    }
    if request.headers.get("HX-Request"):  # the page asks whether the worker is done
        return render(request, "sources/code.html", context | {"asked": True})
    try:
        with code_index.opened(folder, stale) as model:
            context["known"] = model is not None
            if model is not None and folder is not None:
                context |= _asked(model, words, folder)
    except UsageError:  # a damaged index counts as none, and is made anew
        context["known"] = False
    return render(request, "sources/code.html", context)


def _asked(model: Model, words: str, folder: Path) -> dict[str, Any]:
    if words:
        return code_page.shown(model, words, partial(code_index.text, folder))
    make = partial(code_page.overview, model)
    found = cache.get_or_set(f"code.overview.{folder.name}", make, KEPT_S)
    return {"overview": found, "covers": model.covers()}
