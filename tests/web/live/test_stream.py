"""Watching runs: each record once and in order, one read for all, and nobody else's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError
from django.utils import timezone

from needs import missing
from process_kit import WAIT_S
from runs_kit import Socket, ledger, looped, member, tables, write
from servers_kit import Redis, binary
from spak.errors import LedgerError
from spakweb.face.streams import stream, watches
from spakweb.face.streams.stream import hub
from spakweb.ground.teams.models import Membership, Team, User
from spakweb.store.hints import news
from spakweb.store.runs.models import Run, State

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def vera(team: Team) -> User:
    return member(team)


async def step(*args: Any) -> None:
    await asyncio.to_thread(write, *args)


def test_what_was_and_then_what_comes(team: Team, vera: User) -> None:
    held = ledger(team)
    write(held, 30)

    async def watch() -> list[int]:
        async with Socket("/t/demo/runs/r1/events?after=4", vera) as page:
            await page.until(lambda page: len(page.seqs) >= 26)
            await step(held, 3)
            await page.until(lambda page: len(page.seqs) >= 29)
            assert page.messages[0]["records"][0]["kind"] == "act"
            return page.seqs

    assert looped(watch) == list(range(5, 34))
    held.close()


@pytest.fixture(params=["datagrams", "redis"])
def layer(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[str]:
    if request.param == "datagrams":
        yield "datagrams"
        return
    if not binary(Redis.needs):
        missing("Redis", "redis-server")
    with Redis(tmp_path / "redis") as redis:
        settings.REDIS_URL = redis.url
        hosts = [{"address": redis.url, "socket_timeout": None}]
        settings.CHANNEL_LAYERS = {
            "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": hosts}}
        }
        news._after_fork()
        yield "redis"
    news._after_fork()


def test_a_hint_brings_it_at_once(
    team: Team, vera: User, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the look every half second: the hint alone."""
    monkeypatch.setattr(stream, "LOOK_S", 60.0)
    held = ledger(team)

    async def watch() -> None:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: len(page.seqs) == 1)
            for count in range(2, 5):
                await asyncio.sleep(0.15)
                await step(held)
                await page.until(lambda page, count=count: len(page.seqs) == count)

    looped(watch)
    if layer == "datagrams":
        assert not list(news.folder().iterdir()), "the socket's file is left behind"
    held.close()


def test_a_lost_hint_costs_a_look(team: Team, vera: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news.Sender, "_send", lambda self, heads: None)
    held = ledger(team)

    async def watch() -> None:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: len(page.seqs) == 1)
            await step(held, 2)
            await page.until(lambda page: len(page.seqs) == 3)

    looped(watch)
    held.close()


def test_reconnects_lose_and_repeat_nothing(team: Team, vera: User) -> None:
    held = ledger(team)
    chance = random.Random(5)

    async def watch() -> list[int]:
        seen: list[int] = []

        async def written() -> None:
            for _ in range(60):
                await step(held, chance.randrange(1, 8))

        writing = asyncio.create_task(written())
        for _ in range(20):
            async with Socket(f"/t/demo/runs/r1/events?after={seen[-1] if seen else ''}", vera) as page:
                if chance.random() < 0.8:
                    await page.one()
                seen += page.seqs
        await writing
        async with Socket(f"/t/demo/runs/r1/events?after={seen[-1] if seen else ''}", vera) as page:
            await page.until(lambda page: len(seen) + len(page.seqs) >= held.count)
            return seen + page.seqs

    assert looped(watch) == list(range(held.count))
    held.close()


