"""Streams of programs that came with a token: they go on where they were, and end when the token does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import AsyncClient
from django.utils import timezone

from process_kit import WAIT_S
from runs_kit import ledger, looped, member, tables, write
from spakweb.asgi import application
from spakweb.face.streams import stream
from spakweb.face.streams.stream import Hub, hub
from spakweb.face.streams.viewers import Viewer, over
from spakweb.ground.teams.models import Membership, Team, Token, User
from spakweb.store.runs.models import Run
from spakweb.work.teams import tokens

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def vera(team: Team) -> User:
    return member(team)


def program(user: User) -> tuple[Callable[..., Any], Token]:
    """What asks with a token of the person: `get(path, last_event_id)`."""
    made, secret = tokens.make(user, "script", 7)

    def get(path: str, last: str = "") -> Any:
        more = {"last-event-id": last} if last else {}
        return AsyncClient().get(path, headers={"authorization": f"Bearer {secret}", **more})

    return get, made


async def read(answer: Any, done: Callable[[bytes], bool]) -> bytes:
    """What came until it was enough, or the stream ended."""
    found = b""
    async for piece in answer.streaming_content:
        found += piece
        if done(found):
            break
    return found


RUN, OLD_RUN = "/api/v1/teams/demo/runs/r1/events/", "/t/demo/runs/r1/events"
TEAM, OLD_TEAM = "/api/v1/teams/demo/events/", "/t/demo/runs/events"


@pytest.mark.parametrize("address", [RUN, OLD_RUN])
def test_it_goes_on_behind_the_last_event(team: Team, vera: User, address: str) -> None:
    held = ledger(team)
    write(held, 9)
    get, _ = program(vera)

    async def watch() -> list[bytes]:
        found = []
        for last in ("", "3", "8"):
            answer = await get(address, last)
            assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
            body = await asyncio.wait_for(read(answer, lambda text: b"id: 9\n" in text), WAIT_S)
            found.append(body[body.index(b"id: ") :].split(b"\n")[0])
            await answer.streaming_content.aclose()
        return found

    assert looped(watch) == [b"id: 0", b"id: 4", b"id: 9"]
    held.close()


def test_a_run_that_could_not_begin_has_an_end(team: Team, vera: User) -> None:
    Run.objects.create(team=team, key="none", name="none", state="failed")
    get, _ = program(vera)

    async def watch() -> bytes:
        answer = await get("/t/demo/runs/none/events")
        return await asyncio.wait_for(read(answer, lambda text: False), WAIT_S)

    assert b'event: end\ndata: {"type":"end","state":"failed","count":0}' in looped(watch)


def test_what_the_api_answers_before_a_stream_begins(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spakweb.face.api.limits.READS_PER_MINUTE", 3)
    Run.objects.create(team=team, key="over", name="over", state="failed", count=2, ended_at=timezone.now())
    gone = Run.objects.create(team=team, key="gone", name="gone", state="failed", count=2)
    Run.objects.filter(pk=gone.pk).update(deleted_at=timezone.now())
    get, _ = program(vera)

    async def asked() -> list[Any]:
        here = "/api/v1/teams/demo/runs"
        return [
            await get(f"{here}/over/events/", "1"),
            await get(f"{here}/none/events/"),
            await get(f"{here}/gone/events/"),
            await get(RUN),
        ]

    answers = looped(asked)
    assert [one.status_code for one in answers] == [204, 404, 410, 429]
    assert answers[0]["RateLimit"].startswith('"read";r=2;')
    assert [one.json()["code"] for one in answers[1:]] == ["web.404", "web.run_deleted", "web.rate"]
    assert {one["Content-Type"] for one in answers[1:]} == {"application/problem+json"}


def test_too_many_streams_are_a_problem(team: Team, vera: User, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(self: Hub, user: int) -> bool:
        return False

    monkeypatch.setattr(Hub, "room", none)
    get, _ = program(vera)
    answer = looped(lambda: get(TEAM))
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, "5", "web.streams")


OF_BROWSERS = [
    ({"origin": "http://testserver:3000"}, 403), ({"origin": "https://testserver"}, 403),
    ({"origin": "null"}, 403), ({"origin": "http://evil.test"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403), ({"origin": "http://testserver"}, 200),
    ({"sec-fetch-site": "same-origin"}, 200), ({"sec-fetch-site": "none"}, 200), ({}, 200),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "status"), OF_BROWSERS)
@pytest.mark.parametrize("path", [OLD_RUN, OLD_TEAM, RUN, TEAM])
def test_no_page_of_another_origin_opens_one_with_a_session(
    team: Team, vera: User, path: str, headers: dict[str, str], status: int
) -> None:
    """It could not read it, and would take the person's places."""
    ledger(team).close()

    async def asked() -> Any:
        browser = AsyncClient()
        await browser.aforce_login(vera)
        return await browser.get(path, headers=headers)

    answer = looped(asked)
    assert answer.status_code == status
    if status == 403:
        assert b"web.origin" in answer.content


