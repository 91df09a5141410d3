"""Who looks on, who may not any more, and ids of others: on sockets and on server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.db import SessionStore
from django.test import AsyncClient

from process_kit import WAIT_S
from runs_kit import Socket, ledger, looped, member, tables, write
from spakweb.face.streams import stream
from spakweb.face.streams.viewers import HOLDS_S, People, Viewer
from spakweb.ground.teams.models import Membership, Role, Team, User
from spakweb.store.runs.models import Run


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def vera(team: Team) -> User:
    return member(team)


def signed_in() -> Any:
    made = SessionStore()
    made.save()
    return made


def test_pages_hear_who_else_looks_on(team: Team, vera: User) -> None:
    bob = member(team, "bob", Role.EDITOR)
    ledger(team).close()

    async def watch() -> list[list[str]]:
        found = []
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: page.people == ["vera"])
            async with Socket("/t/demo/runs/r1/events", bob) as other, Socket("/t/demo/runs/r1/events", bob):
                await other.until(lambda other: other.people == ["bob", "vera"])
                await page.until(lambda page: page.people == ["bob", "vera"])
                found.append(page.people)
            await page.until(lambda page: page.people == ["vera"])
            found.append(page.people)
        return found

    assert looped(watch) == [["bob", "vera"], ["vera"]]


VERA, BOB = Viewer(1, "Vera"), Viewer(2, "Bob")


def test_processes_tell_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = People(), People()
    one.come("r1", VERA)
    assert two.hear(one.news(["r1"])) == [] and two.of("r1") == []  # nobody looks on there
    two.come("r1", BOB)
    assert one.hear(two.news(two.changed)) == ["r1"] and one.of("r1") == [(2, "Bob"), (1, "Vera")]
    assert "r1" in one.changed  # the newcomer is answered
    two.hear(one.news(one.changed))
    assert two.of("r1") == one.of("r1")
    two.go("r1", BOB)
    assert not two._there  # what nobody looks at here is not kept
    one.hear(two.news(["r1"]))
    assert one.of("r1") == [(1, "Vera")] and one.hear(one.news(["r1"])) == []


def test_pages_of_two_processes_hear_of_each_other(
    team: Team, vera: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hubs, as two processes have them, on one channel layer."""
    settings.REDIS_URL = "redis://as-if"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    monkeypatch.setattr(stream, "PEOPLE_S", 0.05)
    ledger(team).close()
    run = Run.objects.get()

    async def until(reader: Any, names: list[str]) -> None:
        async for message in stream.messages(reader):
            if message.type == "people":
                told = [person["name"] for person in json.loads(message.text)["people"]]
                if told == names:
                    return

    async def watch() -> None:
        one, two = stream.Hub(), stream.Hub()
        here = await one.join(run, Viewer(vera.pk, "Vera"), whole=False)
        await asyncio.wait_for(until(here, ["Vera"]), WAIT_S)
        there = await two.join(run, Viewer(0, "Bob"), whole=False)
        await asyncio.wait_for(until(here, ["Bob", "Vera"]), WAIT_S)
        await asyncio.wait_for(until(there, ["Bob", "Vera"]), WAIT_S)
        two.leave(there)
        await asyncio.sleep(0)
        one.leave(here)
        for hub in (one, two):
            hub._threads.shutdown()

    asyncio.run(watch())


def test_what_a_dead_process_told_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = People(), People()
    one.come("r1", VERA)
    two.come("r1", BOB)
    one.hear(two.news(["r1"]))
    clock = time.monotonic() + HOLDS_S
    monkeypatch.setattr("spakweb.face.streams.viewers.time.monotonic", lambda: clock)
    assert one.of("r1") == [(1, "Vera")]


def test_programs_do_not_look_on() -> None:
    one = People()
    one.come("r1", Viewer(3))
    assert one.of("r1") == [] and not one.changed


def sign_out(user: User, session: Any) -> None:
    session.delete()


def new_password(user: User, session: Any) -> None:
    user.set_password("another long secret")
    user.save()


def leave(user: User, session: Any) -> None:
    Membership.objects.filter(user=user).delete()


