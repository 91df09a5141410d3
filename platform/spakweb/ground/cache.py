"""The cache where Redis is: what all processes note together, and each by itself while Redis is away.

It holds counts of attempts to sign in, results that are shown for a while, who swept last. All of it may be
lost; but a page must not fail, and nobody may try passwords without end, because Redis does not answer. What
is in Redis is JSON: whoever can write there runs nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

RETRY_S = 2.0
"""So long Redis is not asked again: a host that swallows packets would hold up every page."""
_METHODS = (
    *("add", "get", "set", "touch", "delete", "get_many", "set_many", "delete_many", "has_key", "incr"),
    "clear",
)


class AsJson:
    """What is kept, as JSON. Whole numbers go as they are, so that Redis can count."""

    def dumps(self, value: Any) -> Any:
        """The bytes. Raises: TypeError for what is not JSON."""
        return value if type(value) is int else orjson.dumps(value)

    def loads(self, data: bytes) -> Any:
        """The value; None for what this class did not write."""
        try:
            return int(data) if data.lstrip(b"-").isdigit() else orjson.loads(data)
        except ValueError:
            return None


class Shared(RedisCache):
    """The cache in Redis; while Redis is away, one of this process."""

    unavailable_until = 0.0
    """Of all caches of the process, which has one for each thread."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = {"serializer": AsJson, **params.get("OPTIONS", {})}
        super().__init__(server, {**params, "OPTIONS": options})
        self.here = LocMemCache("while redis is away", {})


def _either(name: str) -> Callable[..., Any]:
    there = getattr(RedisCache, name)

    def method(self: Shared, *args: Any, **more: Any) -> Any:
        if time.monotonic() >= Shared.unavailable_until:
            try:
                return there(self, *args, **more)
            except (RedisError, OSError):
                Shared.unavailable_until = time.monotonic() + RETRY_S
        return getattr(self.here, name)(*args, **more)

    return method


for _name in _METHODS:
    setattr(Shared, _name, _either(_name))
