"""The editor's addresses: who may ask, what a draft is, and requests that are none."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.urls import reverse

from spakweb.face.editor import presence
from spakweb.face.streams import stream
from spakweb.ground.database import appendonly
from spakweb.ground.teams.models import Membership, User
from spakweb.store.specs.models import Draft, Spec
from spakweb.websockets import websocket_urlpatterns
from spakweb.work.specs.actions import archive, save_version
from spakweb.work.teams.actions import remove

HERE = {"team": "kernel-tuners", "spec": "small"}


def address(name: str, **more: str) -> str:
    return reverse(name, kwargs={**HERE, **more})


def post(client: Client, url: str, body: Any) -> Any:
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return client.post(url, data, content_type="application/json", headers={"Accept": "application/json"})


def config(answer: Any) -> dict[str, Any]:
    text = (
        answer.content.decode().split('id="editor-config" type="application/json">')[1].split("</script>")[0]
    )
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.django_db
def test_the_page_has_all_that_its_scripts_need_and_a_nonce_for_styles(cast) -> None:
    answer = cast.client("bob").get(address("spak-editor"))
    found = config(answer)
    assert found["can_edit"] and found["text"] == cast.spec.head.text and found["base_version"] == 1
    assert f"'nonce-{found['nonce']}'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.django_db
def test_text_cannot_leave_its_place_in_the_page(cast) -> None:
    hostile = "// </script><script>alert(1)</script><!-- <script>\n" + cast.spec.head.text
    save_version(cast["alice"], cast.spec, hostile, 1)
    answer = cast.client("bob").get(address("spak-editor"))
    assert b"<script>alert(1)" not in answer.content
    assert config(answer)["text"] == hostile


@pytest.mark.django_db
def test_a_viewer_reads_and_asks_and_keeps_no_draft(cast) -> None:
    vera = cast.client("vera")
    assert not config(vera.get(address("spak-editor")))["can_edit"]
    assert post(vera, address("spak-editor-ask", what="analyse"), {"text": "task a {}"}).status_code == 200
    draft = {"text": "x", "base_version": 1}
    assert post(vera, address("spak-editor-draft"), draft).status_code == 403
    assert not Draft.objects.exists()


@pytest.mark.django_db
def test_for_a_stranger_there_is_nothing(cast) -> None:
    for name in ("spak-editor", "spak-editor-token"):
        assert cast.client("charlie").get(address(name)).status_code == 404
    for url in (address("spak-editor-draft"), address("spak-editor-ask", what="analyse")):
        assert post(cast.client("charlie"), url, {"text": "", "base_version": 1}).status_code == 404


@pytest.mark.django_db
def test_an_archived_spec_is_read_only(cast) -> None:
    archive(cast["alice"], cast.spec, True)
    assert not config(cast.client("bob").get(address("spak-editor")))["can_edit"]


@pytest.mark.django_db
def test_a_draft_is_kept_opened_again_and_thrown_away(cast) -> None:
    bob, url = cast.client("bob"), address("spak-editor-draft")
    assert "saved_at" in post(bob, url, {"text": "// mine\n", "base_version": 1}).json()
    found = config(bob.get(address("spak-editor")))
    assert found["text"] == "// mine\n" and found["draft"]
    assert config(cast.client("rita").get(address("spak-editor")))["draft"] is None
    dropped = post(bob, url, {"drop": True}).json()
    assert dropped["text"] == cast.spec.head.text and dropped["base_version"] == 1
    assert not Draft.objects.exists()


@pytest.mark.django_db
def test_late_news_of_what_was_saved_is_no_draft(cast) -> None:
    text = cast.spec.head.text + "// more\n"
    save_version(cast["bob"], cast.spec, text, 1)
    post(cast.client("bob"), address("spak-editor-draft"), {"text": text, "base_version": 1})
    assert not Draft.objects.exists()


@pytest.mark.django_db
def test_a_draft_on_an_old_version_says_so(cast) -> None:
    bob = cast.client("bob")
    post(bob, address("spak-editor-draft"), {"text": "// mine\n", "base_version": 1})
    save_version(cast["alice"], cast.spec, cast.spec.head.text + "// hers\n", 1)
    found = config(bob.get(address("spak-editor")))
    assert (found["base_version"], found["head_version"], found["head_author"]) == (1, 2, "alice")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"text": "\xff\xfe"}', 400),
        (b'{"text": "\xed\xa0\x80"}', 400),
        (b"[" * 100_000, 400),
        (json.dumps({"text": "x" * 300_000, "base_version": 1}), 413),
        (json.dumps({"text": "x" * 10_000_000}), 400),
        (json.dumps({"text": ["x"]}), 400),
    ],
    ids=["empty", "torn", "list", "no-utf8", "surrogate", "deep", "large", "huge", "no-text"],
)
def test_requests_that_are_none_change_nothing(cast, body: Any, status: int) -> None:
    for url in (address("spak-editor-ask", what="analyse"), address("spak-editor-draft")):
        answer = post(cast.client("bob"), url, body)
        assert answer.status_code in (status, 413), url
        assert answer.headers["Content-Type"].startswith("application/json")
        assert answer.json()["message"]
    assert not Draft.objects.exists() and Spec.objects.get(pk=cast.spec.pk).head.number == 1


@pytest.mark.django_db
@pytest.mark.parametrize("base", [0, -1, "1", None, 1.5, True, 10**9])
def test_a_draft_names_the_version_it_began_with(cast, base: Any) -> None:
    answer = post(cast.client("bob"), address("spak-editor-draft"), {"text": "x", "base_version": base})
    assert answer.status_code == (200 if base == 10**9 else 400)
    assert all(draft.base_version == 1 for draft in Draft.objects.all())


@pytest.mark.django_db
def test_a_refused_edit_is_an_answer(cast) -> None:
    ops = [{"op": "add_task", "name": "look"}]
    answer = post(
        cast.client("bob"), address("spak-editor-ask", what="edit"), {"text": cast.spec.head.text, "ops": ops}
    )
    assert answer.status_code == 200
    assert answer.json()["refused"]["code"].startswith("edit.")


@pytest.mark.django_db
def test_long_answers_are_compressed(cast) -> None:
    url = address("spak-editor-ask", what="analyse")
    body = json.dumps({"text": cast.spec.head.text})
    answer = cast.client("bob").post(
        url,
        body,
        content_type="application/json",
        headers={"Accept": "application/json", "Accept-Encoding": "gzip"},
    )
    assert json.loads(gzip.decompress(answer.content))["ok"]


# ---- presence

ROUTER = URLRouter(websocket_urlpatterns)
PATH = "/t/kernel-tuners/specs/small/presence/"


class Window:
    """A page's end of the WebSocket."""

    def __init__(self, user: Any, session: Any = None) -> None:
        scope = {"type": "websocket", "path": PATH, "raw_path": PATH.encode(), "headers": [], "user": user}
        scope["session"] = session
        self.wire = ApplicationCommunicator(ROUTER, scope)

    async def open(self) -> None:
        await self.wire.send_input({"type": "websocket.connect"})
        assert (await self.wire.receive_output())["type"] == "websocket.accept"

    async def news(self) -> Any:
        return json.loads((await self.wire.receive_output())["text"])

    async def close(self) -> None:
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wire.wait()


