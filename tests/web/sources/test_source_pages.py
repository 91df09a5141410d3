"""Sources: what may be added, who may, what is shown of one, and the form that starts a run from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.test import Client

from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run
from spakweb.store.sources import credentials, refs
from spakweb.store.sources.addresses import read
from spakweb.store.sources.models import RunSource, Source
from spakweb.work.sources import actions
from spakweb.work.teams import tokens

URL = "https://git.example.org/app.git"
HERE = "/t/kernel-tuners/sources/"
API = "/api/v1/teams/kernel-tuners/sources/"
KEY = "ssh-ed25519 AAAAC3Nza"


def program(user: Any, *scopes: str) -> Client:
    return Client(headers={"authorization": f"Bearer {tokens.make(user, 'ci', 7, None, scopes)[1]}"})


def post(client: Client, address: str, body: Any) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json")


# ---- addresses


@pytest.mark.parametrize(
    ("given", "kind", "url"),
    [
        (URL, "https", URL),
        ("https://GIT.example.org:443/a/b", "https", "https://git.example.org/a/b"),
        ("https://git.example.org:8443/~me/app.git", "https", "https://git.example.org:8443/~me/app.git"),
        ("git@git.example.org:team/app.git", "ssh", "ssh://git@git.example.org/team/app.git"),
        ("ssh://me@git.example.org:2222/app.git", "ssh", "ssh://me@git.example.org:2222/app.git"),
        ("ssh://git.example.org/app.git", "ssh", "ssh://git@git.example.org/app.git"),
    ],
)
def test_addresses_are_written_one_way(given: str, kind: str, url: str) -> None:
    found = read(given)
    assert (found.kind, found.url) == (kind, url)


@pytest.mark.parametrize(
    "given",
    ["", "app", "http://git.example.org/a", "https://user:pass@git.example.org/a", "https://127.0.0.1/a",
     "https://localhost/a", "https://git.example.org", "https://git.example.org/",
     "https://git.example.org/a?b=c", "https://git.example.org/a#b", "ext::sh -c touch%20x",
     "git://git.example.org/a", "file:///srv/git/a", "/srv/git/a", "ssh://-oProxyCommand=x/a", "ssh://git@-oProxyCommand=x/a",
     "-oProxyCommand=x@git.example.org:a",
     "git@git.example.org:-upload-pack", "https://git.example.org/../a", "https://git.example.org/a//b",
     "https://git.example.org/a b", "https://git.example.org/a;b", "https://git.example.org/$(x)", "https://git.example.org:25/a",
     "ssh://a@b@git.example.org/x", "ssh://git@git.example.org/'x'", "https://git.example.org/a\nb",
     "\u202ehttps"],
)  # fmt: skip
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(Refused) as why:
        read(given)
    assert why.value.code == "git.url"


# ---- refs


def test_patterns_are_full_names_and_a_star_stands_for_anything() -> None:
    found = refs.patterns(["main, release/*", "refs/tags/v* main"])
    assert found == ["refs/heads/main", "refs/heads/release/*", "refs/tags/v*"]
    assert refs.allowed("main", found) == ["refs/heads/main"]
    assert refs.allowed("release/2/x", found) == ["refs/heads/release/2/x"]
    assert refs.allowed("v1", found) == ["refs/tags/v1"]
    assert refs.usual(found) == "refs/heads/main"
    for other in ("dev", "mainline", "xmain", "refs/heads/dev", "refs/pull/1/head", "release"):
        with pytest.raises(Refused) as why:
            refs.allowed(other, found)
        assert why.value.code == "git.ref_not_allowed"


@pytest.mark.parametrize(
    "given",
    ["", "-x", "--upload-pack=x", "a b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a",
     "a/", "a//b",
     ".a", "a/.b", "a.lock", "a.", "a@{1}", "@{", "a\nb", "a\0b", "a\x7f", "x" * 201, "a/-b", "$(x)"],
)  # fmt: skip
def test_what_is_no_ref(given: str) -> None:
    with pytest.raises(Refused) as why:
        refs.allowed(given, ["*"])
    assert why.value.code == "git.ref"


@pytest.mark.parametrize("given", [[], [""], ["a..b"], ["a b~"], ["x" * 201], ["/"], ["a"] * 3 + ["b?"]])
def test_what_is_no_pattern(given: list[str]) -> None:
    with pytest.raises(Refused) as why:
        refs.patterns(given)
    assert why.value.code == "git.refs"
    with pytest.raises(Refused):
        refs.patterns([str(number) for number in range(41)])


# ---- adding one


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"name": "Shop"}, "git.name"),
        ({"name": "-shop"}, "git.name"),
        ({"url": "http://git.example.org/a"}, "git.url"),
        ({"refs": ["a..b"]}, "git.refs"),
        ({"refs": []}, "git.refs"),
        ({"token": "short"}, "git.token"),
        ({"token": "with blank in it"}, "git.token"),
        ({"token": "line\nbreak-in-it"}, "git.token"),
        ({"token": "long-enough-1", "login": "a:b"}, "git.token"),
        ({"url": "git@git.example.org:a"}, "git.host_keys"),
        ({"url": "git@git.example.org:a", "host_keys": "words of nothing"}, "git.host_keys"),
        ({"url": "git@git.example.org:a", "host_keys": KEY, "token": "long-enough-1"}, "git.token"),
        ({"name": "there"}, "git.taken"),
    ],
)
def test_what_cannot_be_added(cast: Any, more: dict[str, Any], code: str) -> None:
    actions.add(cast["alice"], cast.team, "there", URL, ["main"])
    admin = program(cast["alice"], "admin")
    answer = post(admin, API, {"name": "app", "url": URL, "refs": ["main"], **more})
    assert (answer.json()["code"], answer.status_code // 100) == (code, 4)
    assert "long-enough-1" not in answer.content.decode()
    assert Source.objects.count() == 1


def test_a_team_has_so_many(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST", 1)
    actions.add(cast["alice"], cast.team, "one", URL, ["main"])
    with pytest.raises(Refused) as why:
        actions.add(cast["alice"], cast.team, "two", URL, ["main"])
    assert why.value.code == "git.many"


def test_only_admins_change_sources_and_strangers_do_not_see_them(cast: Any) -> None:
    made = actions.add(cast["alice"], cast.team, "app", URL, ["main"])
    for name in ("vera", "bob", "rita"):
        with pytest.raises(PermissionDenied):
            actions.add(cast[name], cast.team, "two", URL, ["main"])
        with pytest.raises(PermissionDenied):
            actions.rotate(cast[name], made)
        with pytest.raises(PermissionDenied):
            actions.remove(cast[name], made)
        status = post(
            program(cast[name], "admin"), API, {"name": "two", "url": URL, "refs": ["main"]}
        ).status_code
        assert status == 403
    with pytest.raises(Http404):
        actions.begin(cast["charlie"], cast.spec, "app")
    with pytest.raises(PermissionDenied):
        actions.begin(cast["vera"], cast.spec, "app")
    with pytest.raises(Refused, match="no source"):
        actions.begin(cast["charlie"], cast.other_spec, "app")
    for scope in ("start", "answer", "review"):
        answer = post(program(cast["alice"], scope), API, {"name": "two", "url": URL, "refs": ["main"]})
        assert answer.status_code == 403


def test_a_program_adds_looks_changes_and_removes(cast: Any) -> None:
    admin = program(cast["alice"], "admin")
    made = post(
        admin, API, {"name": "app", "url": URL, "refs": ["main"], "token": "right-token-1", "lfs": True}
    )
    assert made.status_code == 201
    shown = made.json()
    assert (shown["credentials"], shown["refs"], shown["lfs"]) == ("token", ["refs/heads/main"], True)
    assert admin.get(API).json() == {"sources": [shown]} and admin.get(f"{API}app/").json() == shown
    source = Source.objects.get()
    assert (credentials.unseal(source.sealed), source.user) == ("right-token-1", "x-access-token")
    turned = post(admin, f"{API}app/credentials/", {"token": "other-token-1", "login": "ci"}).json()
    assert turned["rotated_at"]
    source.refresh_from_db()
    assert (credentials.unseal(source.sealed), source.user) == ("other-token-1", "ci")
    assert post(admin, f"{API}app/credentials/", {}).json()["credentials"] == "none"
    assert post(admin, f"{API}app/remove/", {}).status_code == 204
    assert admin.get(f"{API}app/").status_code == 404
    done = list(
        Event.objects.filter(action__startswith="source.").order_by("pk").values_list("action", flat=True)
    )
    assert done == ["source.made", "source.rotated", "source.rotated", "source.removed"]
    assert not any(word in str(list(Event.objects.values())) for word in ("right-token", "other-token"))


def test_a_deploy_key_is_made_and_made_anew(cast: Any) -> None:
    url = "git@git.example.org:app.git"
    made = actions.add(cast["alice"], cast.team, "app", url, ["main"], host_keys=f"git.example.org {KEY}")
    first = made.public_key
    assert made.host_keys == KEY and "BEGIN OPENSSH" in credentials.unseal(made.sealed)
    actions.rotate(cast["alice"], made)
    assert made.public_key != first
    page = cast.client("alice").get(f"{HERE}s/app/").content.decode()
    assert made.public_key in page and made.sealed not in page and "PRIVATE" not in page


# ---- pages


def test_the_pages_add_show_change_and_remove(cast: Any) -> None:
    alice = cast.client("alice")
    form = {"name": "app", "url": URL, "refs": "main release/*", "token": "right-token-1"}
    wrong = alice.post(f"{HERE}new/", {**form, "url": "nothing", "login": "ci"})
    assert wrong.status_code == 400
    page = wrong.content.decode()
    assert "This is not an address" in page and 'value="ci"' in page and "right-token-1" not in page
    assert alice.post(f"{HERE}new/", form).status_code == 302
    page = alice.get(f"{HERE}s/app/").content.decode()
    assert "refs/heads/release/*" in page and "right-token-1" not in page
    assert alice.post(f"{HERE}s/app/do/", {"do": "rotate", "token": "bad token"}).status_code == 422
    assert alice.post(f"{HERE}s/app/do/", {"do": "rotate", "token": "other-token-1"}).status_code == 302
    assert credentials.unseal(Source.objects.get().sealed) == "other-token-1"
    assert alice.post(f"{HERE}s/app/do/", {"do": "dance"}).status_code == 400
    viewer = cast.client("vera").get(f"{HERE}s/app/").content.decode()
    assert URL in viewer and "Change credentials" not in viewer
    assert "Add a source" not in cast.client("vera").get(HERE).content.decode()
    assert alice.post(f"{HERE}s/app/do/", {"do": "remove"}).status_code == 302
    assert not Source.objects.exists()


def test_the_form_of_a_run_offers_them(cast: Any) -> None:
    bob, place = cast.client("bob"), "/t/kernel-tuners/specs/small/run/"
    assert "A git repository" not in bob.get(place).content.decode()
    actions.add(cast["alice"], cast.team, "app", URL, ["main", "release/*"])
    assert "A git repository" in bob.get(place).content.decode()
    form = {"files": "git", "source": "app", "ref": "release/1", "version": "1"}
    wrong = bob.post("/t/kernel-tuners/specs/small/run/start/", {**form, "ref": "dev"})
    assert wrong.status_code == 422
    page = wrong.content.decode()
    assert "No run begins from" in page and 'value="dev"' in page
    assert 'value="git" checked' in page
    assert bob.post("/t/kernel-tuners/specs/small/run/start/", form).status_code == 302
    run = Run.objects.get()
    begun = RunSource.objects.get(run=run)
    assert (begun.name, begun.ref, begun.commit, run.files) == ("app", "release/1", "", None)
    shown = bob.get(f"/t/kernel-tuners/runs/{run.key}/").content.decode()
    assert "release/1" in shown and f"{HERE}s/app/" in shown


@pytest.mark.parametrize(
    ("source", "code"),
    [({"name": "none"}, "git.source_unknown"), ({"name": "a\u0000b"}, "web.request"),
     ({"name": "app", "ref": "dev"}, "git.ref_not_allowed"), ({"name": "app", "ref": "-x"}, "git.ref"),
     ({"name": "app", "commit": "main"}, "git.ref"), ({"name": "stars"}, "git.ref"), ({}, "web.request"),
     ({"name": "app", "files": "x"}, "web.request"), ("app", "web.request"), (None, "web.request")],
)  # fmt: skip
def test_what_a_run_cannot_begin_from(cast: Any, source: Any, code: str) -> None:
    actions.add(cast["alice"], cast.team, "app", URL, ["main"])
    actions.add(cast["alice"], cast.team, "stars", URL, ["release/*"])
    ci = program(cast["bob"], "start")
    answer = post(ci, "/api/v1/teams/kernel-tuners/specs/small/runs/", {"source": source})
    assert (answer.json()["code"], answer.status_code) == (code, 422)
    both = post(
        ci, "/api/v1/teams/kernel-tuners/specs/small/runs/", {"source": {"name": "app"}, "files": "none"}
    )
    assert both.json()["code"] == "web.request"
    assert not Run.objects.exists()
