"""Specs by the API: create, save on a known version, format, compare, tag; lists, fields, ETags, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from spakweb.face.api import reading
from spakweb.store.specs.models import Spec, SpecVersion, Tag
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import save_version, set_tag
from spakweb.work.teams import tokens

HERE = "/api/v1/teams/kernel-tuners/"
SPEC = HERE + "specs/small/"
OTHER = 'task A { step b: tool.run { cmd: "true" } }\n'


def program(user: Any, team: Any, *scopes: str) -> Client:
    return Client(headers={"authorization": f"Bearer {tokens.make(user, 'ci', 7, team, scopes)[1]}"})


@pytest.fixture
def ci(cast: Any) -> Client:
    """A program of rita's, a reviewer, that may edit."""
    return program(cast["rita"], cast.team, "edit")


def post(client: Client, address: str, body: Any, **headers: str) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json", headers=headers)


def save(client: Client, text: str, etag: str, **more: str) -> Any:
    return post(client, SPEC + "versions/", {"text": text, **more}, **{"If-Match": etag})


# ---- saving


def test_a_version_is_saved_on_the_one_that_it_was_made_from(cast: Any, ci: Client) -> None:
    first = ci.get(SPEC + "versions/1/")["ETag"]
    assert first == ci.get(SPEC + "versions/")["ETag"]
    made = save(ci, OTHER, first, message="Less")
    assert (made.status_code, made.json()["number"], made.json()["author"]) == (201, 2, "rita")
    assert made["ETag"] == ci.get(SPEC + "versions/")["ETag"] == ci.get(made["Location"])["ETag"]
    assert ci.get(made["Location"]).json()["text"] == OTHER
    same = save(ci, OTHER, first)
    assert (same.status_code, same.json()["number"]) == (200, 2) and not same.has_header("Location")
    rows = ci.get(SPEC + "versions/").json()["versions"]
    assert [(one["number"], one["message"]) for one in rows] == [(2, "Less"), (1, "First version")]


def test_nobodys_version_is_written_over(cast: Any, ci: Client) -> None:
    first = ci.get(SPEC + "versions/")["ETag"]
    save_version(cast["bob"], cast.spec, cast.spec.head.text.replace("one:", "uno:"), 1, "Mine")
    mine = cast.spec.head.text.replace("two:", "due:")
    late = save(ci, mine, first)
    found = late.json()
    assert (late.status_code, found["code"], found["head_version"]) == (412, "web.stale", 2)
    assert late["Content-Type"] == "application/problem+json" and found["mine"] == mine
    assert "uno:" in found["merge"]["text"] and "due:" in found["merge"]["text"]
    assert SpecVersion.objects.filter(spec=cast.spec).count() == 2
    merged = save(ci, found["merge"]["text"], ci.get(SPEC + "versions/")["ETag"])
    assert (merged.status_code, merged.json()["number"]) == (201, 3)
    forged = first.replace(first[4], "_" if first[4] != "_" else "-")
    assert save(ci, OTHER, forged).json()["code"] == "web.stale", "a number with another hash is no version"


@pytest.mark.parametrize("etag", ["", "*", '"1"', "1-x", '"0-' + "a" * 43, '"9999999999-' + "a" * 43 + '"'])
def test_a_save_without_its_base_is_refused(cast: Any, ci: Client, etag: str) -> None:
    answer = save(ci, OTHER, etag)
    assert (answer.status_code, answer.json()["code"]) == (428, "web.precondition")
    assert SpecVersion.objects.filter(spec=cast.spec).count() == 1


def test_a_protected_spec_says_how_a_text_comes_in(cast: Any, ci: Client) -> None:
    protect(cast["alice"], cast.spec, 1)
    answer = save(ci, OTHER, ci.get(SPEC + "versions/")["ETag"])
    assert (answer.status_code, answer.json()["code"]) == (409, "web.protected")
    assert f"POST {SPEC}patches/" in answer.json()["hint"]


