"""The table of the API's addresses: every role, every scope, a stranger, nobody (tests/api_table.py)."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from api_table import ADMIN, ROWS, VIEWER, Row, world_of
from spakweb.face.api import json_view, limits
from spakweb.ground import rights
from spakweb.ground.teams.models import Role, Token
from spakweb.store.specs.models import Spec
from spakweb.work.teams import tokens
from spakweb.work.worker import queue

PEOPLE = {Role.VIEWER: "vera", Role.EDITOR: "bob", Role.REVIEWER: "rita", Role.ADMIN: "alice"}
PREFIX = "spak-api-"
CALLED = {"tag": "name", "file": "name", "campaign": "number"}
"""What addresses call a part."""
IDS = [str(row) for row in ROWS]


def patterns() -> list[Any]:
    found = []

    def walk(items: Any) -> None:
        for item in items:
            if hasattr(item, "url_patterns"):
                walk(item.url_patterns)
            elif str(item.name).startswith(PREFIX):
                found.append(item)

    walk(get_resolver().url_patterns)
    return found


def test_every_method_of_every_address_has_a_row() -> None:
    there = {
        (pattern.name, method)
        for pattern in patterns()
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(pattern.callback.cls, method)
    }
    assert there == {(row.name, row.method) for row in ROWS}
    assert len(ROWS) == len({(row.name, row.method) for row in ROWS})


def test_every_view_takes_tokens_and_counts_requests() -> None:
    for pattern in patterns():
        assert pattern.callback.by_token and pattern.callback.writes_by_token, pattern.name
        assert issubclass(pattern.callback.cls, json_view.View), pattern.name


def test_scopes_of_the_table_are_those_of_access() -> None:
    assert {row.scope for row in ROWS} <= {"", *rights.SCOPES}
    given = set().union(*rights.SCOPES.values())
    assert given.isdisjoint({"run.approve", "spec.review", "spec.protect", "team.manage", "run.delete"})


def program(user: Any, *scopes: str, team: Any = None, specs: Any = ()) -> Client:
    secret = tokens.make(user, "ci", 7, team, scopes, specs)[1]
    return Client(headers={"authorization": f"Bearer {secret}"})


@pytest.fixture(scope="module")
def world(first_cast: Any) -> dict[str, Any]:
    """Who asks, and what stands in addresses: made once."""
    cast = first_cast
    parts = world_of(cast)
    Spec.objects.filter(pk=cast.other_spec.pk).update(slug="other")
    people = {role: cast.client(name) for role, name in PEOPLE.items()}
    programs = {role: program(cast[name], *rights.SCOPES, team=cast.team) for role, name in PEOPLE.items()}
    scoped = {scope: program(cast["alice"], scope) for scope in rights.SCOPES}
    paired = {also: program(cast["alice"], "admin", also) for also in ("start", "edit")}
    limited = {
        spec: program(cast["alice"], *rights.SCOPES, team=cast.team, specs=[spec])
        for spec in ("small", "another")
    }
    stranger = {"person": cast.client("charlie"), "program": program(cast["charlie"], *rights.SCOPES)}
    Token.objects.update(used_on=timezone.now().date())  # the first use of a day is written: not in each test
    return {
        "cast": cast, "parts": parts, "people": people, "programs": programs, "scoped": scoped,
        "stranger": stranger, "limited": limited, "paired": paired,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is queued, and no limit is in the way."""
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(limits, "READS_PER_MINUTE", 10_000)
    monkeypatch.setattr(limits, "WRITES_PER_MINUTE", 10_000)


