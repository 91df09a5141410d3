"""Programs at the door: `Authorization: Bearer spak_...` in the place of a session.

A request with that header is the token's alone: its cookies are not read and none are set, so that a session
adds nothing. It looks (GET, HEAD), at the views that `access.by_token` marks, and writes at those that say
so, as far as its scopes go. Whoever is turned away is told in JSON. Sockets are for pages: on them the header
counts for nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from spakweb.ground import access
from spakweb.ground.audit.middleware import current
from spakweb.ground.errors import Refused
from spakweb.ground.web.error_pages import program_answer
from spakweb.work.teams import tokens

WINDOW_S, MOST_WRONG = 60, 10
"""Wrong tokens of one address, as with passwords. Right ones are never held up by others' wrong ones."""

IN_ADDRESS = Refused(
    "web.token", "A token is in the address, where histories and logs keep it.",
    "Revoke it, and send a new one in a header: Authorization: Bearer spak_...", 401,
)  # fmt: skip


class Bearer:
    """Before the sessions, so that they see no cookie."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            if tokens.within(request.META.get("QUERY_STRING", "")):
                return _answer(request, IN_ADDRESS, "invalid_request")
            return self.get_response(request)
        request.META.pop("HTTP_COOKIE", None)
        request.COOKIES = {}
        request.META["HTTP_AUTHORIZATION"] = scheme
        request.bearer = secret.strip()
        response = self.get_response(request)
        response.cookies.clear()
        return response

    def process_view(self, request: HttpRequest, view: Any, *given: Any) -> HttpResponse | None:
        """Sign in by token where the view takes tokens; else refuse."""
        secret: str | None = getattr(request, "bearer", None)
        if secret is None or getattr(view, "own_token", False):
            return None  # `own_token`: of the installation, and the view's to judge (face/home/metrics.py)
        request.bearer = ""  # nothing behind here can show it
        try:
            user = tokens.user_of(secret)
        except Refused as why:
            return too_often(request) or _answer(request, why, "invalid_token")
        writes = getattr(view, "writes_by_token", False)
        if not getattr(view, "by_token", False) or not (writes or request.method in ("GET", "HEAD")):
            return _answer(
                request,
                Refused(
                    "web.token_scope", "A token only looks, and not at pages.",
                    "docs/platform.md has what it reaches; for the rest sign in.", 403,
                ),
                "insufficient_scope",
            )  # fmt: skip

        async def auser() -> Any:
            return user

        request.user, request.auser = user, auser
        return None


def _answer(request: HttpRequest, why: Refused, error: str) -> HttpResponse:
    response = program_answer(request, why.to_json(), why.status)
    response["WWW-Authenticate"] = f'{access.CHALLENGE}, error="{error}", error_description="{why.message}"'
    response["Cache-Control"] = "no-store"
    return response


def too_often(request: HttpRequest) -> HttpResponse | None:
    """The answer to an address that sent too many wrong ones within the minute."""
    now = time.time()
    key = f"wrong-token:{current().ip}:{int(now // WINDOW_S)}"
    with contextlib.suppress(Exception):  # without its cache there is no limit; wrong they stay
        cache.add(key, 0, 2 * WINDOW_S)
        if cache.incr(key) > MOST_WRONG:
            hint = "Fix the token, then wait a minute."
            why = Refused("web.token_rate", "Too many wrong tokens.", hint, 429)
            response = program_answer(request, why.to_json(), why.status)
            response["Retry-After"] = str(WINDOW_S - int(now % WINDOW_S))
            return response
    return None
