"""The page *Code* of a source: what its code defines, what depends on a symbol, and why."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spakweb.face.sources import code_page
from spakweb.face.sources.views import find_source
from spakweb.ground.unsafe_text import revealing
from spakweb.store.sources import code_index
from spakweb.store.sources.models import Source
from spakweb.work.sources import reading

LONGEST = 500
"""Characters of a question that are read."""


@revealing
@require_safe
def code(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """One symbol of a source's code, or what matters most of it; before it was read, the button for that."""
    found = find_source(request, team, source)
    words = request.GET.get("q", "").strip()[:LONGEST]
    job = reading.job_of(found)
    context: dict[str, Any] = {
        "team": found.team,
        "section": "automation",
        "source": found,
        "words": words,
        "reading": job is not None and job.wanted_at is not None,
        "error": job.error if job is not None else "",
        "known": bool(found.code),
    }
    if request.headers.get("HX-Request"):  # the page asks whether the worker is done
        return render(request, "sources/code.html", context | {"asked": True})
    with code_index.opened(found.code) as model:
        context["known"] = model is not None
        if model is not None:
            text = partial(code_index.text, found.code)
            context |= code_page.shown(model, words, text)
    return render(request, "sources/code.html", context)


@require_POST
def read(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """Have the code read by a worker."""
    found: Source = find_source(request, team, source)
    reading.ask(request.user, found)
    return redirect("spak-source-code", team=team, source=source)