async def join(user: Any) -> Window:
    window = Window(user)
    await window.open()
    return window


async def until(page: Window, wanted: list[str]) -> None:
    """Read news until it names those people."""
    while True:
        news = await page.news()
        if news["type"] == "people" and [person["name"] for person in news["people"]] == wanted:
            return


@pytest.fixture
def lasting(transactional_db: None, request: pytest.FixtureRequest) -> Any:
    """The cast in tables that other connections see too."""
    request.addfinalizer(lambda: appendonly.remove(connection))  # so that the tables can be emptied
    appendonly.install(connection)
    return request.getfixturevalue("cast")


@pytest.mark.django_db(transaction=True)
def test_people_see_each_other_come_and_go_and_save(lasting) -> None:
    cast = lasting

    async def story() -> None:
        alice = await join(cast["alice"])
        await until(alice, ["alice"])
        bob = await join(cast["bob"])
        await until(alice, ["alice", "bob"])
        await until(bob, ["alice", "bob"])
        text = cast.spec.head.text + "// more\n"
        await database_sync_to_async(save_version)(cast["bob"], cast.spec, text, 1)
        assert await alice.news() == {"type": "saved", "version": 2, "base": 1, "by": "bob"}
        await bob.close()
        await until(alice, ["alice"])
        await alice.close()

    async_to_sync(story)()


