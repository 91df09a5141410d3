"""What people with bad intent, or bad luck, send: refused in words, shown as words, or not done at all."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection

from process_kit import WAIT_S
from spakweb.ground.audit.models import Event
from spakweb.ground.database import appendonly
from spakweb.ground.teams.models import Invitation, Membership, Role, Team
from spakweb.store.specs.models import Draft, Spec, SpecVersion
from spakweb.work.specs import show
from spakweb.work.specs.actions import Stale, create_spec, save_version, set_tag
from spakweb.work.teams.actions import invite

HOSTILE = '"><img src=x onerror=alert(1)></textarea></script><script>alert(2)</script>'
TEAM = "/t/kernel-tuners"


def bring(cast: Any, *files: tuple[str, bytes], by: str = "bob") -> Any:
    given = [SimpleUploadedFile(name, data) for name, data in files]
    return cast.client(by).post(f"{TEAM}/specs/import/", {"file": given})


def test_hostile_names_are_words_on_every_page(cast: Any) -> None:
    spec = create_spec(cast["bob"], cast.team, HOSTILE, f"// {HOSTILE}\nTASK {HOSTILE} {{", HOSTILE)
    save_version(cast["bob"], spec, f"// {HOSTILE}\nTASK a {{ GOAL '{HOSTILE}' ", 1, HOSTILE)
    cast.team.name = HOSTILE
    cast.team.save()
    cast["bob"].first_name = HOSTILE
    cast["bob"].save()
    invite(cast["alice"], cast.team, "viewer", HOSTILE)
    here = f"{TEAM}/specs/{spec.slug}"
    pages = [
        *("/me/", f"{TEAM}/", f"{TEAM}/specs/", f"{TEAM}/specs/?q={HOSTILE}", f"{TEAM}/members/"),
        *(f"{TEAM}/audit/", f"{TEAM}/runs/", f"{TEAM}/specs/new/"),
        *(f"{here}/", f"{here}/history/", f"{here}/v/1/", f"{here}/compare/", f"{here}/edit/"),
    ]
    alice = cast.client("alice")
    for path in pages:
        answer = alice.get(path)
        assert answer.status_code == 200, path
        text = answer.content.decode()
        assert "<img src=x" not in text, path
        assert "<script>alert" not in text, path


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\0b", "a b"), ("x\u202ey", "x y"), ("line\none\u2028two", "line one two"), ("é\u200b", "é"),
     ("w" * 300, "w" * 80)],
)  # fmt: skip
def test_a_name_is_one_line_of_what_can_be_seen(cast: Any, name: str, shown: str) -> None:
    assert create_spec(cast["bob"], cast.team, name, "TASK a { }", name).name == shown
    form = {"name": name, "double": name}  # somebody who was asked and means a second one
    assert cast.client("bob").post(f"{TEAM}/specs/new/", form).status_code == 302


@pytest.mark.parametrize(
    "message",
    ["\ud800", "a\0b", "\u202e", 7, ["x"], {"a": 1}],
    ids=["half", "nul", "turn", "number", "list", "map"],
)
def test_any_message_is_kept_as_a_line(cast: Any, message: Any) -> None:
    body = json.dumps({"text": "TASK other { }", "base_version": 1, "message": message})
    answer = cast.client("bob").post(f"{TEAM}/specs/small/save/", body, content_type="application/json")
    assert answer.status_code == 201
    assert "\0" not in SpecVersion.objects.get(spec=cast.spec, number=2).message


def test_files_are_brought_all_or_none(cast: Any) -> None:
    answer = bring(cast, ("well.spak", b"TASK a { }"), ("...spak", b"TASK b { }"))
    assert answer.status_code == 400
    assert not Spec.objects.filter(slug="well").exists()


def test_files_that_import_one_another_come_in_their_order(cast: Any) -> None:
    main = b'IMPORT "base.spak"\nAGENT M LEVEL 1 {\n START -> a\n TASK a {\n'
    main += b' step s: tool.list_files { path: "." }\n'
    main += b"  NEXT { success -> b }\n }\n}\n"
    base = b'TASK b {\n step s: tool.list_files {\n path: "."\n }\n}\n'
    assert bring(cast, ("aaa.spak", main), ("base.spak", base)).status_code == 302
    assert Spec.objects.get(slug="aaa").head.facts["errors"] == 0


@pytest.mark.parametrize("name", ["../../etc/passwd.spak", "C:\\x\\evil.spak", f"{HOSTILE}.spak"])
def test_a_files_name_leads_nowhere(cast: Any, name: str) -> None:
    answer = bring(cast, (name, b"TASK a { }"))
    assert answer.status_code == 302
    assert "/" not in Spec.objects.latest("pk").slug


@pytest.mark.parametrize("question", ["analyse", "edit", "format", "complete", "compiled", "try"])
@pytest.mark.parametrize(
    "text",
    ["a\n" * 100_000, "{" * 100_000, "TASK a { " * 20_000, '"' * 100_000, "\r" * 50_000, "é𝛼\u2028" * 20_000],
    ids=["lines", "braces", "tasks", "quotes", "returns", "letters"],
)
def test_texts_that_are_none_have_an_answer(cast: Any, question: str, text: str) -> None:
    body = {"text": text, "at": len(text), "ops": [{"op": "set_start", "task": "a"}], "answers": []}
    where = f"{TEAM}/specs/small/edit/ask/{question}"
    answer = cast.client("vera").post(where, json.dumps(body), content_type="application/json")
    assert answer.status_code == 200, answer.content[:300]


def test_ten_megabytes_are_told_as_too_large(cast: Any) -> None:
    body = json.dumps({"text": "x" * 10_000_000})
    answer = cast.client("bob").post(
        f"{TEAM}/specs/small/edit/ask/analyse", body, content_type="application/json"
    )
    assert answer.status_code == 413
    assert "256 KB" in answer.json()["hint"]


@pytest.mark.parametrize(
    "said", ["database or disk is full", 'could not extend file "x": No space left on device']
)
@pytest.mark.parametrize("where", ["save/", "edit/draft"])
def test_a_full_disk_is_told(cast: Any, monkeypatch: pytest.MonkeyPatch, said: str, where: str) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise OperationalError(said)

    monkeypatch.setattr(Draft.objects, "update_or_create", full)
    monkeypatch.setattr(SpecVersion.objects, "create", full)
    body = {"text": "TASK other { }", "base_version": 1}
    answer = cast.client("bob").post(f"{TEAM}/specs/small/{where}", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (507, "web.disk")
    assert cast.spec.versions.count() == 1


def test_more_fields_than_a_form_has_change_nothing_else(cast: Any) -> None:
    """No role, team, author or right comes in by a form that does not ask for it."""
    bob = cast.client("bob")
    more = {"role": "admin", "team": cast.other_team.pk, "author": cast["alice"].pk, "is_superuser": "1",
            "spec": cast.other_spec.pk, "head": 1, "number": 99, "restored_from": 1}  # fmt: skip
    bob.post(f"{TEAM}/specs/new/", {**more, "name": "mine"})
    bob.post(f"{TEAM}/specs/small/save/", {**more, "text": "TASK other { }", "base_version": "1"})
    bob.post("/account/password/change/", {**more, "oldpassword": "a long secret"})
    cast["bob"].refresh_from_db()
    assert not cast["bob"].is_superuser
    assert Membership.objects.get(user=cast["bob"]).role == Role.EDITOR
    made = SpecVersion.objects.get(spec=cast.spec, number=2)
    assert (made.author, made.restored_from) == (cast["bob"], None)
    assert Spec.objects.get(slug="mine").team == cast.team
    assert cast.other_spec.versions.count() == 1


def test_an_invitation_is_used_once_and_only_lifts(cast: Any) -> None:
    _, secret = invite(cast["alice"], cast.team, "viewer")
    rita = cast.client("rita")
    assert rita.post(f"/join/{secret}/", {"role": "admin"}).status_code == 302
    assert Membership.objects.get(user=cast["rita"], team=cast.team).role == Role.REVIEWER
    assert cast.client("charlie").post(f"/join/{secret}/").status_code == 410
    assert not Membership.objects.filter(user=cast["charlie"], team=cast.team).exists()
    assert Invitation.objects.get().used_by == cast["rita"]


@pytest.mark.parametrize("secret", ["a" * 43, "%00", "..", "é" * 50, "a" * 5_000])
def test_guessed_invitations_say_the_same(cast: Any, secret: str) -> None:
    assert cast.client("charlie").get(f"/join/{secret}/").status_code in (404, 410)
    assert Team.objects.get(pk=cast.team.pk).memberships.count() == 4


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What they give, run in threads of their own."""
    gate, given = threading.Barrier(len(acts)), []

    def run(act: Callable[[], Any]) -> None:
        try:
            gate.wait(WAIT_S)
            given.append(act())
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    return given


