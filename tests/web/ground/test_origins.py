"""Which handshakes of WebSockets come from a page of ours: scheme, host and port together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spakweb.ground.web.origins import SameOrigin, allowed


def scope(
    origin: str | None, host: str = "spak.test:8000", scheme: str = "ws", **more: str
) -> dict[str, Any]:
    headers = [(b"host", host.encode())]
    headers += [] if origin is None else [(b"origin", origin.encode())]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in more.items()]
    return {"type": "websocket", "scheme": scheme, "headers": headers, "path": "/ws/"}


CASES = [
    ("http://spak.test:8000", {}, True),
    ("http://SPAK.test:8000", {}, True),
    ("http://spak.test", {"host": "spak.test"}, True),
    ("http://spak.test:80", {"host": "spak.test"}, True),
    ("https://spak.test", {"host": "spak.test", "scheme": "wss"}, True),
    ("http://spak.test:8001", {}, False),
    ("http://spak.test", {}, False),
    ("https://spak.test:8000", {}, False),
    ("http://spak.test", {"host": "spak.test", "scheme": "wss"}, False),
    ("http://evil.test:8000", {}, False),
    ("http://evil.test:8000", {"host": "evil.test:8000"}, False),
    ("http://spak.test:8000@evil.test", {}, False),
    ("http://user@spak.test:8000", {}, False),
    ("http://spak.test:8000/path", {}, False),
    ("null", {}, False),
    ("", {}, False),
    ("http://spak.test:port", {}, False),
    ("ftp://spak.test:8000", {}, False),
    (None, {}, False),
    ("https://elsewhere.test", {}, True),
    ("http://elsewhere.test", {}, False),
]


@pytest.mark.parametrize(("origin", "more", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_only_pages_of_ours(settings: Any, origin: str | None, more: dict[str, str], expected: bool) -> None:
    settings.ALLOWED_HOSTS = ["spak.test"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://elsewhere.test"]
    assert allowed(scope(origin, **more)) is expected


@pytest.mark.parametrize(("proto", "expected"), [("https", True), ("http", False), ("", False)])
def test_behind_a_proxy_its_header_says_the_scheme(settings: Any, proto: str, expected: bool) -> None:
    settings.ALLOWED_HOSTS, settings.BEHIND_PROXY = ["spak.test"], True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert allowed(scope("https://spak.test", "spak.test", x_forwarded_proto=proto)) is expected


def test_two_origins_are_none(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["spak.test"]
    found = scope("http://spak.test:8000")
    found["headers"].append((b"origin", b"http://spak.test:8000"))
    assert not allowed(found)


@pytest.mark.parametrize(
    ("origin", "sent"), [("http://spak.test:8000", "page"), ("http://spak.test", "deny")]
)
def test_the_application_sees_only_what_is_allowed(settings: Any, origin: str, sent: str) -> None:
    settings.ALLOWED_HOSTS = ["spak.test"]
    seen: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        seen.append("page")

    messages = [{"type": "websocket.disconnect", "code": 1000}, {"type": "websocket.connect"}]

    async def receive() -> dict[str, Any]:
        return messages.pop()

    async def send(message: dict[str, Any]) -> None:
        seen.append("deny" if message["type"] == "websocket.close" else message)

    asyncio.run(SameOrigin(page)(scope(origin), receive, send))
    assert seen == [sent]