@pytest.mark.django_db(transaction=True)
def test_whoever_leaves_the_team_hears_no_more(lasting) -> None:
    cast = lasting

    async def story() -> None:
        alice, bob = await join(cast["alice"]), await join(cast["bob"])
        await until(alice, ["alice", "bob"])
        await until(bob, ["alice", "bob"])
        member = Membership.objects.select_related("user", "team")
        await database_sync_to_async(lambda: remove(cast["alice"], member.get(user=cast["bob"])))()
        assert await bob.wire.receive_output() == {"type": "websocket.close", "code": 4403}
        await bob.close()
        await until(alice, ["alice"])
        await alice.close()

    async_to_sync(story)()


@pytest.mark.django_db(transaction=True)
def test_the_page_of_whoever_signs_out_is_closed(lasting) -> None:
    cast = lasting
    client, other = cast.client("bob"), cast.client("bob")

    async def story() -> None:
        page, stays = Window(cast["bob"], client.session), Window(cast["bob"], other.session)
        for window in (page, stays):
            await window.open()
            await until(window, ["bob"])
        await until(page, ["bob"])
        await database_sync_to_async(client.logout)()
        assert await page.wire.receive_output() == {"type": "websocket.close", "code": 4401}
        await page.close()
        await until(stays, ["bob"])
        await stays.close()

    async_to_sync(story)()


@pytest.mark.django_db(transaction=True)
def test_pages_that_say_who_is_here_count_as_streams(lasting, monkeypatch) -> None:
    cast = lasting
    monkeypatch.setattr(stream, "MOST_EACH", 2)
    monkeypatch.setattr(stream, "PLACE_TRIES", 1)

    async def story() -> None:
        first, second = await join(cast["bob"]), await join(cast["bob"])
        for window in (first, second):
            await until(window, ["bob"])
        assert stream.clients() == 2
        third, other = await join(cast["bob"]), await join(cast["alice"])
        assert await third.wire.receive_output() == {"type": "websocket.close", "code": 4429}
        await third.close()
        await until(other, ["alice", "bob"])
        await first.close()
        again = await join(cast["bob"])
        await until(again, ["alice", "bob"])
        for window in (second, other, again):
            await window.close()
        assert stream.clients() == 0 and not stream.hub()._each

    async_to_sync(story)()


@pytest.mark.django_db(transaction=True)
def test_what_another_process_took_away_is_found_before_the_next_word(lasting, monkeypatch) -> None:
    cast = lasting
    monkeypatch.setattr(presence, "ASK_S", 0.0)

    async def story() -> None:
        bob = await join(cast["bob"])
        await until(bob, ["bob"])
        await database_sync_to_async(User.objects.filter(pk=cast["bob"].pk).update)(is_active=False)
        await database_sync_to_async(save_version)(
            cast["alice"], cast.spec, cast.spec.head.text + "// more\n", 1
        )
        assert await bob.wire.receive_output() == {"type": "websocket.close", "code": 4403}
        await bob.close()

    async_to_sync(story)()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["charlie", ""])
def test_a_stranger_hears_nothing(lasting, name: str) -> None:
    async def story() -> None:
        page = await join(lasting[name] if name else AnonymousUser())
        closed = await page.wire.receive_output()
        assert closed == {"type": "websocket.close", "code": 4404 if name else 4401}

    async_to_sync(story)()
