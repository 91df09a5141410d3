"""A worker that begins while the database is away or locked waits for it, and takes over all the same."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError

from spakweb.store.ledger import store
from spakweb.work.worker import process, tasks


class Database:
    """What a beginning worker asks of it; it fails for the first `away` times."""

    def __init__(self, away: int) -> None:
        self.away, self.asked = away, list[Any]()

    def ask(self, what: Any) -> int:
        self.asked.append(what)
        if len(self.asked) <= self.away:
            raise OperationalError("database is locked")
        return 2


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Database:
    made = Database(0)
    settings.REDIS_URL = ""
    monkeypatch.setattr(process, "AGAIN_S", 0.0)
    monkeypatch.setattr(store, "release", made.ask)
    monkeypatch.setattr(tasks, "sweep_up", lambda *, at_once: made.ask(at_once))
    return made


@pytest.mark.parametrize("away", [0, 1, 3])
def test_it_waits_for_the_database_and_says_so_once(
    database: Database, away: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.db.connection.close", lambda: None)
    database.away = away
    caplog.set_level("INFO")
    process.take_over("host:1:aa", threading.Event())
    assert database.asked == ["host:1:aa"] * (away + 1) + [True]
    said = [record.getMessage() for record in caplog.records]
    waits = ["the worker waits for the database: database is locked"] if away else []
    assert said == [*waits, "took over 2 runs of the worker before"]


def test_one_that_is_told_to_end_waits_no_longer(database: Database) -> None:
    stop = threading.Event()
    stop.set()
    process.take_over("host:1:aa", stop)
    assert database.asked == []
