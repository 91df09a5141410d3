"""Readers of server-sent events that go away at any moment: their places are free at once, none is kept."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.test import Client

from runs_kit import ledger, looped, member, tables, write
from spakweb.face.streams import stream
from spakweb.face.streams.stream import hub
from spakweb.face.streams.viewers import Viewer
from spakweb.ground.teams.models import Team

pytestmark = pytest.mark.django_db(transaction=True)
CLIENTS = 20
application = cache(get_asgi_application)


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


async def reads(
    path: str, cookie: str, until_s: float, gone: asyncio.Event | None = None, enough: bytes = b"none"
) -> tuple[int, bytes]:
    """What a client gets that hangs up after so long, or as soon as `gone` says so or `enough` has come."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(), "query_string": b"", "scheme": "http", "server": ("testserver", 80),
        "client": ("127.0.0.1", 5),
        "headers": [(b"host", b"testserver"), (b"cookie", f"sessionid={cookie}".encode())],
    }  # fmt: skip
    sent = [{"type": "http.request", "body": b"", "more_body": False}]
    status, body = 0, b""

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop()
        await (gone.wait() if gone else asyncio.sleep(until_s))
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")
        if gone and enough in body:
            gone.set()

    await application()(scope, receive, send)
    return status, body


def signed_in(team: Team) -> str:
    client = Client()
    client.force_login(member(team))
    return str(client.cookies["sessionid"].value)


def test_who_hangs_up_at_any_moment_leaves_nothing_behind(team: Team) -> None:
    held, cookie = ledger(team), signed_in(team)
    chance = random.Random(7)

    async def storm() -> tuple[int, dict[int, int], int]:
        here = hub()
        paths = ["/t/demo/runs/r1/events", "/t/demo/runs/events"]
        moments = [chance.uniform(0, 0.6) for _ in range(CLIENTS)]
        await asyncio.gather(*(reads(chance.choice(paths), cookie, moment) for moment in moments))
        await asyncio.sleep(0)
        return here.readers, dict(here._each), len(here.runs) + len(here.teams) + len(here._viewers)

    assert looped(storm) == (0, {}, 0)
    held.close()


@pytest.mark.parametrize("path", ["/t/demo/runs/r1/events", "/t/demo/runs/events"])
def test_who_hangs_up_before_the_first_event_leaves_nothing_behind(
    team: Team, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The answer is made, and on its way through the middleware."""
    held, cookie = ledger(team), signed_in(team)

    async def watch() -> tuple[int, int]:
        gone = asyncio.Event()
        of = Viewer.of

        def seen(*args: Any, **named: Any) -> Viewer:
            gone.set()
            return of(*args, **named)

        monkeypatch.setattr(Viewer, "of", seen)
        await reads(path, cookie, 0, gone)
        await asyncio.sleep(0)
        return hub().readers, len(hub()._tasks)

    assert looped(watch) == (0, 0)
    held.close()


def test_a_place_is_free_as_soon_as_its_reader_is_gone(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_EACH", 1)
    monkeypatch.setattr(stream, "PLACE_TRIES", 0)
    held, cookie = ledger(team), signed_in(team)
    write(held, 3)

    async def watch() -> list[tuple[int, bool]]:
        found = []
        gone = asyncio.Event()
        staying = asyncio.create_task(reads("/t/demo/runs/r1/events", cookie, 0, gone))
        while not hub().readers:
            await asyncio.sleep(0.01)
        found.append(await reads("/t/demo/runs/r1/events", cookie, 60))
        gone.set()
        await staying
        last = await reads("/t/demo/runs/r1/events", cookie, 0, asyncio.Event(), b"id: 3\n")
        return [(status, b"id: 3\n" in body) for status, body in [*found, last]]

    assert looped(watch) == [(503, False), (200, True)]
    held.close()


def test_who_comes_again_at_once_waits_for_the_place(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server sees a little later than the one who was cut off that the connection has ended."""
    monkeypatch.setattr(stream, "MOST_EACH", 1)
    monkeypatch.setattr(stream, "PLACE_S", 0.02)
    monkeypatch.setattr(stream, "PLACE_TRIES", 500)
    held, cookie = ledger(team), signed_in(team)
    write(held, 3)

    async def watch() -> tuple[int, bool, int]:
        over, staying = asyncio.Event(), asyncio.Event()
        old = asyncio.create_task(reads("/t/demo/runs/r1/events", cookie, 0, over))
        while not hub().readers:
            await asyncio.sleep(0.01)
        new = asyncio.create_task(reads("/t/demo/runs/r1/events", cookie, 0, staying))
        while not hub()._patient:
            await asyncio.sleep(0.01)
        over.set()
        await old
        while not hub().readers:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        staying.set()
        status, body = await new
        return status, b"id: 3\n" in body, hub()._patient

    assert looped(watch) == (200, True, 0)
    held.close()
