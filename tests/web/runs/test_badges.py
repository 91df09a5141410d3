"""Badges of specs: who sees them, what they say, and what they never hold."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.test import Client

from spakweb.face.runs.badges import svg
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Badge
from spakweb.work.specs.actions import set_tag
from spakweb.work.specs.badges import choose

PUBLIC = "/badge/kernel-tuners/small.svg"


def run(version: Any, key: str, state: str, **more: Any) -> Run:
    return Run.objects.create(team=version.spec.team, version=version, key=key, name=key, state=state, **more)


def state_of(answer: Any) -> str:
    assert answer.status_code == 200 and answer["Content-Type"] == "image/svg+xml"
    label = ElementTree.fromstring(answer.content).get("aria-label")
    cache.clear()
    return str(label).partition(": ")[2]


def test_an_admin_chooses_who_sees_it(cast: Any) -> None:
    alice, path = cast.client("alice"), "/t/kernel-tuners/specs/small/"
    assert Client().get(PUBLIC).status_code == 404
    assert alice.post(path + "badge/", {"who": "link"}).status_code == 302
    key = Badge.objects.get().key
    assert f"http://testserver/badge/{key}.svg" in alice.get(path).content.decode()
    assert key not in cast.client("bob").get(path).content.decode(), "an editor is not shown it"
    found = Client().get(f"/badge/{key}.svg")
    assert state_of(found) == "no runs" and found["Cache-Control"] == "private, max-age=60"
    assert Client().get(PUBLIC).status_code == 404
    choose(cast["alice"], cast.spec, "link")
    assert Client().get(f"/badge/{key}.svg").status_code == 404, "a new choice is a new address"
    choose(cast["alice"], cast.spec, "public")
    assert Client().get(PUBLIC)["Cache-Control"] == "public, max-age=60"
    assert Client().get(f"/badge/{Badge.objects.get().key}.svg").status_code == 404
    choose(cast["alice"], cast.spec, "off")
    cache.clear()
    assert Client().get(PUBLIC).status_code == 404 and not Badge.objects.exists()
    chosen = Event.objects.filter(action="spec.badge").order_by("pk").values_list("detail__now", flat=True)
    assert list(chosen) == ["link", "link", "public", "off"]


def test_who_may_not_choose_and_what_is_no_choice(cast: Any) -> None:
    with pytest.raises(PermissionDenied):
        choose(cast["rita"], cast.spec, "public")
    with pytest.raises(Refused) as why:
        choose(cast["alice"], cast.spec, "all")
    assert why.value.code == "web.badge" and not Badge.objects.exists()


def test_it_says_how_the_last_run_ended(cast: Any, saved: Any) -> None:
    choose(cast["alice"], cast.spec, "public")
    first = cast.spec.head
    set_tag(cast["alice"], first, "gold")
    second = saved("task Another { }")
    assert state_of(Client().get(PUBLIC)) == "no runs"
    run(first, "r1", State.SUCCEEDED)
    run(second, "r2", State.FAILED)
    run(second, "r3", State.RUNNING)
    run(cast.other_spec.head, "r4", State.CANCELLED)
    assert state_of(Client().get(PUBLIC)) == "failed"
    assert state_of(Client().get(PUBLIC, {"tag": "gold"})) == "succeeded"
    for tag in ("none", "a\0b", "x" * 5000):
        assert Client().get(PUBLIC, {"tag": tag}).status_code == 404


def test_it_is_kept_and_asked_for_by_its_etag(cast: Any, django_assert_num_queries: Any) -> None:
    choose(cast["alice"], cast.spec, "public")
    first = Client().get(PUBLIC)
    with django_assert_num_queries(1):  # whether it is public still
        again = Client().get(PUBLIC, headers={"if-none-match": f'W/{first["ETag"]}, "x"'})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    run(cast.spec.head, "r1", State.FAILED)
    cache.clear()
    other = Client().get(PUBLIC, headers={"if-none-match": first["ETag"]})
    assert other.status_code == 200 and other["ETag"] != first["ETag"]


def test_an_odd_secret_asks_the_database_nothing(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):  # PostgreSQL takes no zero byte
        assert Client().get("/badge/a%00b.svg").status_code == 404


def test_hostile_names_are_words(cast: Any) -> None:
    name = "<script>alert(1)</script>\"'&]]>"
    image = ElementTree.fromstring(svg(name, "failed"))
    assert {one.tag.rpartition("}")[2] for one in image.iter()} == {"svg", "title", "rect", "g", "text"}
    assert image.get("aria-label") == f"{name}: failed"
    assert ElementTree.fromstring(svg("x" * 500, "no runs")).get("width") == "353"
    cast.spec.name = name
    cast.spec.save()
    choose(cast["alice"], cast.spec, "public")
    found = Client().get(PUBLIC)
    assert b"<script" not in found.content and found["X-Content-Type-Options"] == "nosniff"
    assert found["Content-Security-Policy"] == "default-src 'none'; sandbox" and not found.cookies