@pytest.fixture
def lasting_cast(transactional_db: None, request: pytest.FixtureRequest) -> Any:
    """The cast in tables that other threads see too."""
    request.addfinalizer(lambda: appendonly.remove(connection))
    appendonly.install(connection)
    return request.getfixturevalue("cast")


@pytest.mark.django_db(transaction=True)
def test_two_saves_a_restore_and_a_tag_at_once(lasting_cast: Any) -> None:
    cast = lasting_cast
    first = cast.spec.versions.get()

    def save(name: str, text: str) -> Callable[[], Any]:
        return lambda: save_version(cast[name], Spec.objects.get(pk=cast.spec.pk), text, 1)

    given = at_once(
        save("alice", "TASK a { }"), save("bob", "TASK b { }"), save("bob", "TASK c { }"),
        *[lambda: set_tag(cast["rita"], first, "stable")] * 3,
    )  # fmt: skip
    assert len(given) == 6
    assert sum(isinstance(item, Stale) for item in given) == 2
    assert list(cast.spec.versions.values_list("number", flat=True)) == [2, 1]
    assert cast.spec.tags.count() == 1


@pytest.mark.parametrize("method", ["get", "post"])
def test_another_hosts_name_is_refused_with_a_page(client: Any, method: str) -> None:
    answer = getattr(client, method)(
        "/account/login/", headers={"host": "evil.example", "referer": "http://a"}
    )
    assert answer.status_code == 400
    assert b"Invalid request" in answer.content


