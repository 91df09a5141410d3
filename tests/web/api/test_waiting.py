"""The long polls of the API: they end with the news that was waited for, and hold no thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from process_kit import WAIT_S
from runs_kit import ledger, looped, member, tables, write
from spakweb.ground.teams.models import Team, Token
from spakweb.store.hints import news
from spakweb.store.runs.models import Command, Run
from spakweb.work.teams import tokens

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


def waited(team: Team, path: str, happens: Any, at_once: bool = False) -> tuple[bool, Any]:
    """Whether the answer came before anything happened, and what it says. One that is to come `at_once` may
    take long on a busy machine, and far less than the 60 seconds that it would be held."""
    _, secret = tokens.make(member(team), "ci", 7)

    async def asks() -> Any:
        answer = await AsyncClient().get(path, headers={"authorization": f"Bearer {secret}"})
        if not answer.streaming:
            return answer.json()
        return json.loads(b"".join([piece async for piece in answer.streaming_content]))

    async def both() -> tuple[bool, Any]:
        asked = asyncio.create_task(asks())
        done, _ = await asyncio.wait([asked], timeout=40 if at_once else 1)
        await sync_to_async(happens)()
        return bool(done), await asyncio.wait_for(asked, WAIT_S)

    return looped(both)


def ends() -> None:
    Run.objects.update(state="failed", ended_at=timezone.now())
    news.publish("r1", Run.objects.get().count)


def stands() -> None:
    Run.objects.update(state="waiting")
    news.publish("r1", Run.objects.get().count)


@pytest.mark.parametrize(("happens", "state"), [(ends, "failed"), (stands, "waiting")])
def test_a_wait_ends_when_the_run_ends_or_needs_somebody(team: Team, happens: Any, state: str) -> None:
    held = ledger(team)
    write(held, 3)
    early, answer = waited(team, "/api/v1/teams/demo/runs/r1/?wait=60", happens)
    assert (early, answer["state"]) == (False, state)
    held.close()


def asks_another() -> None:
    Run.objects.update(summary={"waiting": {"id": "second"}})
    news.publish("r1", Run.objects.get().count)


@pytest.mark.parametrize("happens", [ends, asks_another])
@pytest.mark.parametrize("taken", [False, True])
def test_an_answer_that_is_not_taken_up_yet_is_waited_for(team: Team, happens: Any, taken: bool) -> None:
    """Who answers and waits would see the same question again, and answer it again."""
    held = ledger(team)
    write(held, 3)
    run = Run.objects.get()
    Run.objects.update(state="waiting", summary={"waiting": {"id": "first"}})
    at = timezone.now() if taken else None
    by = member(team, "bob")
    Command.objects.create(run=run, kind="answer", body={"of": "first", "text": "a"}, by=by, done_at=at)
    early, answer = waited(team, "/api/v1/teams/demo/runs/r1/?wait=60", happens, at_once=taken)
    assert early is taken
    if not taken:
        assert (answer["state"], answer["asks"]) in (("failed", ""), ("waiting", "second"))
    held.close()


def test_a_wait_for_records_ends_with_the_next_one(team: Team) -> None:
    held = ledger(team)
    write(held, 3)
    seen = Run.objects.get().count - 1
    path = f"/api/v1/teams/demo/runs/r1/records/?after={seen}&wait=60"
    early, answer = waited(team, path, lambda: write(held, 1))
    assert not early and [one["seq"] for one in answer["records"]] == [seen + 1]
    held.close()


def test_a_stranger_waits_for_nothing(team: Team) -> None:
    ledger(team).close()
    other = Team.objects.create(name="Other", slug="other")
    early, answer = waited(other, "/api/v1/teams/demo/runs/r1/?wait=60", lambda: None, at_once=True)
    assert early and answer["code"] == "web.404"


@pytest.mark.parametrize("records", ["", "records/"])
def test_who_may_not_look_any_more_is_told_nothing_of_the_run(team: Team, records: str) -> None:
    held = ledger(team)
    write(held, 3)
    seen = Run.objects.get().count - 1
    path = f"/api/v1/teams/demo/runs/r1/{records}?wait=60" + (f"&after={seen}" if records else "")
    early, answer = waited(team, path, lambda: Token.objects.update(revoked_at=timezone.now()))
    assert (early, answer["code"]) == (False, "web.404") and set(answer) == {"code", "detail"}
    held.close()
