"""The cache while Redis is away: pages go on, and attempts to sign in are counted still."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import ConnectionError as Away

from spakweb import cache as caches
from spakweb.cache import Shared


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    made = Shared("redis://127.0.0.1:1/0", {"OPTIONS": {"socket_connect_timeout": 0.2}})
    made.here.clear()
    monkeypatch.setattr(Shared, "unavailable_until", Shared.unavailable_until)
    yield made
    made.here.clear()


def test_what_this_process_notes_itself(shared: Shared) -> None:
    assert shared.get("a") is None and shared.get("a", 7) == 7
    assert shared.add("a", 1, 60) and not shared.add("a", 1, 60)
    assert shared.incr("a") == 2 and shared.get_or_set("a", 9) == 2
    shared.set_many({"b": 3})
    assert shared.get_many(["a", "b"]) == {"a": 2, "b": 3} and "b" in shared
    assert shared.touch("b") and shared.delete("b") and not shared.has_key("b")
    with pytest.raises(ValueError, match="not found"):
        shared.incr("none")
    assert Shared("redis://127.0.0.1:1/0", {}).get("a") == 2, "threads have caches of their own"


def test_redis_is_asked_again_after_a_while(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get(self: RedisCache, key: str, *args: Any) -> str:
        asked.append(key)
        if len(asked) == 1:
            raise Away
        return "there"

    monkeypatch.setattr(Shared, "get", caches._either("get"))
    with monkeypatch.context() as patched:
        patched.setattr(RedisCache, "get", get)
        patched.setattr(Shared, "get", caches._either("get"))
        assert shared.get("a") is None and shared.get("a") is None and len(asked) == 1
        Shared.unavailable_until = 0.0
        assert shared.get("a") == "there"
