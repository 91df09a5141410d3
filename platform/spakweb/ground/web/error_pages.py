"""Error pages, and Refused as an answer: HTML for people, JSON for scripts.

A page says what happened, that nothing was changed, what to do; it never shows a traceback, nor a value that
someone else typed, apart from the sentence of a Refused, which is escaped.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from requests import RequestException

from spakweb.ground import host_faults
from spakweb.ground.database import damage
from spakweb.ground.database.lock_wait import locked
from spakweb.ground.errors import Refused

log = logging.getLogger(__name__)

API = "/api/"
"""What is below is asked by programs alone."""
WINDOW_S = 60
"""Seconds in which the forms of accounts count tries, but for wrong passwords of one person."""
PAGE_TEXTS = {
    400: ("Invalid request", "A value is missing or has the wrong form. Nothing was changed."),
    403: ("You may not do that", "Your role in this team does not allow it. Nothing was changed."),
    404: (
        "There is nothing here",
        "The address is wrong, or what it names belongs to a team that you are not in.",
    ),
    405: ("This address has no page", "It receives a form. Open the page with the form, and send it there."),
    409: ("This cannot be done now", "Something has changed in between. Nothing was changed."),
    410: ("This is no longer here", "It existed, and cannot be restored."),
    413: ("That is too large", "Nothing was changed."),
    429: ("Too many attempts", "Wait a few minutes, then try again. Nothing was changed."),
    502: ("Another service failed", "Nothing was changed."),
    500: ("Something went wrong on our side", "Nothing more was changed after it. The log has the details."),
    503: ("Busy", "Another change is in progress. Nothing was changed. Try again in a few seconds."),
    507: ("The server cannot write", "Its disk is full or fails."),
}


def wants_json(request: HttpRequest) -> bool:
    """Whether a request is a program's."""
    accept = request.headers.get("Accept", "")
    program = hasattr(request, "bearer")  # it came with a token
    return (
        program
        or request.path.startswith(API)
        or "application/json" in accept
        or request.content_type == "application/json"
    )


def answer(
    request: HttpRequest, status: int, message: str = "", hint: str = "", code: str = ""
) -> HttpResponse:
    """An error as a page, or as JSON for programs."""
    title, usual = PAGE_TEXTS.get(status, PAGE_TEXTS[400])
    if wants_json(request):
        fields = {"code": code or f"web.{status}", "message": message or usual, "hint": hint}
        return program_answer(request, fields, status)
    context = {"status": status, "title": title, "said": message or usual, "hint": hint, "code": code}
    context["back"] = form_of(request)
    if status < 500:  # then the database may be what is wrong
        context["team"] = _team(request)
    return render(request, "errors/error.html", context, status=status)


def _team(request: HttpRequest) -> Any:
    """The team of the address, for the navigation, where the person is in it."""
    user, found = getattr(request, "user", None), request.resolver_match
    slug = found.kwargs.get("team") if found else None
    return (
        user.teams.filter(slug=slug).first() if slug and user is not None and user.is_authenticated else None
    )


def program_answer(
    request: HttpRequest,
    fields: Mapping[str, str],
    status: int,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> JsonResponse:
    """Code, message and hint as JSON; below /api/ as a problem document, with `more` members of its own.
    Source: RFC 9457, section 3."""
    if not request.path.startswith(API):
        return JsonResponse(dict(fields), status=status, headers=dict(headers or {}))
    problem = {
        **(more or {}),
        "type": f"urn:spak:error:{fields['code']}",
        "title": PAGE_TEXTS.get(status, PAGE_TEXTS[400])[0],
        "status": status,
        "detail": fields["message"],
        "code": fields["code"],
        "hint": fields.get("hint", ""),
    }
    return JsonResponse(
        problem, status=status, headers=dict(headers or {}), content_type="application/problem+json"
    )


def form_of(request: HttpRequest) -> str:
    """The page of ours whose form was sent; empty where there is none."""
    page = request.headers.get("Referer", "") if request.method == "POST" else ""
    try:
        known = url_has_allowed_host_and_scheme(page, {request.get_host()}, request.is_secure())
        parts = urlsplit(page)
    except (DisallowedHost, ValueError):
        return ""
    here = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return here if known and parts.path != request.path and here.startswith("/") else ""


def refused(request: HttpRequest, why: Refused) -> HttpResponse:
    """The answer to what was refused."""
    return answer(request, why.status, why.message, why.hint, why.code)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler of 400; a body that is too large is 413."""
    if isinstance(exception, RequestDataTooBig):
        most = settings.UPLOAD_BYTES // 1024
        hint = f"A text has at most {most} KB, an answer {4 * most} KB."
        return answer(request, 413, "The request is too large. Nothing was changed.", hint, "web.text_size")
    return answer(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler of 403."""
    return answer(request, 403, str(exception or "")[:300])


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler of 404."""
    return answer(request, 404)


def too_many(request: HttpRequest) -> HttpResponse:
    """The answer to too many requests; what knows better when to try again says so itself."""
    response = answer(request, 429)
    response["Retry-After"] = str(WINDOW_S)
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """It asks the database nothing: that may be what is wrong."""
    request.user = AnonymousUser()
    error = sys.exc_info()[1]
    if error is not None and host_faults.is_fault(error):
        return refused(request, not_writable(error))
    return answer(request, 500)


def csrf(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's handler of forms without a valid token."""
    return answer(
        request, 403, "The form was too old, or came from another page. Nothing was changed.",
        "Go back, reload the page and try again. Cookies must be allowed for this host.", "web.csrf",
    )  # fmt: skip


def not_writable(error: BaseException) -> Refused:
    """What is answered where a request met a fault of the host."""
    if host_faults.is_full(error):
        return Refused(
            "web.disk", "The disk of the server is full. Nothing was changed.",
            "The operator makes room; then try again.", 507,
        )  # fmt: skip
    return Refused(
        "web.host", "The server cannot write: its disk fails, or it is short of something.",
        "Try again later; the log of the server names the fault for the operator.", 507,
    )  # fmt: skip


class RefusedToAnswer:
    """Middleware: a Refused that a view lets through becomes its answer, and so do faults of the host and an
    issuer that is not there; an address that only takes forms has a page for whoever opens it."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code == 405 and not response.content and request.method == "GET":
            page = answer(request, 405)
            page.headers["Allow"] = response.headers["Allow"]
            return page
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer what was refused, faults of the host and a damaged database; other errors are Django's."""
        if host_faults.is_fault(exception):
            log.error("%s %s: %s", request.method, request.path, exception)
            exception = not_writable(exception)
        if damage.is_damage(exception):
            log.error("%s %s: %s", request.method, request.path, exception)
            damage.health.report(exception)
            exception = Refused(
                "web.damaged", "A part of the database cannot be read.",
                "The operator finds the way back in docs/deploy.md, Damage.", 500,
            )  # fmt: skip
        if isinstance(exception, DatabaseError) and locked(exception):
            log.error("%s %s: %s", request.method, request.path, exception)
            exception = Refused(
                "web.locked", "A process of the platform holds what this would change. Nothing was changed.",
                "Try again in a few seconds; if it stays so, the operator looks for a stopped worker.",
                503,
            )  # fmt: skip
        if isinstance(exception, RequestException):
            log.error("%s %s: %s", request.method, request.path, exception)
            exception = Refused(
                "web.oidc", "The service that people sign in with does not answer as it should.",
                "Try again later, or sign in another way.", 502,
            )  # fmt: skip
        return refused(request, exception) if isinstance(exception, Refused) else None
