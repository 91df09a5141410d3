"""Pages and the parts of them that scripts ask for share addresses; this keeps caches from mixing them up.

Takes every request and answer of the pages. A browser that goes Back, or a proxy, may show what it kept for
an address: each answer names the headers of the request that choose between page, part and JSON (`Vary`, RFC
9110 section 12.5.5). A request by which htmx restores its history gets the page, as if its address had been
typed. It decides nothing about what views answer, and leaves static files alone.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

CHOOSES = ("HX-Request", "HX-Target", "Accept")
"""All headers of a request by which a view chooses what it answers with."""
RESTORES = "HTTP_HX_HISTORY_RESTORE_REQUEST"


class Representations:
    """Middleware: names what chooses an answer, and restores whole pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.META.get(RESTORES) == "true":
            for header in ("HTTP_HX_REQUEST", "HTTP_HX_TARGET"):
                request.META.pop(header, None)
        response = self.get_response(request)
        patch_vary_headers(response, CHOOSES)
        return response
