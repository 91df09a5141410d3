"""The platform as an ASGI application: pages by Django, WebSockets by Channels.

A WebSocket from a page of another origin is refused before anything else looks at it.
"""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")

pages = get_asgi_application()

from spakweb.ground.web.bodies import Bounded  # noqa: E402
from spakweb.ground.web.origins import SameOrigin  # noqa: E402
from spakweb.websockets import websocket_urlpatterns  # noqa: E402  the models must be ready before

application = ProtocolTypeRouter(
    {
        "http": Bounded(pages),
        "websocket": SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
