"""The cache while Redis is away: pages go on, and attempts to sign in are counted still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import ConnectionError as Away

from spakweb.ground import cache as caches
from spakweb.ground.cache import Shared


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


@pytest.mark.parametrize(
    "value", [0, 1, -3, 10**18, 1.5, True, None, "", "7", "words", [1, [2]], {"a": [{}]}]
)
def test_what_is_kept_comes_back(shared: Shared, value: Any) -> None:
    kept = caches.AsJson()
    found = kept.dumps(value)
    sent = str(found).encode() if type(found) is int else found  # as Redis gives it back
    assert (kept.loads(sent), type(kept.loads(sent))) == (value, type(value))
    assert isinstance(shared._cache._serializer, caches.AsJson)


def test_nothing_in_the_cache_is_executed(tmp_path: Path) -> None:
    """A pickle that somebody put there, or an older release, is no value at all."""
    made = tmp_path / "made"
    hostile = b"cpathlib\nPath.touch\n(cpathlib\nPath\n(V%s\ntRtR." % str(made).encode()
    for data in (hostile, b"\x80\x04]\x94.", b"", b"-", b"{", b"\xff"):
        assert caches.AsJson().loads(data) is None
    assert not made.exists()
    with pytest.raises(TypeError):
        caches.AsJson().dumps(object())


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