def test_an_error_page_asks_nothing_of_a_database_that_fails(
    cast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise OperationalError("could not connect")

    alice = cast.client("alice")
    alice.raise_request_exception = False
    monkeypatch.setattr("django.db.models.query.QuerySet.get", fails)
    monkeypatch.setattr("django.db.models.query.QuerySet._fetch_all", fails)
    answer = alice.get(f"{TEAM}/")
    assert answer.status_code == 500
    assert b"Something went wrong on our side" in answer.content


@pytest.mark.parametrize("back", ["page", "\ufffd", "teams:x", "", "/\r\nX: 1"])
def test_the_theme_leads_back_to_no_view_by_its_name(client: Any, db: None, back: str) -> None:
    assert client.post("/theme/", {"theme": "dark", "next": back}).status_code == 302


@pytest.mark.parametrize("what", ["draft", "ask/analyse"])
def test_a_form_where_json_is_wanted_is_refused(cast: Any, what: str) -> None:
    answer = cast.client("bob").post(f"{TEAM}/specs/small/edit/{what}", {"text": "TASK a { }"})
    assert (answer.status_code, answer.json()["code"]) == (400, "web.request")


@pytest.mark.findings("A10")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{TEAM}/specs/small/save/", "web.json"),
        (f"{TEAM}/specs/small/patches/propose/", "web.json"),
        (f"{TEAM}/specs/small/edit/draft", "web.request"),
        ("/api/v1/teams/kernel-tuners/specs/", "web.request"),
    ],
)
def test_a_member_that_comes_twice_is_refused(cast: Any, path: str, code: str) -> None:
    body = '{"name": "a", "text": "task A { }", "base_version": 1, "\\u0074ext": "task B { }"}'
    answer = cast.client("bob").post(
        path, body, content_type="application/json", headers={"accept": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert "'text' twice" in (answer.json().get("message") or answer.json()["detail"])
    assert cast.team.specs.count() == 1 and cast.spec.versions.count() == 1


def test_who_sent_a_form_signed_out_comes_back_to_its_page(cast: Any) -> None:
    sent = {"referer": f"http://testserver{TEAM}/specs/new/?a=1"}
    answer = cast.client().post(f"{TEAM}/specs/import/", headers=sent)
    assert answer["Location"] == f"/account/login/?next={TEAM}/specs/new/%3Fa%3D1"
    for page in ("", "http://evil.example/x", "http://[", "javascript:alert(1)"):
        answer = cast.client().post(f"{TEAM}/specs/import/", headers={"referer": page})
        assert answer["Location"] == "/account/login/?next=/"


def test_where_a_form_leads_there_is_a_page_that_says_so(cast: Any) -> None:
    answer = cast.client("bob").get(f"{TEAM}/specs/small/save/")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert b"This address has no page" in answer.content


@pytest.mark.parametrize("path", ["/healthz", "/me/", f"{TEAM}/specs/", f"{TEAM}/specs/small/v/1/text/"])
def test_head_is_asked_as_get_is_and_no_shared_cache_keeps_it(cast: Any, path: str) -> None:
    answer = cast.client("vera").head(path)
    assert answer.status_code == 200
    assert "private" in answer["Cache-Control"]


def test_too_many_tries_have_a_page_that_says_so(client: Any, rf: Any) -> None:
    from allauth.core.ratelimit import respond_429

    answer = respond_429(rf.get("/account/login/"))
    assert answer.status_code == 429
    assert b"Too many attempts" in answer.content


def test_a_locked_out_sign_in_is_answered_429(cast: Any) -> None:
    client = cast.client()
    codes = [
        client.post("/account/login/", {"login": "bob", "password": "wrong"}).status_code for _ in range(12)
    ]
    assert codes[0] == 200 and codes[-1] == 429, codes
    answer = client.post("/account/login/", {"login": "bob", "password": "a long secret"})
    assert answer.status_code == 429 and b"Too many attempts" in answer.content


@pytest.mark.findings("A10")
def test_wrong_passwords_from_elsewhere_do_not_lock_a_person_out(cast: Any) -> None:
    def tried(address: str, password: str) -> Any:
        body = {"login": "bob", "password": password}
        return cast.client().post("/account/login/", body, REMOTE_ADDR=address)

    assert [tried("192.0.2.7", "wrong").status_code for _ in range(6)][-1] == 429
    assert tried("192.0.2.7", "a long secret").status_code == 429
    assert tried("192.0.2.8", "a long secret").status_code == 302, "the right one, from somewhere else"


@pytest.mark.findings("A10")
def test_many_addresses_guess_a_hundred_times_an_hour(cast: Any) -> None:
    def tried(place: int, password: str = "wrong") -> Any:
        body = {"login": "bob", "password": password}
        return cast.client().post("/account/login/", body, REMOTE_ADDR=f"198.51.100.{place}")

    assert {tried(place).status_code for place in range(100)} == {200}
    locked = tried(200, "a long secret")
    assert locked.status_code == 429 and int(locked["Retry-After"]) > 3000
    assert (
        cast.client().post("/account/login/", {"login": "rita", "password": "a long secret"}).status_code
        == 302
    )


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_locked_out_sign_in_says_when_to_try_again(
    cast: Any, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    client, started = cast.client(), time.time()

    def tried(seconds: float, password: str = "wrong") -> Any:
        monkeypatch.setattr(time, "time", lambda: started + seconds)
        body = {"login": "bob", "password": password}
        return client.post("/account/login/", body, headers={"accept": accept})

    assert not {tried(at).status_code for at in range(0, 25, 5)} - {200, 400}
    answer = tried(30)
    assert answer.status_code == 429 and answer["Retry-After"] == "270", (
        "five in five minutes, the first at 0"
    )
    assert tried(299)["Retry-After"] == "1"
    assert tried(300.5, "a long secret").status_code in (200, 302), "the time that was named is enough"
    assert "_auth_user_id" in client.session


def test_every_answer_of_too_many_tries_says_when_to_try_again(db: None, client: Any) -> None:
    answers = [client.post("/account/password/reset/", {"email": "who@example.org"}) for _ in range(7)]
    assert answers[-1].status_code == 429 and answers[-1]["Retry-After"] == "60"


@pytest.mark.parametrize(("ticked", "days"), [({}, ""), ({"remember": "on"}, 1209600)])
def test_who_does_not_tick_it_is_signed_out_with_the_browser(
    cast: Any, ticked: dict[str, str], days: object
) -> None:
    client = cast.client()
    client.post("/account/login/", {"login": "bob", "password": "a long secret", **ticked})
    assert client.cookies["sessionid"]["max-age"] == days


@pytest.mark.parametrize(
    ("host", "offered"),
    [("localhost:8000", True), ("127.0.0.1:8000", False), ("[::1]:8000", False)],
)
def test_passkeys_are_offered_where_browsers_have_them(
    cast: Any, settings: Any, host: str, offered: bool
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert (
        b"passkey_login" in cast.client().get("/account/login/", headers={"host": host}).content
    ) == offered
    shown = cast.client("bob").get("/me/", headers={"host": host}).content
    assert (b"/account/2fa/webauthn/add/" in shown) == offered
    assert (b"http://localhost" in shown) != offered


def test_changes_of_how_one_signs_in_are_events(cast: Any) -> None:
    from allauth.mfa.models import Authenticator
    from allauth.mfa.signals import authenticator_added

    bob = cast.client("bob")
    new = "another long secret"
    bob.post(
        "/account/password/change/", {"oldpassword": "a long secret", "password1": new, "password2": new}
    )
    made = Authenticator(user=cast["bob"], type="totp", data={})
    authenticator_added.send(Authenticator, request=None, user=cast["bob"], authenticator=made)
    told = Event.objects.filter(team=None, actor=cast["bob"]).values_list("action", "thing")[:2]
    assert list(told) == [("account.factor_added", "TOTP Authenticator"), ("account.password_changed", "")]
    shown = bob.get("/me/").content
    assert b"Added: TOTP Authenticator" in shown and b"Password changed" in shown


def test_a_second_factor_asks_for_no_proven_address(cast: Any) -> None:
    bob = cast.client("bob")
    bob.post("/account/reauthenticate/", {"password": "a long secret"})
    assert bob.get("/account/email/").status_code == 200  # from here on the address is known, and not proven
    assert b"authenticator_secret" in bob.get("/account/2fa/totp/activate/").content


def test_an_issuer_that_is_not_there_is_told(cast: Any, settings: Any) -> None:
    app = {"provider_id": "oidc", "name": "SSO", "client_id": "a", "secret": "b",
           "settings": {"server_url": "http://127.0.0.1:1"}}  # fmt: skip
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    answer = cast.client().post("/account/oidc/oidc/login/")
    assert answer.status_code == 502
    assert b"web.oidc" in answer.content


def test_pages_of_many_lines_are_of_bounded_length(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"MOST_LINES": 20, "MOST_ROWS": 10, "MOST_CHANGES": 5}.items():
        monkeypatch.setattr(show, name, most)
    tasks = "".join(f"TASK t{number} {{ }}\n" for number in range(60))
    save_version(cast["bob"], cast.spec, tasks, 1)
    alice, here = cast.client("alice"), f"{TEAM}/specs/small"
    assert b"40 more lines; the export has all" in alice.get(f"{here}/v/2/").content
    shown = alice.get(f"{here}/compare/").content.decode()
    assert "more rows not shown" in shown
    assert "more changes not shown" in shown
    assert shown.count("<code>TASK t") == 10
    stale = alice.post(f"{here}/save/", {"text": tasks * 2, "base_version": "1"})
    assert (stale.status_code, b"more rows not shown" in stale.content) == (409, True)


def test_a_persons_name_is_one_line_of_what_can_be_seen(cast: Any) -> None:
    cast["bob"].first_name = "Bob\u202e\0\nX"
    assert str(cast["bob"]) == "Bob X"
    cast["bob"].first_name = "\u202e"
    assert str(cast["bob"]) == "bob"
