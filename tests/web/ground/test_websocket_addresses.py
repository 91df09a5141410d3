"""Handshakes of WebSockets to addresses that do not exist: 404 or a close, no traceback."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spakweb.asgi import application

PATHS = (
    "/",
    "/nowhere/",
    "/t/team/runs/",
    "/ws/",
    "/ws/runs/r1/",
    "/ws/team/demo/runs/",
    "/t/UPPER team/runs/events",
    "/t/a/runs/b/c/events",
    "",
    "/\n",
    "/t/\u00e9/x",
)


def sent(path: str, **more: Any) -> list[dict[str, Any]]:
    """What the platform answers to a handshake from a page of its own."""
    headers = [(b"host", b"testserver:8000"), (b"origin", b"http://testserver:8000")]
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "headers": headers,
        "path": path,
        "query_string": b"",
        **more,
    }
    messages = [{"type": "websocket.disconnect", "code": 1000}, {"type": "websocket.connect"}]
    found: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop()

    async def send(message: dict[str, Any]) -> None:
        found.append(message)

    asyncio.run(application(scope, receive, send))
    return found


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_address_is_404_where_the_server_can_say_so(settings: Any, path: str) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    start, body = sent(path, extensions={"websocket.http.response": {}})
    assert start["type"] == "websocket.http.response.start" and start["status"] == 404
    assert body["type"] == "websocket.http.response.body" and body["body"]


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_address_is_closed_elsewhere(settings: Any, path: str) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    assert sent(path) == [{"type": "websocket.close", "code": 4404}]
