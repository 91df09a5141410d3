"""Tokens of programs: making and revoking them, whom they stand for, and what bad ones get."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from run_rows_kit import begun, with_file
from spakweb.face.api import reading
from spakweb.face.api.shapes import common as shapes
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.logs.redact import Plain
from spakweb.ground.teams.models import Membership, Role, Token
from spakweb.store.runs.models import Run, State
from spakweb.work.teams import bearer, tokens
from token_kit import LIST, asked_again, program


@pytest.fixture
def secret(cast: Any) -> str:
    """A token of bob's, an editor, for all his teams."""
    return tokens.make(cast["bob"], "nightly", 7)[1]


# ---- what one is


def test_a_token_is_known_by_its_form() -> None:
    found = {tokens.fresh() for _ in range(50)}
    assert len(found) == 50 and all(tokens.well_formed(one) for one in found)
    for one in found:
        other = "A" if one[20] != "A" else "B"
        assert not tokens.well_formed(one[:20] + other + one[21:]), "the check does not see a changed letter"
    assert tokens.within(f"a={min(found)}&b=1") and not tokens.within("q=spak_tuner")


def test_only_its_hash_is_kept(cast: Any, secret: str) -> None:
    row = Token.objects.values().get()
    assert len(row["secret_hash"]) == 64
    kept = json.dumps([row, *Event.objects.values()], default=str)
    assert secret not in kept and secret[5:30] not in kept


# ---- the pages of a person


@pytest.fixture
def bob(cast: Any) -> Client:
    """Signed in, and asked for the password just now."""
    return asked_again(cast, "bob")


def test_it_is_made_shown_once_and_revoked(cast: Any, bob: Client) -> None:
    assert bob.get("/me/tokens/new/").status_code == 200
    answer = bob.post("/me/tokens/new/", {"name": "ci", "days": "30", "team": "kernel-tuners"})
    assert "no-store" in answer["Cache-Control"]
    secret = answer.context["secret"]
    shown = answer.content.decode()
    assert shown.count(secret) == 2 and f'Bearer $SPAK_TOKEN&quot; http://testserver{LIST}"' in shown
    account = bob.get("/me/").content.decode()
    assert secret not in account and "never used" in account and "Token created: ci" in account
    assert program(secret).get(LIST).status_code == 200
    assert f"last used {timezone.now():%Y-%m-%d}" in bob.get("/me/").content.decode()
    made = Token.objects.get()
    assert made.team == cast.team and 29 < (made.ends_at - timezone.now()).days + 1 <= 30
    assert bob.post(f"/me/tokens/{made.pk}/revoke/").status_code == 302
    assert program(secret).get(LIST).status_code == 401
    assert b"/revoke/" not in bob.get("/me/").content


def test_who_was_not_asked_for_the_password_makes_none(cast: Any) -> None:
    """Asked while the form was sent, it goes on from there."""
    client = cast.client("bob")
    for answer in (
        client.get("/me/tokens/new/"),
        client.post("/me/tokens/new/", {"name": "ci", "days": "7"}),
    ):
        assert (answer.status_code, answer["Location"][:24]) == (302, "/account/reauthenticate/")
    assert not Token.objects.exists()
    answer = client.post(answer["Location"], {"password": "a long secret", "next": "/me/tokens/new/"})
    assert tokens.well_formed(answer.context["secret"])


ODD_DAYS = ("", "8", "-7", "\u0667", "9" * 5000)


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"name": "", "days": "7"}, 400, "web.name"),
        ({"name": "\0\u202e", "days": "7"}, 400, "web.name"),
        *(({"name": "a", "days": odd}, 400, "web.token_days") for odd in ODD_DAYS),
        ({"name": "ci", "days": "7", "team": "next-door"}, 404, ""),
        ({"name": "ci", "days": "7", "team": "kernel-tuners\0"}, 404, ""),
    ],
)  # fmt: skip
def test_what_makes_none(cast: Any, bob: Client, form: dict[str, str], status: int, code: str) -> None:
    answer = bob.post("/me/tokens/new/", form)
    assert answer.status_code == status
    assert not code or answer.context["why"].code == code
    assert not Token.objects.exists()


