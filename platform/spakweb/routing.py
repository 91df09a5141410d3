"""The addresses of WebSockets: those of the same things over HTTP, under `t/<team>/`.

Those of before 0.2.0, under `ws/`, are still served: pages that are open during an upgrade have them.
"""

from __future__ import annotations

from typing import Any

from django.urls import path

from spakweb.editor.presence import Presence
from spakweb.live.consumers import RunStream, TeamStream

websocket_urlpatterns: list[Any] = [
    path("t/<slug:team>/runs/events", TeamStream.as_asgi()),
    path("t/<slug:team>/runs/<str:key>/events", RunStream.as_asgi()),
    path("t/<slug:team>/specs/<slug:spec>/presence/", Presence.as_asgi()),
    path("ws/t/<slug:team>/specs/<slug:spec>/presence/", Presence.as_asgi()),
    path("ws/runs/<str:key>/", RunStream.as_asgi()),
    path("ws/team/<slug:team>/runs/", TeamStream.as_asgi()),
]
