"""The addresses of WebSockets; each app that has some adds its list here."""

from __future__ import annotations

from typing import Any

from django.urls import path

from spakweb.editor.presence import Presence
from spakweb.live.consumers import RunStream, TeamStream

websocket_urlpatterns: list[Any] = [
    path("ws/t/<slug:team>/specs/<slug:spec>/presence/", Presence.as_asgi()),
    path("ws/runs/<str:key>/", RunStream.as_asgi()),
    path("ws/team/<slug:team>/runs/", TeamStream.as_asgi()),
]