def deactivate(user: User, session: Any) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize(
    ("happens", "code"), [(sign_out, 4401), (new_password, 4401), (leave, 4403), (deactivate, 4401)]
)
def test_a_stream_ends_with_the_right_to_it(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch, happens: Any, code: int
) -> None:
    """The sockets of that person; one of another session of theirs stays when only one signs out."""
    monkeypatch.setattr(stream, "MEMBERS_S", 0.05)
    held = ledger(team)
    session, other = signed_in(), signed_in()

    async def watch() -> list[int]:
        async with (
            Socket("/t/demo/runs/r1/events", vera, session) as run,
            Socket("/t/demo/runs/events", vera, session) as runs,
            Socket("/t/demo/runs/r1/events", vera, other) as stays,
        ):
            await run.one()
            await runs.one()
            await stays.one()  # all three know the person as they were
            await sync_to_async(happens)(vera, session)
            await run.until(lambda page: False)
            await runs.until(lambda page: False)
            if happens is sign_out:
                await asyncio.to_thread(write, held)
                await stays.until(lambda page: len(page.seqs) == 2)
            else:
                await stays.until(lambda page: False)
            return [run.code, runs.code, stays.code]

    assert looped(watch) == [code, code, 0 if happens is sign_out else code]
    held.close()


FOREIGN = ["r1", "r2", "R2", "r2%00", "..%2Fr2", "2", "\u0662", "r2' OR '1'='1", "r2;--", "x" * 3000]


def test_ids_of_others_are_none(team: Team, vera: User) -> None:
    """vera is of the team next door: its run r2 is hers, r1 is not, and nothing else is anything."""
    other = Team.objects.create(name="Other", slug="other")
    ledger(other, "r1").close()
    held = ledger(team, "r2")
    client = AsyncClient()
    client.force_login(vera)

    async def watch() -> dict[str, tuple[int, int]]:
        found = {}
        for key in FOREIGN:
            async with Socket(f"/t/demo/runs/{key.replace('/', '')}/events", vera) as page:
                first = await page.one()
            answer = await client.get(f"/t/demo/runs/{key}/events", {"after": "0"})
            found[key] = page.code if first == "close" else 0, answer.status_code
            if answer.status_code == 200:
                await sync_to_async(answer.close)()
        async with Socket("/t/other/runs/events", vera) as page:
            assert await page.one() == "close"
            answer = await client.get("/t/other/runs/events")
            found["team"] = page.code, answer.status_code
        return found

    found = looped(watch)
    assert found.pop("r2") == (0, 200)
    assert set(found.values()) == {(4404, 404)}, found
    held.close()


ODD = ["-1", "-9", "1e3", "99999999999999", "\u00b2", "", "0x1", "1 OR 1", "%00"]


def test_an_odd_place_is_the_beginning(team: Team, vera: User) -> None:
    held = ledger(team)

    async def watch() -> list[list[int]]:
        found = []
        for after in ODD:
            async with Socket(f"/t/demo/runs/r1/events?after={after}", vera) as page:
                await page.until(lambda page: bool(page.seqs))
                found.append(page.seqs)
        return found

    assert looped(watch) == [[0]] * len(ODD)
    held.close()


def test_readers_of_one_person_are_asked_about_once_and_sent_the_same_message(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = ledger(team)
    write(held, 3)
    run = Run.objects.get()
    asked: list[int] = []
    real = stream.over

    def over(pairs: Any) -> Any:
        asked.append(len(pairs))
        return real(pairs)

    monkeypatch.setattr(stream, "over", over)
    monkeypatch.setattr(stream, "MEMBERS_S", 0.01)

    async def watch() -> list[Any]:
        hub = stream.hub()
        readers = [await hub.join(run, Viewer(vera.pk, "Vera"), whole=True) for _ in range(5)]
        await readers[0].watch.ready.wait()
        while not asked:
            await asyncio.sleep(0)
        return [(await anext(stream.batches(reader)))[0] for reader in readers]

    sent = looped(watch)
    assert {one.type for one in sent} == {"records"} and len(set(map(id, sent))) == 1
    assert set(asked) == {1}
    held.close()
