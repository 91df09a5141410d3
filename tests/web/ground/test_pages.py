"""What pages and forms answer: saving by JSON, uploads, filters, exports, errors, invitations."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Invitation, Role
from spakweb.ground.web.error_pages import server_error
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import Spec
from spakweb.work.operate import demo
from spakweb.work.teams import actions as teams

MORE = 'task A { step b: tool.run { cmd: "true" } }\n'
JSON = {"content_type": "application/json", "headers": {"Accept": "application/json"}}


def save(cast: Any, body: Any, by: str = "alice") -> Any:
    url = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    return cast.client(by).post(url, body if isinstance(body, str) else json.dumps(body), **JSON)


def test_saving_as_a_script(cast: Any) -> None:
    made = save(cast, {"text": MORE, "base_version": 1, "message": "Mend"})
    assert made.status_code == 201
    assert made.json()["version"] == 2
    same = save(cast, {"text": MORE, "base_version": 2})
    assert (same.status_code, same.json()["unchanged"]) == (200, True)
    stale = save(cast, {"text": MORE + "// more\n", "base_version": 1}, "bob")
    assert stale.status_code == 409
    assert {"base", "head", "mine", "merge", "head_version", "message"} <= set(stale.json())
    assert "alice saved version 2" in stale.json()["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "web.json"),
        ("[]", 400, "web.json"),
        ("[" * 100_000, 400, "web.json"),
        ({"base_version": 1}, 400, "web.no_text"),
        ({"text": 5, "base_version": 1}, 400, "web.no_text"),
        ({"text": "a\0", "base_version": 1}, 400, "web.text"),
        ({"text": "x" * 300_000, "base_version": 1}, 413, "web.text_size"),
        ({"text": "<<<<<<< yours\n", "base_version": 1}, 400, "web.markers"),
        ({"text": MORE, "base_version": "x"}, 409, "web.stale"),
        ({"text": MORE, "base_version": None}, 409, "web.stale"),
        ({"text": "x" * 10_000_000, "base_version": 1}, 413, "web.text_size"),
    ],
    ids=["torn", "list", "deep", "no text", "number", "nul", "large", "marks", "base", "no base", "10 MB"],
)
def test_bad_bodies_change_nothing(cast: Any, body: Any, status: int, code: str) -> None:
    answer = save(cast, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert cast.spec.versions.count() == 1


def upload(name: str, data: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


@pytest.mark.parametrize(
    ("name", "data", "status"),
    [
        ("a.spak", MORE.encode(), 302),
        ("a.txt", MORE.encode(), 415),
        ("a.spak", b"\xff\xfe\x00", 400),
        ("a.spak", b"x" * 300_000, 413),
        (".spak", MORE.encode(), 400),
        ("../../etc/passwd.spak", MORE.encode(), 302),
    ],
    ids=["good", "txt", "binary", "large", "no name", "path"],
)
def test_importing(cast: Any, name: str, data: bytes, status: int) -> None:
    url = reverse("spak-spec-import", args=[cast.team.slug])
    answer = cast.client("bob").post(url, {"file": [upload(name, data)]})
    assert answer.status_code == status
    assert Spec.objects.filter(team=cast.team).count() == (2 if status == 302 else 1)
    if status != 302:  # in the form, with the navigation around it
        shown = answer.content.decode()
        assert (
            'role="alert"' in shown
            and "Import files" in shown
            and reverse("spak-run-list", args=[cast.team.slug]) in shown
        )


def test_a_name_that_is_taken_and_a_text_with_errors_are_said(cast: Any) -> None:
    url = reverse("spak-spec-import", args=[cast.team.slug])
    page = cast.client("bob").post(url, {"file": [upload("small.spak", b"")]}, follow=True).content.decode()
    assert "Imported: small (1 error)." in page
    assert "Another spec is called small. This one is small-2 in addresses" in page


def test_a_second_spec_of_one_name_is_asked_for(cast: Any) -> None:
    url, bob = reverse("spak-spec-new", args=[cast.team.slug]), cast.client("bob")
    assert bob.post(url, {"name": "Sm all"}).status_code == 302
    assert bob.post(url, {"name": "Sm\aall"}).status_code == 409, "a name counts as it will stand"
    answer = bob.post(url, {"name": "Small", "double": ""})
    assert answer.status_code == 409 and "Another spec is called small." in answer.content.decode()
    assert 'name="double" value="Small"' in answer.content.decode()
    assert bob.post(url, {"name": "Small", "double": "Small"}).status_code == 302
    assert Spec.objects.filter(team=cast.team, slug="small-2").exists()


def test_an_error_page_of_a_team_has_its_navigation(cast: Any) -> None:
    runs = reverse("spak-run-list", args=[cast.team.slug])
    address = reverse("spak-spec-detail", args=[cast.team.slug, "none"])
    assert runs in cast.client("bob").get(address).content.decode()
    assert runs not in cast.client("charlie").get(address).content.decode()
    assert runs not in cast.client("bob").get(f"/nowhere/{cast.team.slug}/").content.decode()


def test_importing_and_exporting_a_version_is_exact(cast: Any) -> None:
    client = cast.client("bob")
    given = {"file": upload("b.spak", MORE.encode()), "base_version": "1"}
    client.post(reverse("spak-spec-save", args=[cast.team.slug, "small"]), given)
    answer = client.get(reverse("spak-version-download", args=[cast.team.slug, "small", 2]))
    assert answer.content == MORE.encode()
    assert answer["Content-Disposition"] == 'attachment; filename="small-v2.spak"'
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("query", ["old=1&new=2", "old=2&new=1", "new=2", "", "old=1&new=1"])
def test_comparing(cast: Any, saved: Callable[..., Any], query: str) -> None:
    saved(cast.spec.head.text.replace("done", "finish"))
    url = reverse("spak-spec-compare", args=[cast.team.slug, "small"])
    answer = cast.client("vera").get(f"{url}?{query}")
    assert answer.status_code == 200
    assert ("finish" in answer.content.decode()) == (query != "old=1&new=1")


@pytest.mark.parametrize("query", ["old=99", "old=x", "new=-1", "new=" + "9" * 40, "old=%00"])
def test_comparing_what_is_not_there(cast: Any, query: str) -> None:
    url = reverse("spak-spec-compare", args=[cast.team.slug, "small"])
    assert cast.client("vera").get(f"{url}?{query}").status_code == 404


def test_the_list_filters(cast: Any) -> None:
    client, url = cast.client("vera"), reverse("spak-spec-list", args=[cast.team.slug])
    assert b">small<" in client.get(url, {"q": "list_files"}).content
    assert b"No spec has" in client.get(url, {"q": "\0nothing%_"}).content
    part = client.get(url, {"q": "small"}, headers={"HX-Request": "true"})
    assert b"<html" not in part.content
    assert client.get(url, {"sort": "nonsense", "page": "99999"}).status_code == 200


def test_events_filter_and_export(cast: Any, saved: Callable[..., Any]) -> None:
    saved(MORE, message="=cmd()")
    client = cast.client("alice")
    page, export = (reverse(name, args=[cast.team.slug]) for name in ("spak-audit", "spak-audit-export"))
    assert b"spec.saved" in client.get(page).content
    assert b"No matching events" in client.get(page, {"q": "nobody like that"}).content
    assert client.get(page, {"since": "yesterday"}).status_code == 400
    rows = b"".join(client.get(export, {"action": "spec.saved"}).streaming_content).decode().splitlines()
    assert [json.loads(row)["thing"] for row in rows] == ["small v2"]
    table = b"".join(client.get(export, {"as": "csv"}).streaming_content).decode()
    assert {row["action"] for row in csv.DictReader(io.StringIO(table))} >= {"spec.saved", "team.created"}
    assert client.get(export, {"as": "xml"}).status_code == 400


def test_a_cell_is_never_a_formula(cast: Any) -> None:
    from spakweb.ground.audit.actions import record

    record(cast["alice"], "spec.saved", "=HYPERLINK(1)", cast.team)
    export = reverse("spak-audit-export", args=[cast.team.slug])
    assert b",'=HYPERLINK(1)," in b"".join(cast.client("alice").get(export, {"as": "csv"}).streaming_content)


def test_sign_ins_are_events(cast: Any) -> None:
    client = cast.client()
    client.post("/account/login/", {"login": "alice", "password": "wrong"})
    client.post("/account/login/", {"login": "alice", "password": "a long secret"})
    found = list(Event.objects.filter(team=None).values_list("action", "thing", "ip"))[:2]
    assert found == [("account.signed_in", "", "127.0.0.1"), ("account.sign_in_failed", "alice", "127.0.0.1")]


# ---- teams


def test_an_invitation_works_once(cast: Any) -> None:
    made, secret = teams.invite(cast["alice"], cast.team, "editor", "for charlie")
    assert secret not in str(Invitation.objects.filter(pk=made.pk).values())
    assert teams.join(cast["charlie"], secret) == cast.team
    with pytest.raises(Refused):
        teams.join(cast["nobody"], secret)
    assert cast.team.memberships.get(user=cast["charlie"]).role == Role.EDITOR


def test_an_invitation_ends(cast: Any, settings: Any) -> None:
    settings.INVITATION_DAYS = 0
    _, secret = teams.invite(cast["alice"], cast.team, "editor")
    assert teams.invitation(secret) is None
    settings.INVITATION_DAYS = 1
    made, secret = teams.invite(cast["alice"], cast.team, "editor")
    teams.withdraw(cast["alice"], made)
    told = cast.client("charlie").get(reverse("spak-join", args=[secret]))
    assert (told.status_code, b"This invitation was withdrawn." in told.content) == (410, True)
    assert b"deleted" not in told.content
    assert cast.client().get(reverse("spak-join", args=["nothing"])).status_code == 410


def test_an_invitation_never_lowers_a_role(cast: Any) -> None:
    _, secret = teams.invite(cast["alice"], cast.team, "viewer")
    teams.join(cast["rita"], secret)
    assert cast.team.memberships.get(user=cast["rita"]).role == Role.REVIEWER


def test_signing_up_needs_an_invitation(cast: Any, settings: Any) -> None:
    assert b"ask an admin of a team for a link" in cast.client().get("/account/signup/").content
    _, secret = teams.invite(cast["alice"], cast.team, "viewer")
    client = cast.client()
    client.get(reverse("spak-join", args=[secret]))
    assert client.get("/account/signup/").status_code == 200
    assert b"password1" in client.get("/account/signup/").content


@pytest.mark.parametrize("role", ["", "owner", "ADMIN", "admin\0"])
def test_a_role_that_is_none(cast: Any, role: str) -> None:
    member = cast.team.memberships.get(user=cast["bob"])
    url = reverse("spak-member-role", args=[cast.team.slug, member.pk])
    assert cast.client("alice").post(url, {"role": role}).status_code == 400


def test_the_last_admin_stays(cast: Any) -> None:
    member = cast.team.memberships.get(user=cast["alice"])
    url = reverse("spak-member-role", args=[cast.team.slug, member.pk])
    assert cast.client("alice").post(url, {"role": "viewer"}).status_code == 409
    bob = cast.team.memberships.get(user=cast["bob"])
    teams.set_role(cast["alice"], bob, "admin")
    assert cast.client("alice").post(url, {"role": "viewer"}).status_code == 302


# ---- the shell


def test_errors_say_what_to_do(cast: Any, rf: Any) -> None:
    missing = cast.client("alice").get("/no/such/page")
    assert missing.status_code == 404
    assert b"There is nothing here" in missing.content
    as_json = cast.client("alice").get("/no/such/page", headers={"Accept": "application/json"})
    assert as_json.json()["code"] == "web.404"
    request = rf.get("/")
    broken = server_error(request)
    assert broken.status_code == 500
    assert b"our side" in broken.content


def test_home_leads_on(cast: Any) -> None:
    assert cast.client("alice").get("/")["Location"] == f"/t/{cast.team.slug}/"
    alone = cast.client("nobody").get("/")
    assert b"You are in no team yet" in alone.content
    assert b"Nothing needs you" in cast.client("vera").get(f"/t/{cast.team.slug}/").content


def test_the_palette_finds_every_page_and_any_run_by_its_id(cast: Any) -> None:
    team = {"team": cast.team.slug}
    for number in range(60):
        Run.objects.create(team=cast.team, key=f"20260101-{number:06}-abcdef", name="old")
    Run.objects.create(team=cast.other_team, key="20260101-000000-other", name="old")
    client = cast.client("alice")
    names = {place["name"] for place in client.get("/api/v1/places/", team).json()["places"]}
    assert names >= {"Schedules", "Triggers", "Sources", "Campaigns", "Webhooks", "CI sign-in", "Audit log"}
    assert "old 20260101-000000-abcdef" not in names
    [found] = client.get("/api/v1/places/", {**team, "q": "101-000000-"}).json()["places"]
    assert found["name"] == "old 20260101-000000-abcdef"
    vera = {place["name"] for place in cast.client("vera").get("/api/v1/places/", team).json()["places"]}
    assert "Schedules" in vera and not {"Webhooks", "Audit log"} & vera


def test_the_palette_holds_what_one_may_see(cast: Any) -> None:
    places = cast.client("vera").get("/api/v1/places/", {"team": cast.team.slug}).json()["places"]
    names = {place["name"] for place in places}
    assert {"small", "Specs", "Account"} <= names
    assert not {"New spec", "Audit log", "Next door"} & names
    assert {place["name"] for place in cast.client("alice").get("/api/v1/places/").json()["places"]} >= {
        "New spec"
    }


@pytest.mark.parametrize(
    ("back", "where"), [("/me/", "/me/"), ("https://evil.example/", "/"), ("//evil.example", "/")]
)
def test_the_theme_leads_nowhere_else(client: Any, db: None, back: str, where: str) -> None:
    answer = client.post("/theme/", {"theme": "dark", "next": back})
    assert (answer.status_code, answer["Location"]) == (302, where)
    assert client.cookies["spak_theme"].value == "dark"
    assert 'data-theme="dark"' in client.get("/account/login/").content.decode()


def test_health(client: Any, db: None) -> None:
    assert client.get("/healthz").content == b"ok\n"
    assert client.get("/readyz").content == b"ready\n"


def test_the_demo_team_is_made_once(db: None) -> None:
    assert demo.seed()
    assert not demo.seed()
    specs = {spec.slug: spec.head.facts for spec in Spec.objects.select_related("head")}
    assert specs["first-draft"]["missing"] == ["finalize"]
    assert specs["first-draft"]["errors"] == 1
    assert all(not facts["errors"] for slug, facts in specs.items() if slug != "first-draft")
