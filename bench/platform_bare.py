"""Channels and nothing else: each socket joins one group and sends on what the group is told.

`python -m bench.platform_bare PIPE SOCKET` serves it with uvicorn, as spakweb.work.operate.serve does
the platform; no session, no person, no ledger. The Redis layer is that of the platform, with room for as many
connections as there are sockets (redis-py allows 100 otherwise).
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from channels_redis.core import RedisChannelLayer

GROUP = "bare"


def layer() -> RedisChannelLayer:
    address = os.environ["SPAK_WEB_REDIS_URL"]
    return RedisChannelLayer(hosts=[{"address": address, "socket_timeout": None, "max_connections": 20000}])


def application() -> Any:
    layers = layer()

    class Bare(AsyncWebsocketConsumer):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            self.channel_layer_alias = "bare"
            await super().__call__(scope, receive, send)

        async def connect(self) -> None:
            await self.channel_layer.group_add(GROUP, self.channel_name)
            await self.accept()
            await self.send(text_data="{}")

        async def bare(self, event: Any) -> None:
            await self.send(text_data=event["text"])

    from channels.layers import channel_layers

    channel_layers.backends["bare"] = layers
    return Bare.as_asgi()


def main(pipe: int, listening: int) -> None:
    import django
    import uvicorn

    django.setup()
    from spakweb.ground.child import end_with_parent

    end_with_parent(pipe)
    config = uvicorn.Config(application(), log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listening)])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
