"""The pages of the documentation and of the API, images and the search, for everybody.

Nothing here is a team's. An answer has an ETag of the page's text and of what its frame shows of the reader,
so that a page that was read before costs an empty answer. One with messages for its reader has none.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.messages import get_messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.views.decorators.http import condition, require_safe

import spak
from spakweb.face.docs import operations, schema, shelf

LONGEST = 200
"""Characters of a search that are read."""


def framed(request: HttpRequest, content: str) -> str | None:
    """The ETag of a page with this content; None while messages wait for its reader."""
    if len(get_messages(request)):
        return None
    user = request.user
    parts = (
        content, spak.__version__, request.get_host(), request.COOKIES.get("spak_theme", ""),
        str(request.META.get("CSRF_COOKIE", "")), str(user.pk), user.get_username(),
        str(getattr(user, "single_keys", "")),
    )  # fmt: skip
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f'W/"{digest[:32]}"'


def _etag(request: HttpRequest, page: str = shelf.INDEX) -> str | None:
    return framed(request, page + shelf.digest(page)) if page in shelf.names() else None


@login_not_required
@require_safe
@condition(etag_func=_etag)
def show(request: HttpRequest, page: str = shelf.INDEX) -> HttpResponse:
    """A page of the documentation."""
    if page not in shelf.names():
        raise Http404
    found = shelf.page(page)
    context: dict[str, Any] = {"page": found, "name": page, "contents": _contents()}
    context["html"] = mark_safe(found.html)  # our own files; raw HTML in them is escaped
    context["chapters"] = [one for one in found.sections if one.level == 2]
    return render(request, "docs/page.html", context)


@login_not_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """The sections that have the words."""
    words = " ".join(request.GET.get("q", "")[:LONGEST].split())
    context = {"q": words, "hits": shelf.search(words), "most": shelf.MOST, "contents": _contents()}
    return render(request, "docs/search.html", context)


def _contents() -> list[tuple[str, str, str]]:
    return [(name, title, shelf.url_of(name)) for name, title in shelf.contents()]


@login_not_required
@require_safe
@condition(etag_func=lambda request, image: _image_etag(image))
def show_image(request: HttpRequest, image: str) -> HttpResponse:
    """An image of the documentation; opened by itself it may load and run nothing."""
    found = shelf.images().get(image)
    if found is None:
        raise Http404
    response = HttpResponse(found.read_bytes(), content_type=shelf.IMAGES[found.suffix])
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return response


def _image_etag(file: str) -> str | None:
    found = shelf.images().get(file)
    return f'"{hashlib.sha256(found.read_bytes()).hexdigest()[:32]}"' if found else None


@login_not_required
@require_safe
@condition(etag_func=lambda request: framed(request, f"api {request.scheme} {schema.etag(request)}"))
def explorer(request: HttpRequest) -> HttpResponse:
    """The page of the API: its operations in groups."""
    server = request.build_absolute_uri("/")
    context = {"groups": operations.groups(schema.document(), server), "my_team": _a_team(request)}
    return render(request, "docs/api.html", context)


def _a_team(request: HttpRequest) -> str:
    """The team that the forms of the page begin with."""
    teams = request.user.teams if request.user.is_authenticated else None
    return (teams.values_list("slug", flat=True).first() or "") if teams is not None else ""
