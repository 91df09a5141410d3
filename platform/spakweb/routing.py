"""The addresses of WebSockets; each app that has some adds its list here."""

from __future__ import annotations

from typing import Any

websocket_urlpatterns: list[Any] = []