def test_one_read_serves_all_watchers(team: Team, vera: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LOOK_S", 60.0)
    held = ledger(team)

    async def watch() -> int:
        pages = [Socket("/t/demo/runs/r1/events", vera) for _ in range(40)]
        for page in pages:
            await page.__aenter__()
        for page in pages:
            await page.until(lambda page: len(page.seqs) == 1)
        before = hub().reads
        await step(held, 5)
        for page in pages:
            await page.until(lambda page: len(page.seqs) == 6)
            await page.__aexit__()
        return hub().reads - before

    assert looped(watch) <= 3
    held.close()


def test_a_reader_far_behind_is_told_to_fetch_the_list(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "BEHIND", 50)
    monkeypatch.setattr(watches, "WINDOW", 20)
    held = ledger(team)
    write(held, 99)

    async def watch() -> list[dict[str, Any]]:
        async with Socket("/t/demo/runs/r1/events?after=9", vera) as page:
            await page.until(lambda page: any(one["type"] == "state" for one in page.messages))
            await step(held)
            await page.until(lambda page: bool(page.seqs))
            assert page.seqs == [100]
            return page.messages

    first = looped(watch)[0]
    assert (first["type"], first["from"], first["to"]) == ("resync", 10, 100)
    held.close()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OperationalError("server closed the connection"), "all"),
        (LedgerError("ledger.tampered", "", ""), 1011),
    ],
    ids=["away", "damaged"],
)
def test_records_that_cannot_be_read_for_one_who_is_behind(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str | int
) -> None:
    """No page stands still and says nothing: it goes on when the database is back, or is closed."""
    monkeypatch.setattr(stream, "LOOK_S", 0.05)
    monkeypatch.setattr(watches, "LOOK_S", 0.05)
    monkeypatch.setattr(watches, "WINDOW", 20)
    held, past, failed = ledger(team), watches.Watch.past, []
    write(held, 99)

    async def once(watch: watches.Watch, start: int) -> tuple[watches.Item, ...]:
        if not failed:
            failed.append(start)
            raise error
        return await past(watch, start)

    monkeypatch.setattr(watches.Watch, "past", once)

    async def watch() -> str | int:
        async with Socket("/t/demo/runs/r1/events?after=9", vera) as page:
            await asyncio.wait_for(page.until(lambda page: len(page.seqs) == 90), WAIT_S)
            return "all" if page.seqs == list(range(10, 100)) else page.code

    assert looped(watch) == told and failed == [10]
    held.close()


def test_nodes_come_when_they_change(team: Team, vera: User) -> None:
    held = ledger(team)

    async def watch() -> list[Any]:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: page.messages[-1:] != [] and page.messages[-1]["type"] == "state")
            await asyncio.to_thread(_permit, held)
            await page.until(lambda page: bool(page.messages[-1].get("nodes")))
            return page.messages

    *_, last = looped(watch)
    assert last["nodes"] == [["Main", "running", 1, 0, 0, 0]] and last["whole"] is False
    held.close()


def _permit(held: Any) -> None:
    from spak.records import Record

    held.append([Record("permit", "commit", {"act": "tool", "allow": True}, "Main", "s1", 1, at=5)])
    held.flush()


def test_a_dead_run_is_not_shown_as_running(team: Team, vera: User) -> None:
    held = ledger(team)
    Run.objects.update(state=State.RUNNING)
    dies = sync_to_async(lambda: Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1)))

    async def watch() -> list[str]:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: "run" in (page.messages or [{}])[-1])
            await dies()
            await page.until(lambda page: page.messages[-1].get("run", {}).get("state") == "queued")
            assert "worker is gone" in page.messages[-1]["run"]["why"]
            return [one["run"]["state"] for one in page.messages if "run" in one]

    assert looped(watch) == ["running", "queued"]
    held.close()


def test_the_end_closes_the_socket(team: Team, vera: User) -> None:
    held = ledger(team)
    write(held, 2)
    held.close()
    Run.objects.update(state=State.SUCCEEDED)

    async def watch() -> Socket:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: False)
            return page

    page = looped(watch)
    assert page.code == 1000 and page.seqs == [0, 1, 2]
    assert page.messages[-1] == {"type": "end", "state": "succeeded", "count": 3}


