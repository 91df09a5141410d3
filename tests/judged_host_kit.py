"""A name that stands for loopback when it is judged, and what lets a run's requests go there."""

from __future__ import annotations

import os
import socket
from typing import Any

HOST = "api.example"
REACH = "reachable_kind(/loopback).\n"
"""What the operator's law says for the test's own server to be reached: no spec may (`policy.closed`)."""


def rebinding() -> None:
    """The name is at loopback when it is first asked for, and elsewhere ever after."""
    whole = socket.getaddrinfo
    asked: list[str] = []

    def getaddrinfo(host: Any, *args: Any, **more: Any) -> Any:
        if host != HOST:
            return whole(host, *args, **more)
        asked.append(host)
        return whole("127.0.0.1" if len(asked) == 1 else "192.0.2.1", *args, **more)

    socket.getaddrinfo = getaddrinfo


def at_home() -> None:
    """The same where the operator's settings let requests reach this machine."""
    rebinding()
    os.environ["SPAK_NETWORK_REQUESTS"] = "public,loopback"


def neighbour() -> None:
    """A service of a compose file: its short name leads to loopback, and settings let requests go there."""
    whole = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **more: Any) -> Any:
        return whole("127.0.0.1" if host == "api" else host, *args, **more)

    socket.getaddrinfo = getaddrinfo
    os.environ["SPAK_NETWORK_REQUESTS"] = "public,loopback"