def test_a_person_has_so_many(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST", 2)
    first, _ = tokens.make(cast["bob"], "one", 7)
    tokens.make(cast["bob"], "two", 7)
    with pytest.raises(Refused) as why:
        tokens.make(cast["bob"], "three", 7)
    assert (why.value.code, why.value.status) == ("web.token_many", 409)
    tokens.revoke(first)
    tokens.make(cast["bob"], "three", 7)


def test_nobody_revokes_anothers(cast: Any, secret: str) -> None:
    made = Token.objects.get()
    assert cast.client("alice").post(f"/me/tokens/{made.pk}/revoke/").status_code == 404
    assert program(secret).get(LIST).status_code == 200


def test_what_happens_to_one_is_told(cast: Any, secret: str) -> None:
    """The person, and the admins of each team that it reaches."""
    for _ in range(2):
        program(secret, x_forwarded_for="6.6.6.6").get(LIST)
    tokens.revoke(Token.objects.get())
    tokens.revoke(Token.objects.get())
    want = [("token.revoked", None), ("token.first_used", "127.0.0.1"), ("token.made", None)]
    for team in (None, cast.team):
        rows = Event.objects.filter(team=team, actor=cast["bob"], action__startswith="token.")
        assert list(rows.values_list("action", "ip")) == want
        assert {row.thing for row in rows} == {"nightly"}


def test_a_day_of_use_is_one_write(cast: Any, secret: str, django_assert_num_queries: Any) -> None:
    program(secret).get(LIST)
    with django_assert_num_queries(4):  # the token, the team, the role, the runs
        assert program(secret).get(LIST).status_code == 200
    Token.objects.update(used_on=timezone.now().date() - timedelta(days=3))
    program(secret).get(LIST)
    assert Token.objects.get().used_on == timezone.now().date()
    assert Event.objects.filter(action="token.first_used", team=None).count() == 1


def test_a_full_disk_keeps_nobody_from_looking(
    cast: Any, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise DatabaseError("disk is full")

    monkeypatch.setattr(tokens, "_note", full)
    assert program(secret).get(LIST).status_code == 200


# ---- whom it stands for


def test_it_sees_what_its_person_sees_and_no_more(cast: Any, secret: str) -> None:
    """A viewer's rights; one team, if it names one; nothing when the person is out."""
    Membership.objects.create(team=cast.other_team, user=cast["bob"], role=Role.ADMIN)
    next_door = "/api/v1/teams/next-door/runs/"
    begun(cast.other_team, cast.other_spec.head, "theirs")
    one = tokens.make(cast["bob"], "one", 7, cast.team)[1]
    found = [
        program(one).get(path).status_code
        for path in (LIST, next_door, "/t/next-door/runs/theirs/events", "/api/v1/teams/no/runs/")
    ]
    assert found == [200, 404, 404, 404]
    assert program(secret).get(next_door).status_code == 200
    Membership.objects.filter(user=cast["bob"], team=cast.team).delete()
    assert [program(given).get(LIST).status_code for given in (one, secret)] == [404, 404]


def revoked(cast: Any) -> None:
    tokens.revoke(Token.objects.get())


def ended(cast: Any) -> None:
    Token.objects.update(ends_at=timezone.now())


def closed(cast: Any) -> None:
    cast["bob"].is_active = False
    cast["bob"].save()


@pytest.mark.parametrize(
    ("happens", "word"), [(revoked, "was revoked"), (ended, "ended on"), (closed, "is closed")]
)
def test_one_that_is_over(cast: Any, secret: str, happens: Any, word: str) -> None:
    happens(cast)
    answer = program(secret).get(LIST)
    assert (answer.status_code, answer.json()["code"], word in answer.json()["detail"]) == (
        401,
        "web.token",
        True,
    )
    assert word in answer["WWW-Authenticate"] and 'error="invalid_token"' in answer["WWW-Authenticate"]


def test_it_outlives_the_password_and_needs_no_second_factor(cast: Any, secret: str) -> None:
    cast["bob"].set_password("another long secret")
    cast["bob"].save()
    assert program(secret).get(LIST).status_code == 200


# ---- what is sent


@pytest.mark.parametrize(
    "given",
    ["", "spak_", "spak_" + "A" * 49, "\u00e9" * 54, "x" * 60_000, "spak_" + "\0" * 49, "a b c", "SECRET ",
     "SECRET,Bearer SECRET", '"SECRET"', "SECRETx", "' OR 1=1 --"],
)  # fmt: skip
def test_what_is_no_token(cast: Any, secret: str, given: str) -> None:
    given = given.replace("SECRET", secret)
    answer = program(given).get(LIST)
    if given.strip() == secret:
        assert answer.status_code == 200  # a blank behind it is no other token
        return
    assert (answer.status_code, answer.json()["code"]) == (401, "web.token")
    assert not answer.cookies and secret not in answer.content.decode() + str(answer.headers)


def test_one_that_was_never_made(cast: Any) -> None:
    assert b"not known here" in program(tokens.fresh()).get(LIST).content


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_a_word_in_any_letters(cast: Any, secret: str, scheme: str) -> None:
    assert Client(headers={"authorization": f"{scheme} {secret}"}).get(LIST).status_code == 200


def test_another_scheme_is_anothers(cast: Any, secret: str) -> None:
    """A proxy may ask for its own password: the session counts, and no token is read from there."""
    client = cast.client("bob")
    assert client.get(LIST, headers={"authorization": f"Basic {secret}"}).status_code == 200
    assert Client().get(LIST, headers={"authorization": f"Token {secret}"}).status_code == 401


def test_a_session_beside_it_counts_for_nothing(cast: Any, secret: str) -> None:
    """Neither its teams, nor its rights, nor itself when the token is bad; and it stays as it was."""
    charlie = cast.client("charlie")
    own = "/api/v1/teams/next-door/runs/"
    header = {"authorization": f"Bearer {secret}"}
    assert charlie.get(own, headers=header).status_code == 404
    answer = charlie.get(LIST, headers=header)
    assert (answer.status_code, len(answer.cookies)) == (200, 0)
    assert charlie.get(own, headers={"authorization": "Bearer x"}).status_code == 401
    assert charlie.get("/me/", headers=header).status_code == 403
    assert charlie.get("/me/").status_code == charlie.get(own).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
@pytest.mark.parametrize(
    "path",
    [
        "/t/kernel-tuners/runs/r/export/",
        "/me/tokens/new/",
        "/account/login/",
        "/t/kernel-tuners/specs/small/save/",
    ],
)
def test_it_changes_nothing(cast: Any, secret: str, method: str, path: str) -> None:
    answer = getattr(program(secret), method)(path)
    assert (answer.status_code, answer.json()["code"]) == (403, "web.token_scope")
    assert 'error="insufficient_scope"' in answer["WWW-Authenticate"] and not answer.cookies


def test_a_head_has_no_body(cast: Any, secret: str) -> None:
    begun(cast.team, cast.spec.head, "r1")
    for path in (LIST, "/t/kernel-tuners/runs/r1/export/"):
        answer = program(secret).head(path)
        assert (answer.status_code, answer.content) == (200, b"")
    assert program(secret).head("/t/kernel-tuners/runs/r1/events").status_code == 405


def test_errors_are_told_in_json(cast: Any, secret: str) -> None:
    assert program(secret).get("/no/such/place/").json()["code"] == "web.404"
    Run.objects.create(team=cast.team, key="empty", name="empty")
    answer = program(secret).get("/t/kernel-tuners/runs/empty/export/")
    assert (answer.status_code, answer.json()["code"]) == (409, "web.run_empty")
    client = program(secret)
    client.raise_request_exception = False
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shapes, "RUN_COLUMNS", ("no-such-column",))
        answer = client.get(LIST)
    assert (answer.status_code, answer.json()["code"]) == (500, "web.500")
    assert secret not in answer.content.decode()


def test_wrong_ones_are_held_up_and_right_ones_are_not(
    cast: Any, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bearer, "WINDOW_S", 10**9)  # no minute ends while this runs
    found = [program("wrong").get(LIST).status_code for _ in range(bearer.MOST_WRONG + 3)]
    assert found == [401] * bearer.MOST_WRONG + [429] * 3
    answer = program(tokens.fresh()).get(LIST)
    assert (answer.status_code, answer.json()["code"]) == (429, "web.token_rate")
    assert 0 < int(answer["Retry-After"]) <= bearer.WINDOW_S
    assert program(secret).get(LIST).status_code == 200
    assert program("wrong").get(LIST, REMOTE_ADDR="10.0.0.9").status_code == 401


def test_wrong_ones_are_wrong_without_a_cache_too(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*given: Any, **named: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(cache, "add", away)
    assert program("wrong").get(LIST).status_code == 401


@pytest.mark.parametrize("path", [LIST, "/t/kernel-tuners/runs/", "/account/login/"])
def test_one_in_an_address_is_refused(cast: Any, secret: str, path: str) -> None:
    """Also beside a session: it stands in a history now."""
    for client in (Client(), cast.client("bob")):
        answer = client.get(path, {"access_token": secret})
        assert (answer.status_code, answer.json()["code"]) == (401, "web.token")
        assert secret not in answer.content.decode() and "Revoke it" in answer.json()["hint"]


def test_no_log_has_one(cast: Any, secret: str) -> None:
    try:
        raise ValueError(f"at {secret}!")
    except ValueError as error:
        record = logging.LogRecord("x", 40, "x", 1, "GET /?t=%s", (secret,), (type(error), error, None))
    line = Plain("{levelname} {message}", style="{").format(record)
    assert line.startswith("ERROR GET /?t=spak_[token]") and "at spak_[token]!" in line and secret not in line


def test_the_platform_logs_that_way(settings: Any) -> None:
    formats = settings.LOGGING["formatters"]
    assert {made["()"] for made in formats.values()} == {
        "spakweb.ground.logs.redact.Plain",
        "spakweb.ground.logs.lines.Json",
    }
    assert {handler["formatter"] for handler in settings.LOGGING["handlers"].values()} <= set(formats)


# ---- what programs find runs by


def keys(answer: Any) -> list[str]:
    return [run["key"] for run in answer.json()["runs"]]


def test_the_list_goes_from_page_to_page(cast: Any, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 2)
    made = [begun(cast.team, cast.spec.head, f"r{number}", state="failed") for number in range(5)]
    Run.objects.create(team=cast.team, key="other", name="other", state="succeeded")
    path, seen = f"{LIST}?state=failed&spec=small", []
    while path:
        answer = program(secret).get(path)
        seen.append(keys(answer))
        path = answer.json()["next"]
        Run.objects.create(team=cast.team, key=f"new{len(seen)}", name="new", state="failed")
    assert seen == [["r4", "r3"], ["r2", "r1"], ["r0"]]
    row = program(secret).get(f"{LIST}?q=r4").json()["runs"][0]
    assert (row["spec"], row["version"], row["state"]) == ("small", made[4].version.number, "failed")
    assert program(secret).get(f"{LIST}?before=none").status_code == 404


def test_the_list_tells_leases_by_the_time_that_hosts_agree_about(
    cast: Any, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The date of this host is an hour ahead."""
    there = timezone.now() - timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: there)
    held = {"holder": "h", "lease_until": there + timedelta(seconds=9)}
    Run.objects.create(team=cast.team, key="r1", name="r1", state=State.RUNNING, **held)
    assert [run["state"] for run in program(secret).get(LIST).json()["runs"]] == ["running"]


@pytest.mark.parametrize(
    "query",
    [
        "state=finished",
        "mine=yes",
        "version=one",
        "page=2",
        "trials=2",
        "state=failed&colour=red",
        "colour=",
        "=",
    ],
)
def test_a_filter_that_is_none_is_refused(cast: Any, secret: str, query: str) -> None:
    answer = program(secret).get(f"{LIST}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "web.run_filter")


def test_a_text_that_no_run_can_have_finds_none(cast: Any, secret: str) -> None:
    begun(cast.team, cast.spec.head, "x" * 40)
    assert keys(program(secret).get(f"{LIST}?q={'x' * 40}")) == ["x" * 40]
    assert keys(program(secret).get(f"{LIST}?q={'x' * 200}")) == []


def test_all_of_a_run_is_had(cast: Any, secret: str) -> None:
    run = begun(cast.team, cast.spec.head, "r1")
    with_file(run, b"kept")
    here = "/t/kernel-tuners/runs/r1"
    client = program(secret)
    (file,) = client.get(f"{LIST}r1/files/").json()["files"]
    assert client.get(f"{here}/files/{file['key']}").content == b"kept"
    assert client.get(f"{here}/export/").content.startswith(b'{"')
    for last in ("log/", "report/"):
        assert client.get(f"{here}/{last}").status_code == 200
    answer = client.get(f"{here}/export/", headers={"range": "bytes=0-3"})
    assert answer.status_code == 200 and answer.content.count(b"\n") >= 2  # the whole of it, as it says


def test_hostile_names_are_words(cast: Any, bob: Client) -> None:
    name = '"><img src=x onerror=alert(1)>'
    cast.team.name = name
    cast.team.save()
    pages = [bob.get("/me/tokens/new/"), bob.post("/me/tokens/new/", {"name": name, "days": "x"})]
    pages += [
        bob.post("/me/tokens/new/", {"name": name, "days": "7", "team": cast.team.slug}),
        bob.get("/me/"),
    ]
    for page in pages:
        assert b"<img" not in page.content and b"&lt;img src=x" in page.content
