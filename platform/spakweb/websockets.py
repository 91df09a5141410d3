"""The addresses of WebSockets: those of the same things over HTTP, under `t/<team>/`."""

from __future__ import annotations

from typing import Any

from django.urls import path, re_path

from spakweb.face.editor.presence import Presence
from spakweb.face.streams.consumers import NOT_YOURS, RunStream, TeamStream


async def unknown(scope: Any, receive: Any, send: Any) -> None:
    """Any other address: 404 where the server can answer a handshake so, else closed unaccepted."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": NOT_YOURS})
        return
    head = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")]
    await send({"type": "websocket.http.response.start", "status": 404, "headers": head})
    await send({"type": "websocket.http.response.body", "body": b"There is no such stream.\n"})


websocket_urlpatterns: list[Any] = [
    path("t/<slug:team>/runs/events", TeamStream.as_asgi()),
    path("t/<slug:team>/runs/<str:key>/events", RunStream.as_asgi()),
    path("t/<slug:team>/specs/<slug:spec>/presence/", Presence.as_asgi()),
    re_path("", unknown),
]
