"""Messages of a source's repository, by signed requests: what is taken, refused, known again and logged."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from signed_kit import FORMS, github, post, push, standard
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.web import bodies
from spakweb.store.folders.models import Folder
from spakweb.store.incoming.models import Received, Receiver
from spakweb.store.jobs.models import Job
from spakweb.store.sources.models import Source
from spakweb.work.folders import actions as folders
from spakweb.work.folders.queue import SYNC
from spakweb.work.incoming import actions
from spakweb.work.sources import actions as sources
from spakweb.work.sources import reading
from spakweb.work.teams import bearer

PAGE = "/t/kernel-tuners/sources/s/app/"


@pytest.fixture
def source(cast: Any) -> Source:
    return sources.add(cast["alice"], cast.team, "app", "https://git.example/app.git", ["main", "dev"])


@pytest.fixture
def opened(cast: Any, source: Source) -> tuple[str, str]:
    """The address and the secret."""
    receiver, secret = actions.open_for(cast["alice"], source)
    return reverse("spak-hook-receive", args=[receiver.key]), secret


@pytest.fixture
def folder(cast: Any, source: Source) -> Folder:
    made = folders.set_up(cast["alice"], source, "main", "specs")
    Job.objects.all().delete()
    return made


def wanted() -> bool:
    return Job.objects.filter(kind=SYNC, wanted_at__isnull=False).exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_push_to_the_branch_of_the_folder_asks_for_a_sync_once(
    form: str, opened: tuple[str, str], folder: Folder
) -> None:
    address, secret = opened
    body = push(pusher={"name": "x"}, unknown={"a": [1]})
    headers = FORMS[form](secret, body, "push" if form == "github" else "Push Hook")
    answer = post(address, body, headers)
    assert (answer.status_code, answer.json()["state"], wanted()) == (200, "done", True)
    Job.objects.all().delete()
    again = post(address, body, headers)
    assert (again.status_code, again.json()["state"], wanted()) == (200, "repeated", False)
    rows = list(Received.objects.values_list("state", "event", "ref", "commit"))
    event = headers.get("x-github-event") or headers["x-gitlab-event"]
    assert rows == [
        ("repeated", event, "refs/heads/main", "a" * 40),
        ("done", event, "refs/heads/main", "a" * 40),
    ]


def test_a_push_to_the_branch_whose_code_was_read_has_it_read_again(
    opened: tuple[str, str], source: Source
) -> None:
    def state(ref: str) -> str:
        body = push(ref=ref)
        return str(post(opened[0], body, FORMS["github"](opened[1], body, "push")).json()["state"])

    def reads() -> int:
        return Job.objects.filter(kind=reading.READ, key=str(source.pk), wanted_at__isnull=False).count()

    assert (state("refs/heads/main"), reads()) == ("ignored", 0)
    Source.objects.update(code="k", code_ref="refs/heads/dev")
    assert (state("refs/heads/main2"), reads()) == ("ignored", 0)
    assert (state("refs/heads/dev"), reads()) == ("done", 1)


def test_a_replay_under_another_id_is_known_by_its_body(opened: tuple[str, str], folder: Folder) -> None:
    """GitHub signs the body alone: whoever has a message could send it again with any id."""
    address, secret = opened
    body = push()
    assert post(address, body, github(secret, body, message="one")).json()["state"] == "done"
    assert post(address, body, github(secret, body, message="two")).json()["state"] == "repeated"


@pytest.mark.parametrize(
    ("event", "body", "state"),
    [("ping", b'{"zen": "x"}', "done"), ("push", push("refs/heads/dev"), "ignored"),
     ("push", push("refs/tags/v1"), "ignored"), ("issues", b"{}", "ignored"),
     ("push", push(commit="0" * 40), "done")],
)  # fmt: skip
def test_what_else_may_come(
    event: str, body: bytes, state: str, opened: tuple[str, str], folder: Folder
) -> None:
    address, secret = opened
    answer = post(address, body, github(secret, body, event))
    assert (answer.status_code, answer.json()["state"]) == (200, state)
    assert Received.objects.get().reason == answer.json()["reason"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/json"])
@pytest.mark.parametrize("form", [True, False])
def test_the_signed_body_alone_says_whether_it_is_a_form(
    form: bool, kind: str, opened: tuple[str, str], folder: Folder
) -> None:
    address, secret = opened
    body = urlencode({"payload": push().decode()}).encode() if form else push()
    assert post(address, body, github(secret, body), kind).json()["state"] == "done"
    assert wanted()


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [(b"", "application/json", "web.hook_body"), (b"{", "application/json", "web.hook_body"),
     (b"\xff", "application/json", "web.hook_body"), (b"[" * 100_000, "application/json", "web.hook_body"),
     (b'{"a": NaN}', "application/json", "web.hook_body"),
     (b"payload=", "application/json", "web.hook_body"),
     (b"a=b", "application/x-www-form-urlencoded", "web.hook_body"),
     (b"payload=%7B", "application/x-www-form-urlencoded", "web.hook_body"),
     (b"[]", "application/json", "web.hook_push"), (b"1", "text/plain", "web.hook_push"),
     (b'{"ref": 1}', "application/json", "web.hook_push"),
     (b'{"ref": "refs/heads/\\u0000"}', "application/json", "web.hook_push"),
     (b'{"ref": {"a": "b"}, "after": []}', "application/json", "web.hook_push")],
    ids=range(13),
)  # fmt: skip
def test_a_bad_body_is_a_problem_with_a_code_and_is_logged(
    body: bytes, kind: str, code: str, opened: tuple[str, str], folder: Folder
) -> None:
    address, secret = opened
    answer = post(address, body, github(secret, body), kind)
    assert answer.status_code in (400, 422) and answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == code and Received.objects.get().reason.startswith(code)
    assert not wanted()
    answer = post(address, body, github(secret, body), kind)  # what was refused is looked at again
    assert answer.json()["code"] == code


def test_without_the_secret_nobody_learns_whether_there_is_a_receiver(
    opened: tuple[str, str], folder: Folder, source: Source, cast: Any
) -> None:
    address, secret = opened
    nowhere = reverse("spak-hook-receive", args=["0" * 32])
    body = push()
    for headers in (github("wrong", body), standard("whsec_AAAA", body), {}, {"x-gitlab-token": "x"}):
        here, there = post(address, body, headers), post(nowhere, body, headers)
        assert here.status_code == there.status_code == 401
        assert here.content == there.content and here.json()["code"] == "web.hook_signature"
        assert {*here.headers} == {*there.headers}
    assert post(nowhere, body, github(secret, body)).status_code == 401
    actions.close(cast["alice"], source)
    assert post(address, body, github(secret, body)).content == here.content
    assert not wanted() and not Received.objects.exists()


def test_who_sends_wrong_ones_waits_and_right_ones_are_never_held_up(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bearer, "MOST_WRONG", 2)
    address, secret = opened
    body = push()
    assert [post(address, body, {}).status_code for _ in range(4)] == [401, 401, 429, 429]
    assert post(address, body, github(secret, body)).status_code == 200


def test_wrong_ones_are_logged_once_a_minute_and_leave_the_rest_of_the_log(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "LOGGED", 2)
    monkeypatch.setattr(actions, "WRONG", 2)
    monkeypatch.setattr(bearer, "MOST_WRONG", 100)
    address, secret = opened
    for body in (b"{}", b"[]"):
        post(address, body, github(secret, body, "issues"))
    now = clock.now()
    for minute in range(4):
        later = now + timedelta(minutes=2 * minute)
        monkeypatch.setattr(clock, "now", lambda later=later: later)
        for headers in (github("wrong", b"{}"), {}, {"x-gitlab-token": "x"}):
            assert post(address, b"{}", headers).status_code == 401
        assert Received.objects.filter(known_by="").count() == min(minute + 1, 2)
    assert Received.objects.filter(state="ignored").count() == 2


def test_late_and_repeated_ones_are_logged_once_a_minute_and_hold_nothing_up(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "PER_MINUTE", 3)
    address, secret = opened
    post(address, b"{}", {"x-gitlab-token": "wrong"})
    late = standard(secret, push(), "Push Hook", at=clock.now() - timedelta(hours=1))
    assert {post(address, push(), late).status_code for _ in range(5)} == {400}
    first = github(secret, push())
    states = [post(address, push(), first).json()["state"] for _ in range(6)]
    assert states == ["done", *["repeated"] * 5]
    other = push(n=1)
    assert post(address, other, github(secret, other)).status_code == 200
    assert sorted(Received.objects.values_list("state", flat=True)) == [
        "done", "done", "refused", "refused", "repeated"
    ]  # fmt: skip


def test_ignored_ones_and_replays_of_what_did_nothing_hold_nothing_up(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub signs no time: whoever has a message that was not done can send it for ever."""
    monkeypatch.setattr(actions, "PER_MINUTE", 3)
    address, secret = opened
    for number in range(8):  # more than are logged
        issue = json.dumps({"n": number}).encode()
        answer = post(address, issue, github(secret, issue, "issues"))
        assert (answer.status_code, answer.json()["state"]) == (200, "ignored")
    assert Received.objects.filter(state="ignored").count() == 3
    nameless = b'{"after": "x"}'  # a push without a ref is refused
    for _ in range(8):
        assert post(address, nameless, github(secret, nameless)).status_code == 422
    assert Received.objects.filter(state="refused").count() == 1
    for number, status in ((1, 200), (2, 200), (3, 429)):
        body = push(n=number)
        assert post(address, body, github(secret, body)).status_code == status
    later = clock.now() + timedelta(minutes=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    for _ in range(4):  # it came first in a minute that is over
        assert post(address, nameless, github(secret, nameless)).status_code == 422
    for number, status in ((4, 200), (5, 200), (6, 200), (7, 429)):
        body = push(n=number)
        assert post(address, body, github(secret, body)).status_code == status


def test_a_key_that_no_database_takes_is_no_receiver(opened: tuple[str, str]) -> None:
    """PostgreSQL refuses a NUL in a text, so it is not asked."""
    with CaptureQueriesContext(connection) as asked, pytest.raises(Refused) as why:
        actions.receive("a\0", {}, b"{}", lambda *_: pytest.fail("no receiver"))
    assert (why.value.code, list(asked)) == ("web.hook_signature", [])
    there, nowhere = (post(f"/api/v1/hooks/{key}/", b"{}", {}) for key in ("a%00", "0" * 32))
    assert (there.status_code, there.content) == (401, nowhere.content)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_message_of_another_time_is_refused_and_says_so(
    minutes: int, opened: tuple[str, str], folder: Folder
) -> None:
    address, secret = opened
    body = push()
    headers = standard(secret, body, "Push Hook", at=clock.now() + timedelta(minutes=minutes))
    answer = post(address, body, headers)
    assert (answer.status_code, answer.json()["code"], wanted()) == (400, "web.hook_time", False)
    assert ("ahead" if minutes > 0 else "ago") in Received.objects.get().reason


def test_a_rotated_secret_is_taken_for_a_day(
    cast: Any, source: Source, opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, old = opened
    new = actions.rotate(cast["alice"], source)
    assert new != old and new.startswith("whsec_")
    for number, secret in enumerate((old, new)):
        body = push(n=number)
        assert post(address, body, github(secret, body)).status_code == 200
    later = clock.now() + actions.OVERLAP
    monkeypatch.setattr(clock, "now", lambda: later)
    body = push(n=3)
    assert post(address, body, github(old, body)).status_code == 401
    assert post(address, body, github(new, body)).status_code == 200
    assert old not in str(list(Receiver.objects.values())) and new not in str(list(Receiver.objects.values()))


def test_a_second_rotation_ends_the_first_secret_at_once(
    cast: Any, source: Source, opened: tuple[str, str], folder: Folder
) -> None:
    address, leaked = opened
    between, new = (actions.rotate(cast["alice"], source) for _ in range(2))
    for secret, status in ((leaked, 401), (between, 200), (new, 200)):
        body = push(n=status, of=secret)
        assert post(address, body, github(secret, body)).status_code == status


def test_too_many_in_a_minute_are_refused_and_logged_once(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "PER_MINUTE", 3)
    address, secret = opened
    answers = []
    for number in range(6):
        body = push(n=number)
        answers.append(post(address, body, github(secret, body)))
    assert [one.status_code for one in answers] == [200, 200, 200, 429, 429, 429]
    assert answers[3].json()["code"] == "web.hook_rate" and answers[3]["Retry-After"] == "60"
    assert Received.objects.filter(state="refused").count() == 1


def test_the_log_is_bounded_and_what_was_done_is_remembered_longer(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "LOGGED", 2)
    monkeypatch.setattr(actions, "REMEMBERED", 3)
    monkeypatch.setattr(actions, "PER_MINUTE", 100)
    address, secret = opened
    bodies_ = [push(n=number) for number in range(5)]
    for body in bodies_:
        post(address, body, github(secret, body))
        post(address, body[:-1] + b" }", github(secret, body[:-1] + b" }", "issues"))
        post(address, body, {"x-gitlab-token": "wrong"})
    assert Received.objects.filter(state="done").count() == 3
    assert Received.objects.exclude(state="done").exclude(known_by="").count() == 2
    states = [post(address, body, github(secret, body)).json()["state"] for body in bodies_[2:]]
    assert states == ["repeated"] * 3


def test_a_huge_message_is_refused_before_it_is_kept(
    opened: tuple[str, str], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spakweb.face.api.views import incoming as views_incoming

    address, secret = opened
    monkeypatch.setattr(views_incoming, "HOOK_BYTES", 100)
    body = push(filler="x" * 200)
    answer = post(address, body, github(secret, body))
    assert (answer.status_code, answer.json()["code"]) == (413, "web.hook_size")
    assert not Received.objects.exists()


@pytest.mark.parametrize("said", [b"5000000", b""])
def test_the_server_reads_no_more_of_a_message_than_its_bound(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while True:
            read.append(await receive())

    async def receive() -> Any:
        return {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "path": "/api/v1/hooks/abc/",
        "headers": [(b"content-length", said)] if said else [],
    }
    asyncio.run(bodies.Bounded(app, most=1 << 30)(scope, receive, send))
    assert sent[0]["status"] == 413 and len(read) == (0 if said else 4)
    problem = json.loads(sent[1]["body"])
    assert problem["code"] == "web.hook_size" and problem["status"] == 413


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_only_posts(method: str, opened: tuple[str, str]) -> None:
    from django.test import Client

    answer = getattr(Client(), method)(opened[0])
    assert (answer.status_code, answer.json()["code"]) == (405, "web.405")


def test_admins_alone_open_rotate_and_close_it(cast: Any, source: Source) -> None:
    for act in (actions.open_for, actions.rotate, actions.close):
        with pytest.raises(PermissionDenied):
            act(cast["rita"], source)
    for act in (actions.rotate, actions.close):
        with pytest.raises(Refused, match="takes no pushes"):
            act(cast["alice"], source)
    actions.open_for(cast["alice"], source)
    with pytest.raises(Refused, match="already"):
        actions.open_for(cast["alice"], source)


def test_the_page_makes_the_address_and_shows_the_secret_once(
    cast: Any, source: Source, folder: Folder
) -> None:
    alice = cast.client("alice")
    page = alice.post(f"{PAGE}do/", {"do": "hook"}).content.decode()
    receiver = Receiver.objects.get()
    secret = actions.secret_of(receiver.salt)
    address = reverse("spak-hook-receive", args=[receiver.key])
    assert secret in page and f"http://testserver{address}" in page
    body = push()
    assert post(address, body, github(secret, body)).status_code == 200
    post(address, body, github("wrong", body))
    page = alice.get(PAGE).content.decode()
    assert secret not in page and "The folder is being synced." in page and "signature is wrong" in page
    assert address not in cast.client("rita").get(PAGE).content.decode()
    assert secret not in alice.post(f"{PAGE}do/", {"do": "hook_rotate"}).content.decode()
    assert alice.post(f"{PAGE}do/", {"do": "hook_remove"}).status_code == 302
    done = Event.objects.filter(action__startswith="source.hook").order_by("pk")
    assert list(done.values_list("action", flat=True)) == [
        "source.hook_made", "source.hook_rotated", "source.hook_removed"
    ]  # fmt: skip
    assert secret not in str(list(Event.objects.values()))
