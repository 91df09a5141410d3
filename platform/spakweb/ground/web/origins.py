"""WebSockets are opened by our own pages alone, and streams of events with a session are: the whole origin is
compared, not only the host.

Takes a handshake; closes it unless its Origin is the scheme, host and port that the request itself was sent
to, or one of SPAK_WEB_ORIGINS. The host must be one of SPAK_WEB_HOSTS, as for pages. A handshake without an
Origin is no browser's and is refused too: programs read streams with a token over SSE.
Source: RFC 6454 section 5, RFC 6455 section 10.2.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

PORTS = {"http": 80, "https": 443}


class SameOrigin:
    """Refuses requests that pages of other sites make."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        if scope["type"] != "websocket":
            raise ValueError("SameOrigin is for WebSockets")
        if allowed(scope):
            return await self.application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)


def allowed(scope: Any) -> bool:
    """Whether a handshake comes from a page of ours."""
    headers = [(name.lower(), value.decode("latin1")) for name, value in scope["headers"]]
    origins = [value for name, value in headers if name == b"origin"]
    hosts = [value for name, value in headers if name == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    origin = parts(origins[0])
    if origin is None:
        return False
    if origin in map(parts, settings.CSRF_TRUSTED_ORIGINS):
        return True
    domain, _ = split_domain_port(hosts[0])
    known = bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
    return known and origin == parts(f"{_scheme(scope, dict(headers))}://{hosts[0]}")


def foreign(request: HttpRequest) -> bool:
    """Whether a page of another origin asks with the person's session: its Origin says so, or Sec-Fetch-Site
    where a browser sends no Origin. A program with a token comes from anywhere."""
    if "Authorization" in request.headers:
        return False
    if "Origin" not in request.headers:
        return request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
    return elsewhere(request)


def elsewhere(request: HttpRequest) -> bool:
    """Whether a request has an Origin that is not ours."""
    origin = request.headers.get("Origin")
    ours = (f"{request.scheme}://{request.get_host()}", *settings.CSRF_TRUSTED_ORIGINS)
    found = parts(origin) if origin is not None else None
    return origin is not None and (found is None or found not in map(parts, ours))


def parts(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin, the port spelled out; None where it is none."""
    try:
        found = urlsplit(origin)
        port = found.port or PORTS[found.scheme]
    except (ValueError, KeyError):
        return None
    if not found.hostname or found.path or found.query or found.fragment or found.username is not None:
        return None
    return found.scheme, found.hostname, port


def _scheme(scope: Any, headers: dict[bytes, str]) -> str:
    """What the browser spoke: a proxy that the settings name says it in a header, else the socket does."""
    if settings.BEHIND_PROXY:
        name, secure = settings.SECURE_PROXY_SSL_HEADER
        header = name.removeprefix("HTTP_").replace("_", "-").lower().encode()
        return "https" if headers.get(header, "").strip() == secure else "http"
    return "https" if scope.get("scheme") == "wss" else "http"
