"""Tokens for some specs of a team alone, and tokens that are rotated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from run_rows_kit import begun
from spakweb.ground.audit.models import Event
from spakweb.ground.teams.models import Token
from spakweb.store.runs.models import Run
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams import tokens
from token_kit import LIST, asked_again, program


@pytest.fixture
def bob(cast: Any) -> Client:
    """Signed in, and asked for the password just now."""
    return asked_again(cast, "bob")


def test_it_is_for_the_specs_that_it_names(cast: Any, bob: Client) -> None:
    """test_access asks every address; here: who may name which, and what the pages say of it."""
    create_spec(cast["alice"], cast.team, "other", cast.spec.head.text)
    form = {"name": "ci", "days": "7", "team": cast.team.slug, "specs": "small, small"}
    answer = bob.post("/me/tokens/new/", form)
    made = Token.objects.get()
    assert made.specs == [cast.spec.pk] and b"of its specs only small" in answer.content
    assert b"Kernel tuners, only small" in bob.get("/me/").content
    begun(cast.team, cast.spec.head, "mine")
    begun(cast.team, cast.team.specs.get(slug="other").head, "others")
    Run.objects.create(team=cast.team, key="imported", name="imported")
    found = program(answer.context["secret"]).get(LIST)
    assert [run["key"] for run in found.json()["runs"]] == ["mine"]


@pytest.mark.parametrize(
    ("team", "specs"),
    [("", "small"), ("kernel-tuners", "none"), ("kernel-tuners", "theirs"), ("kernel-tuners", "a\0b"),
     ("kernel-tuners", " ".join(map(str, range(51))))],
)  # fmt: skip
def test_specs_that_no_token_names(cast: Any, bob: Client, team: str, specs: str) -> None:
    """Of no team, of another team, none, and too many."""
    create_spec(cast["charlie"], cast.other_team, "theirs", cast.spec.head.text)
    answer = bob.post("/me/tokens/new/", {"name": "ci", "days": "7", "team": team, "specs": specs})
    assert (answer.status_code, answer.context["why"].code) == (400, "web.token_specs")
    assert not Token.objects.exists()


@pytest.mark.parametrize("hours", tokens.GRACE_HOURS)
def test_a_rotated_one_works_on_for_as_long_as_was_said(
    cast: Any, bob: Client, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, secret = tokens.make(cast["bob"], "ci", 90, cast.team, ["start"], ["small"])
    path = f"/me/tokens/{old.pk}/rotate/"
    assert bob.get(path).status_code == 200
    answer = bob.post(path, {"days": "30", "grace": str(hours)})
    new = Token.objects.exclude(pk=old.pk).get()
    same = ("name", "team_id", "scopes", "specs", "user_id")
    assert [getattr(new, one) for one in same] == [getattr(old, one) for one in same]
    assert program(answer.context["secret"]).get(LIST).status_code == 200
    assert program(secret).get(LIST).status_code == (200 if hours else 401)
    real, later = timezone.now, timedelta(hours=hours, seconds=1)
    monkeypatch.setattr(timezone, "now", lambda: real() + later)
    assert program(secret).get(LIST).status_code == 401
    event = Event.objects.get(action="token.rotated", team=cast.team)
    assert (event.detail["token"], event.detail["replaces"]) == (new.pk, old.pk)


def test_what_cannot_be_rotated(cast: Any, bob: Client) -> None:
    """Another's, one that ended meanwhile, and with odd words; then the old one is as it was."""
    mine, secret = tokens.make(cast["bob"], "nightly", 7)
    foreign, _ = tokens.make(cast["alice"], "hers", 7)
    assert bob.post(f"/me/tokens/{foreign.pk}/rotate/", {"days": "7", "grace": "0"}).status_code == 404
    for form, code in (
        ({"days": "8", "grace": "0"}, "web.token_days"), ({"days": "7", "grace": "9999"}, "web.token_grace"),
    ):  # fmt: skip
        answer = bob.post(f"/me/tokens/{mine.pk}/rotate/", form)
        assert (answer.status_code, answer.context["why"].code) == (400, code)
    assert program(secret).get(LIST).status_code == 200 and Token.objects.count() == 2
    Token.objects.filter(pk=mine.pk).update(ends_at=timezone.now())
    answer = bob.post(f"/me/tokens/{mine.pk}/rotate/", {"days": "7", "grace": "0"})
    assert (answer.status_code, answer.context["why"].code) == (409, "web.token_over")