def ask(client: Client, row: Row, parts: dict[str, Any]) -> Any:
    """The answer; nothing that was done stays."""
    args = {CALLED.get(part, part): parts[part] for part in row.parts}
    url = reverse(row.name, kwargs=args)
    with transaction.atomic():
        if row.method == "get":
            answer: Any = client.get(url)
        else:
            body = "" if row.body is None else json.dumps(row.body)
            answer = client.post(url, body, content_type=row.kind)
        transaction.set_rollback(True)
    return answer


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_roles_and_scopes(world: dict[str, Any], row: Row) -> None:
    """A person may as much as the role says; a program as much as its person may and a scope names."""
    parts = deepcopy(world["parts"])
    for role in Role:
        may = rights.RANK[role] >= rights.RANK[row.least]
        for who in ("people", "programs"):
            answer = ask(world[who][role], row, parts)
            assert answer.status_code in (row.answers if may else (403,)), (who, role, answer)
            if not may:
                assert answer.json()["code"] == "web.403"
    for scope, client in world["scoped"].items():
        answer = ask(client, row, parts)
        may = row.scope in ("", scope) and not row.also
        assert answer.status_code in (row.answers if may else (403,)), (scope, answer)
    if row.also:
        answer = ask(world["paired"][row.also], row, parts)
        assert answer.status_code in row.answers, "its two scopes"
        assert not answer.cookies


@pytest.mark.parametrize("row", [row for row in ROWS if row.parts], ids=str)
def test_tokens_for_some_specs(world: dict[str, Any], row: Row) -> None:
    """Of its specs and their runs all; of the team lists with these alone; of others' nothing."""
    mine, other = (ask(world["limited"][spec], row, world["parts"]) for spec in ("small", "another"))
    if row.listed:
        assert (mine.status_code, other.status_code) == (200, 200)
        assert b'"small"' in mine.content and b'"small"' not in other.content
        assert b"live-run" not in other.content
    elif row.parts == ("team",):
        for answer in (mine, other):
            assert (answer.status_code, b"for some specs alone" in answer.content) == (403, True)
    elif row.of_team:
        assert (mine.status_code, other.status_code) == (404, 404)
    else:
        assert mine.status_code in row.answers and other.status_code == 404


@pytest.mark.parametrize("row", [row for row in ROWS if row.parts], ids=str)
def test_a_stranger_learns_nothing(world: dict[str, Any], row: Row) -> None:
    """What is another's and what is not there are the same 404, by every way that leads to it."""
    parts = world["parts"]
    for client in world["stranger"].values():
        there = ask(client, row, parts)
        missing = ask(client, row, {**parts, "team": "no-such-team"})
        assert there.status_code == missing.status_code == 404
        assert there.content == missing.content and there["Content-Type"] == "application/problem+json"
        if len(row.parts) > 1:
            own = {**parts, "team": world["cast"].other_team.slug}
            assert ask(client, row, own).status_code == 404, "through one's own team"
    alice = world["scoped"]["look"]
    if len(row.parts) > 1:
        key = row.parts[-1]
        gone = {**parts, key: 999 if isinstance(parts[key], int) else "none"}
        assert ask(alice, row, gone).status_code in (404, 403 if row.scope else 404)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_who_is_nobody_is_told_of_tokens(world: dict[str, Any], row: Row) -> None:
    expired = program(world["cast"]["alice"])
    Token.objects.filter(pk=Token.objects.latest("pk").pk).update(ends_at=timezone.now() - timedelta(1))
    for client in (Client(), Client(headers={"accept": "text/html"}), expired):
        answer = ask(client, row, world["parts"])
        assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
        assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", sorted({row.name for row in ROWS}))
def test_methods_that_an_address_has_not(world: dict[str, Any], name: str) -> None:
    rows = {row.method: row for row in ROWS if row.name == name}
    parts, row = world["parts"], next(iter(rows.values()))
    args = {CALLED.get(part, part): parts[part] for part in row.parts}
    client = world["scoped"]["admin"]
    for method in ("get", "post", "put", "patch", "delete"):
        if method not in rows:
            answer = getattr(client, method)(reverse(name, kwargs=args))
            assert (answer.status_code, answer.json()["code"]) == (405, "web.405"), method


def test_a_token_of_one_team_reaches_no_other(world: dict[str, Any]) -> None:
    cast = world["cast"]
    cast.other_team.memberships.create(user=cast["alice"], role=ADMIN)
    client = program(cast["alice"], "admin", team=cast.other_team)
    row = next(row for row in ROWS if row.name == "spak-api-runs")
    assert ask(client, row, world["parts"]).status_code == 404
    assert ask(client, row, {"team": cast.other_team.slug}).status_code == 200
    assert row.least == VIEWER