def test_texts_that_cannot_be_saved(cast: Any, ci: Client) -> None:
    etag = ci.get(SPEC + "versions/")["ETag"]
    for body, code in (
        ({}, "web.request"),
        ({"text": []}, "web.request"),
        ({"text": "a\0"}, "web.request"),
        ({"text": "<<<<<<< yours\n"}, "web.markers"),
        ({"text": "x", "base_version": 1}, "web.request"),
    ):
        answer = post(ci, SPEC + "versions/", body, **{"If-Match": etag})
        assert answer.json()["code"] == code and answer.status_code in (400, 422), body


def test_a_save_with_a_key_is_done_once(cast: Any, ci: Client) -> None:
    etag = ci.get(SPEC + "versions/")["ETag"]
    headers = {"If-Match": etag, "Idempotency-Key": "k"}
    one, two = (post(ci, SPEC + "versions/", {"text": OTHER}, **headers) for _ in range(2))
    assert (one.status_code, two.status_code, one.json()) == (201, 201, two.json())
    assert two["Idempotent-Replayed"] == "true" and two["ETag"] == one["ETag"] != etag
    other = post(ci, SPEC + "versions/", {"text": OTHER}, **{**headers, "If-Match": one["ETag"]})
    assert other.json()["code"] == "web.idempotency_body"