@pytest.mark.parametrize(
    "path", ["/t/demo/runs/r1/events", "/t/demo/runs/none/events", "/t/demo/runs/events", "/t/no/runs/events"]
)
def test_strangers_and_nobody_see_nothing(team: Team, path: str) -> None:
    ledger(team).close()
    stranger = User.objects.create_user("charlie", "charlie@spak.example", "a long secret")

    async def watch(user: Any) -> tuple[int, list[Any]]:
        async with Socket(path, user) as page:
            assert await page.one() == "close"
            return page.code, page.messages

    assert looped(lambda: watch(stranger)) == (4404, [])
    assert looped(lambda: watch(AnonymousUser())) == (4401, [])


@pytest.mark.parametrize("path", ["/t/demo/runs/r1/events", "/t/demo/runs/events"])
def test_a_run_and_a_team_have_a_socket(team: Team, vera: User, path: str) -> None:
    ledger(team).close()

    async def watch() -> str:
        async with Socket(path, vera) as page:
            return await page.one()

    assert looped(watch) == ("records" if "r1" in path else "runs")


def test_a_run_is_under_its_own_team_alone(team: Team, vera: User) -> None:
    """Vera is in both teams: the address still names the wrong one."""
    ledger(team).close()
    Membership.objects.create(team=Team.objects.create(name="Other", slug="other"), user=vera, role="viewer")

    async def watch() -> int:
        async with Socket("/t/other/runs/r1/events", vera) as page:
            assert await page.one() == "close"
            return page.code

    assert looped(watch) == 4404


def test_a_socket_ends_with_the_membership(team: Team, vera: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MEMBERS_S", 0.1)
    ledger(team).close()
    leave = sync_to_async(lambda: Membership.objects.filter(user=vera).delete())

    async def watch() -> list[int]:
        async with Socket("/t/demo/runs/r1/events", vera) as run, Socket("/t/demo/runs/events", vera) as runs:
            await run.one()
            await runs.one()
            await leave()
            await run.until(lambda page: False)
            await runs.until(lambda page: False)
            return [run.code, runs.code]

    assert looped(watch) == [4403, 4403]


def test_a_ping_is_answered_and_a_flood_of_them_closes_the_socket(team: Team, vera: User) -> None:
    ledger(team).close()

    async def watch() -> tuple[int, int]:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.say("ping")
            await page.until(lambda page: page.messages[-1:] == [{"type": "pong"}])
            for _ in range(25):
                await page.say("ping")
            await page.until(lambda page: False)
            return page.messages.count({"type": "pong"}), page.code

    assert looped(watch) == (1, 4429)


def test_too_many_and_too_talkative(team: Team, vera: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_EACH", 2)
    monkeypatch.setattr(stream, "PLACE_TRIES", 1)
    ledger(team).close()

    async def watch() -> list[int]:
        async with (
            Socket("/t/demo/runs/r1/events", vera) as one,
            Socket("/t/demo/runs/r1/events", vera),
            Socket("/t/demo/runs/r1/events", vera) as third,
        ):
            await third.until(lambda page: False)
            for _ in range(25):
                await one.say("hello")
            await one.until(lambda page: False)
            return [one.code, third.code]

    assert looped(watch) == [4429, 4429]


def test_a_team_sees_its_runs_change(team: Team, vera: User) -> None:
    for number in range(3):
        ledger(team, f"r{number}").close()
    other = Team.objects.create(name="Other", slug="other")
    ledger(other, "foreign").close()
    rename = sync_to_async(lambda: Run.objects.filter(key="r1").update(state=State.FAILED, reason="why"))

    async def watch() -> list[dict[str, Any]]:
        async with Socket("/t/demo/runs/events", vera) as page:
            await page.one()
            await rename()
            await page.one()
            return page.messages

    first, second = looped(watch)
    assert [one["key"] for one in first["runs"]] == ["r2", "r1", "r0"] and first["whole"]
    assert [(one["key"], one["state"], one["reason"]) for one in second["runs"]] == [("r1", "failed", "why")]
    assert second["whole"] is False


def test_the_limits_are_those_that_the_docs_name() -> None:
    text = (Path(__file__).parents[3] / "docs" / "runs.md").read_text()
    assert f"{stream.MOST_EACH} of one person or {stream.MOST:,} of one process" in text