def test_a_program_with_a_token_says_any_origin(team: Team, vera: User) -> None:
    ledger(team).close()
    _, secret = tokens.make(vera, "script", 7)
    headers = {"authorization": f"Bearer {secret}", "origin": "http://elsewhere.test"}
    assert looped(lambda: AsyncClient().get(TEAM, headers=headers)).status_code == 200


def revoked(made: Token) -> None:
    tokens.revoke(made)


def ended(made: Token) -> None:
    Token.objects.update(ends_at=timezone.now() - timedelta(seconds=1))


def closed(made: Token) -> None:
    User.objects.filter(pk=made.user_id).update(is_active=False)


def left(made: Token) -> None:
    Membership.objects.all().delete()


@pytest.mark.parametrize(
    ("happens", "code"), [(revoked, b"4401"), (ended, b"4401"), (closed, b"4401"), (left, b"4403")]
)
def test_its_streams_end_with_it(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch, happens: Any, code: bytes
) -> None:
    monkeypatch.setattr(stream, "MEMBERS_S", 0.05)
    held = ledger(team)
    get, made = program(vera)

    async def watch() -> list[bool]:
        answers = [await get(path) for path in (RUN, TEAM, OLD_RUN, OLD_TEAM)]
        reading = [asyncio.create_task(read(answer, lambda text: False)) for answer in answers]
        while hub().readers < 4:
            await asyncio.sleep(0.01)
        await sync_to_async(happens)(made)
        bodies = await asyncio.wait_for(asyncio.gather(*reading), WAIT_S)
        return [
            body.endswith(b'event: closed\ndata: {"type":"closed","code":%s}\n\n' % code) for body in bodies
        ]

    assert looped(watch) == [True] * 4
    held.close()


def test_a_thousand_cost_no_more_questions(team: Team, vera: User, django_assert_num_queries: Any) -> None:
    ends = timezone.now() + timedelta(days=7)
    Token.objects.bulk_create(
        Token(user=vera, name="x", secret_hash=str(number), ends_at=ends) for number in range(1000)
    )
    made = list(Token.objects.values_list("pk", flat=True))
    Token.objects.filter(pk=made[0]).update(revoked_at=timezone.now())
    viewers = [Viewer(vera.pk, token=pk) for pk in made]
    with django_assert_num_queries(3):  # the people, the tokens, the memberships
        found = over((viewer, team.pk) for viewer in viewers)
    assert found == {(viewers[0], team.pk): 4401}


@pytest.mark.parametrize("path", ["/t/demo/runs/r1/events", "/t/demo/runs/events"])
def test_sockets_take_none(team: Team, vera: User, path: str) -> None:
    """They are for pages, which cannot send the header."""
    held = ledger(team)
    _, secret = tokens.make(vera, "script", 7)
    headers = {"authorization": f"Bearer {secret}", "host": "127.0.0.1", "origin": "http://127.0.0.1"}
    scope = {
        "type": "websocket", "path": path, "query_string": b"", "subprotocols": [],
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip

    async def watch() -> Any:
        wire = ApplicationCommunicator(application, scope)
        await wire.send_input({"type": "websocket.connect"})
        found = await wire.receive_output(30)
        return found if found["type"] == "websocket.close" else await wire.receive_output(30)

    assert looped(watch)["code"] == 4401
    held.close()


def test_what_was_revoked_is_cut_off_within_a_second(team: Team, vera: User) -> None:
    """As the platform is set: a stream is asked after twice a second, so that nothing here measures time;
    and with the old one's end, where a token was rotated."""
    assert stream.MEMBERS_S <= 0.5
    held = ledger(team)
    get, made = program(vera)

    async def watch() -> bytes:
        answer = await get("/t/demo/runs/r1/events")
        reading = asyncio.create_task(read(answer, lambda text: False))
        while not hub().readers:
            await asyncio.sleep(0.01)
        await sync_to_async(tokens.rotate)(made, 7, 0)
        return await asyncio.wait_for(reading, WAIT_S)

    assert looped(watch).endswith(b'event: closed\ndata: {"type":"closed","code":4401}\n\n')
    held.close()


def test_a_team_s_stream_is_for_tokens_of_every_spec(team: Team, vera: User) -> None:
    _, secret = tokens.make(vera, "script", 7, team)
    Token.objects.update(specs=[0])

    async def watch() -> int:
        answer = await AsyncClient().get("/t/demo/runs/events", headers={"authorization": f"Bearer {secret}"})
        return int(answer.status_code)

    assert looped(watch) == 403