def test_a_spec_is_created(cast: Any, ci: Client) -> None:
    body = {"name": "Nightly build", "text": OTHER}
    one, two = (post(ci, HERE + "specs/", body, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert (one.status_code, one.json()["slug"], two.json()) == (201, "nightly-build", one.json())
    assert ci.get(one["Location"]).json() == one.json()
    nameless = post(ci, HERE + "specs/", {"name": "...", "text": OTHER})
    assert (nameless.status_code, nameless.json()["code"]) == (400, "web.name")
    assert post(ci, HERE + "specs/", {"name": "x"}).json()["code"] == "web.request"


# ---- looking


def test_a_text_is_laid_out_and_nothing_saved(cast: Any, ci: Client) -> None:
    made = post(ci, SPEC + "format/", {"text": 'task  A {\nstep b: tool.run { cmd: "true" } }'}).json()
    assert made["changed"] is True and made["text"].startswith("task A {\n  step b:")
    assert post(ci, SPEC + "format/", {"text": made["text"]}).json() == {**made, "changed": False}
    bad = post(ci, SPEC + "format/", {"text": "task A {"})
    assert (bad.status_code, bad.json()["code"]) == (422, "lang.invalid")


def test_two_versions_are_compared(cast: Any, ci: Client) -> None:
    set_tag(cast["rita"], cast.spec.head, "gold")
    save_version(cast["bob"], cast.spec, cast.spec.head.text.replace('"."', '"docs"', 1), 1, "Docs")
    found = ci.get(SPEC + "diff/").json()
    assert (found["old"], found["new"], found["equal"], found["more_changes"]) == (1, 2, False, 0)
    assert [one["op"] for one in found["changes"]] == ["change"]
    assert '+    step one: tool.list_files { path: "docs" }' in found["unified"].splitlines()
    assert ci.get(SPEC + "diff/?old=gold&new=2").json() == found
    assert ci.get(SPEC + "diff/?old=2&new=2").json()["unified"] == ""
    for query in ("old=7", "new=none", "old=999999999999"):
        assert ci.get(f"{SPEC}diff/?{query}").json()["code"] == "web.404"
    assert ci.get(SPEC + "diff/?before=1").json()["code"] == "web.filter"


def test_tags_are_made_moved_and_removed(cast: Any, ci: Client) -> None:
    assert ci.get(SPEC + "tags/").json() == {"tags": []}
    made = post(ci, SPEC + "tags/", {"name": "gold", "version": 1})
    assert (made.status_code, made.json()["version"]) == (200, 1)
    save(ci, OTHER, ci.get(SPEC + "versions/")["ETag"])
    post(ci, SPEC + "tags/", {"name": "gold", "version": 2})
    assert [(one["name"], one["version"]) for one in ci.get(SPEC + "tags/").json()["tags"]] == [("gold", 2)]
    for body, code in (
        ({"name": "gold", "version": 9}, "web.run_version"),
        ({"name": "go/ld", "version": 1}, "web.tag"),
        ({"name": "gold"}, "web.request"),
    ):
        assert post(ci, SPEC + "tags/", body).json()["code"] == code
    assert ci.post(SPEC + "tags/gold/remove/").status_code == 204 and not Tag.objects.exists()
    assert ci.post(SPEC + "tags/gold/remove/").json()["code"] == "web.404"


def test_a_protected_specs_tags_move_by_its_rules(cast: Any, ci: Client) -> None:
    set_tag(cast["rita"], cast.spec.head, "staging")
    protect(cast["alice"], cast.spec, 1)
    moved = post(ci, SPEC + "tags/", {"name": "production", "version": 1})
    assert (moved.status_code, moved.json()["code"]) == (409, "web.tag_rule")
    assert ci.post(SPEC + "tags/staging/remove/").status_code == 403 and Tag.objects.count() == 1


# ---- pages, fields, ETags, limits


def test_lists_come_in_pages(cast: Any, ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 2)
    for number in range(2, 6):
        spec = Spec.objects.get(pk=cast.spec.pk)
        save_version(cast["bob"], spec, OTHER.replace("true", f"true {number}"), number - 1, "")
        post(ci, HERE + "specs/", {"name": f"more {number}", "text": OTHER})
    for address, name, key, wanted in (
        (SPEC + "versions/?fields=number", "versions", "number", [5, 4, 3, 2, 1]),
        (HERE + "specs/?q=o", "specs", "slug", ["more-2", "more-3", "more-4", "more-5"]),
    ):
        seen: list[Any] = []
        while address:
            found = ci.get(address).json()
            seen += [one[key] for one in found[name]]
            assert len(found[name]) <= 2
            address = found["next"]
        assert seen == wanted


def test_only_the_fields_that_were_asked_for(cast: Any, ci: Client) -> None:
    assert ci.get(SPEC + "?fields=slug,head").json() == {"slug": "small", "head": 1}
    assert ci.get(HERE + "specs/?fields=slug").json() == {"specs": [{"slug": "small"}], "next": None}
    assert ci.get("/api/v1/teams/?fields=slug").json() == {"teams": [{"slug": "kernel-tuners"}]}
    for query in ("fields=", "fields=slug,text", "fields=next"):
        answer = ci.get(f"{HERE}specs/?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "web.fields"), query


def test_an_answer_that_a_reader_has_is_not_sent_again(cast: Any, ci: Client) -> None:
    for address in (SPEC, HERE + "specs/", SPEC + "versions/", SPEC + "versions/1/", SPEC + "tags/"):
        first = ci.get(address)
        again = ci.get(address, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"]), address
        assert again.has_header("RateLimit") and first["Cache-Control"] == "private, no-cache"
    etag = ci.get(SPEC)["ETag"]
    set_tag(cast["rita"], cast.spec.head, "gold")
    assert ci.get(SPEC, headers={"If-None-Match": etag}).status_code == 200
    assert ci.get(SPEC + "?fields=slug")["ETag"] != ci.get(SPEC)["ETag"]
    assert ci.head(SPEC)["ETag"] == ci.get(SPEC)["ETag"]


def test_answers_say_what_is_left(cast: Any, ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.face.api.limits.READS_PER_MINUTE", 2)
    said = [ci.get(SPEC) for _ in range(3)]
    assert [one["RateLimit"].split(";")[:2] for one in said] == [
        ['"read"', f"r={left}"] for left in (1, 0, 0)
    ]
    assert {one["RateLimit-Policy"] for one in said} == {'"read";q=2;w=60'}
    assert said[2].status_code == 429 and 0 < int(said[2]["Retry-After"]) <= 61
    write = post(ci, SPEC + "format/", {"text": OTHER})
    assert write["RateLimit"].startswith('"write";r=239;t=')
