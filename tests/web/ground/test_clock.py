"""The time of leases: the database's, whatever the date of this host is."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from spakweb.ground import clock

THERE = datetime(2030, 1, 1, tzinfo=UTC)


def test_with_sqlite_it_is_the_date_of_the_machine() -> None:
    assert abs(clock.now() - timezone.now()) < timedelta(seconds=5)


def test_with_postgresql_it_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    here = [100.0]
    cursor = SimpleNamespace(
        execute=asked.append, fetchone=lambda: (THERE.astimezone(timezone.get_fixed_timezone(60)),)
    )
    made: Any = SimpleNamespace(vendor="postgresql", cursor=lambda: nullcontext(cursor))
    monkeypatch.setattr(clock, "connection", made)
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: here[0]))
    monkeypatch.setattr(clock, "_asked", clock._Asked())
    assert clock.now() == THERE and clock.now().tzinfo is UTC
    here[0] += clock.ASK_S - 1
    assert clock.now() == THERE + timedelta(seconds=clock.ASK_S - 1) and len(asked) == 1
    here[0] += 2
    assert clock.now() == THERE and len(asked) == 2
