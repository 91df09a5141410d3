"""Where a request came from, for the events that are written while it is served.

`current()` gives the address and the request's id; outside a request both are empty. Behind a proxy that the
settings name, the last address that the proxy added counts, never one that the client wrote.
"""

from __future__ import annotations

import ipaddress
import uuid
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse


@dataclass(frozen=True, slots=True)
class Source:
    """Where a request came from."""

    ip: str | None = None
    request: str = ""


NOWHERE = Source()
_current: ContextVar[Source] = ContextVar("spak_source", default=NOWHERE)


def current() -> Source:
    """The source of the request that is being answered."""
    return _current.get()


class Origin:
    """Remembers the source of a request while it is answered."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.spak_id = str(uuid.uuid4())
        token = _current.set(Source(_address(request), request.spak_id))
        try:
            response = self.get_response(request)
        finally:
            _current.reset(token)
        response.headers["X-Request-Id"] = request.spak_id
        return response


def _address(request: HttpRequest) -> str | None:
    address = request.META.get("REMOTE_ADDR", "")
    if settings.BEHIND_PROXY:
        address = request.headers.get("X-Forwarded-For", address).rsplit(",", 1)[-1].strip()
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None
