"""A token for named specs, and specs that these import: their text and their existence stay hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from api_table import ROWS
from spakweb.ground import rights
from spakweb.store.runs.models import Run, State
from spakweb.store.suites.models import Case
from spakweb.work.campaigns.actions import begin as begin_campaign
from spakweb.work.reviews.actions import propose
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.suites.actions import make
from spakweb.work.teams import tokens
from spakweb.work.worker import execute
from token_kit import program

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = 'TASK zebra {\n  // quagga\n  step two: tool.write_file { path: "size.txt" content: "3" }\n}\n'
MAIN = """\
IMPORT "shared_end.spak"
AGENT Main LEVEL 2 {
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> zebra }
  }
}
"""
MARKS = ("zebra", "quagga")
"""What only the imported text says; the spec's own text has the first, which its version and patches show."""
QUOTES = {
    "records", "events", "report", "report-page", "log", "export", "replay", "findings", "campaign-ledger",
    "live", "pack", "proof",
}  # fmt: skip


@pytest.fixture
def main(cast: Any, ground: None) -> Any:
    create_spec(cast["bob"], cast.team, "shared_end", HIDDEN)
    return create_spec(cast["alice"], cast.team, "main", MAIN)


@pytest.fixture
def run(cast: Any, main: Any) -> Run:
    made = actions.start(cast["bob"], main)
    execute.advance(made.key)
    made.refresh_from_db()
    assert made.state == State.SUCCEEDED, made.reason
    return made


def of(cast: Any, *specs: str) -> Client:
    return program(tokens.make(cast["alice"], "ci", 7, cast.team, rights.SCOPES, specs)[1])


def body_of(answer: Any) -> str:
    return b"".join(answer).decode(errors="replace")


def test_no_address_shows_a_token_what_a_run_took_in(cast: Any, main: Any, run: Run) -> None:
    """Every address of the API and of pages that a token reaches, for one that names the spec alone."""
    patch = propose(cast["bob"], main, MAIN.replace("one:", "first:"), 1, "Rename")
    suite = make(cast["bob"], cast.team, "nightly")
    case = {"name": "c", "content_hash": "h", "split": "gate", "state": "succeeded"}
    Case.objects.create(suite=suite, made_by=cast["bob"], **case)
    begin_campaign(cast["bob"], main.head, suite)
    parts = {"team": cast.team.slug, "spec": "main", "run": run.key, "number": 1, "revision": 1}
    named, both = of(cast, "main"), of(cast, "main", "shared-end")
    seen = set()
    for row in ROWS:
        if row.method != "get" and row.name != "spak-api-replay":
            continue
        given = {part: {**parts, "number": 1, "campaign": 1}.get(part) for part in row.parts}
        if not {"spec", "run", "campaign"} & given.keys() or None in given.values():
            continue
        called = {{"campaign": "number"}.get(part, part): value for part, value in given.items()}
        url, name = reverse(row.name, kwargs=called), row.name.removeprefix("spak-api-")
        answers = [
            client.get(url)
            if row.method == "get"
            else client.post(url, "{}", content_type="application/json")
            for client in (named, both)
        ]
        told = body_of(answers[0])
        if name in QUOTES:
            seen.add(name)
            assert (answers[0].status_code, json.loads(told)["code"]) == (403, "web.token_imports"), name
            if name not in ("campaign-ledger", "proof"):  # there is none of either
                assert answers[1].status_code in (200, 202, 204), name
        else:
            assert answers[0].status_code == answers[1].status_code == 200, name
        assert MARKS[1] not in told, name
        if name not in ("version", "patch-revision", "diff"):  # these have the spec's own text
            assert MARKS[0] not in told, name
    assert seen == QUOTES and patch.number == 1


def test_what_is_left(cast: Any, run: Run) -> None:
    named, here = of(cast, "main"), f"/t/{cast.team.slug}/runs/{run.key}/"
    by_token = {
        item.name for item in _patterns(get_resolver().url_patterns)
        if getattr(item.callback, "by_token", False) and not str(item.name).startswith("spak-api-")
    }  # fmt: skip
    for name in sorted(by_token):
        for args in ({"team": cast.team.slug, "run": run.key}, {"team": cast.team.slug, "key": run.key}):
            try:
                url = reverse(name, kwargs=args)
            except Exception:
                continue
            answer = named.get(url)
            assert answer.status_code in (200, 403, 404), name
            assert not any(mark in body_of(answer) for mark in MARKS), name
    assert named.get(f"{here}export/").json()["code"] == "web.token_imports"
    junit = named.get(reverse("spak-api-junit", args=[cast.team.slug, run.key])).content.decode()
    assert 'tests="1" failures="0" errors="0"' in junit
    row = named.get(reverse("spak-api-run", args=[cast.team.slug, run.key])).json()
    assert (row["state"], row["task"]) == ("succeeded", "")
    files = named.get(reverse("spak-api-files", args=[cast.team.slug, run.key])).json()["files"]
    assert [one["name"] for one in files] == ["size.txt"]


def _patterns(items: Any) -> Any:
    for item in items:
        if hasattr(item, "url_patterns"):
            yield from _patterns(item.url_patterns)
        else:
            yield item


def test_a_run_may_be_started_and_forked_by_it(cast: Any, main: Any, run: Run) -> None:
    named, team = of(cast, "main"), cast.team.slug
    start = reverse("spak-api-start", args=[team, "main"])
    made = named.post(start, "{}", content_type="application/json")
    assert made.status_code == 201 and Run.objects.get(key=made.json()["key"]).takes_in == run.takes_in != []
    fork = reverse("spak-api-fork", args=[team, run.key])
    for body, status in (({}, 201), ({"task": "zebra"}, 403), ({"task": "horse"}, 403)):
        answer = named.post(fork, json.dumps(body), content_type="application/json")
        assert answer.status_code == status, body
        if status == 201:
            assert Run.objects.get(key=answer.json()["key"]).takes_in == run.takes_in


@pytest.mark.parametrize("way", ["check", "versions", "patches", "patch-revisions"])
def test_what_is_another_s_and_what_is_not_there_are_the_same(cast: Any, main: Any, way: str) -> None:
    """Whatever a program posts: no word and no state differs, and nothing is kept."""
    plain = create_spec(cast["alice"], cast.team, "plain", MAIN.replace('IMPORT "shared_end.spak"\n', "")
                        .replace("success -> zebra", "success -> done"))  # fmt: skip
    propose(cast["bob"], plain, plain.head.text.replace("one:", "first:"), 1, "Rename")
    named, answers = of(cast, "plain"), []
    create_spec(cast["bob"], cast.team, "hello", HIDDEN)  # a shipped example is called so, too
    for imported in ("shared_end.spak", "nothing_at.spak", "hello.spak", "coder.spak"):
        text = f'IMPORT "{imported}"\n{plain.head.text}'
        body = {"check": {"text": text}, "versions": {"text": text},
                "patches": {"text": text, "base_version": 1, "title": "More"},
                "patch-revisions": {"text": text, "revision": 1}}[way]  # fmt: skip
        args = [cast.team.slug, "plain", *([1] if way == "patch-revisions" else [])]
        headers = {"if-match": named.get(reverse("spak-api-versions", args=args[:2]))["ETag"]}
        url = reverse(f"spak-api-{way}", args=args)
        answer = named.post(url, json.dumps(body), content_type="application/json", headers=headers)
        answers.append((answer.status_code, answer.content.decode().replace(imported, "FILE")))
    assert len(set(answers)) == 1
    assert answers[0][0] == (200 if way == "check" else 403)
    plain.refresh_from_db()
    patch = plain.patches.get()
    assert (plain.head.number, patch.revisions.count()) == (1, 1)


def test_a_patch_of_people_shows_it_no_words_of_checks(cast: Any, main: Any) -> None:
    propose(cast["bob"], main, MAIN.replace("one:", "first:"), 1, "Rename")
    named, url = of(cast, "main"), reverse("spak-api-patch", args=[cast.team.slug, "main", 1])
    whole = of(cast, "main", "shared-end").get(url).json()
    shown = named.get(url).json()
    assert [one["state"] for one in shown["checks"]] == [one["state"] for one in whole["checks"]]
    assert {one["words"] for one in shown["checks"]} <= {
        "A token that names the imported specs too sees what it says."
    }
    assert bool(shown["missing"]) == bool(whole["missing"])
    close = reverse("spak-api-patch-close", args=[cast.team.slug, "main", 1])
    answer = named.post(close, '{"revision": 1}', content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "web.token_imports")


def test_what_an_older_run_took_in_is_not_guessed(cast: Any, run: Run) -> None:
    """Of a run from before this was written down nobody knows; the newest text may import other specs."""
    Run.objects.update(takes_in=None)
    save_version(cast["alice"], run.version.spec, MAIN.replace('IMPORT "shared_end.spak"\n', ""), 1)
    records = reverse("spak-api-records", args=[cast.team.slug, run.key])
    assert of(cast, "main", "shared-end").get(records).status_code == 403
    assert of(cast).get(records).status_code == 200


def test_what_counts_is_what_was_there_when_it_began(cast: Any, main: Any) -> None:
    """An import that came between the start and the beginning of a run is known to it."""
    made = actions.start(cast["bob"], main)
    deep = create_spec(
        cast["bob"], cast.team, "deep", 'TASK lion {\n  step l: tool.list_files { path: "." }\n}\n'
    )
    shared = cast.team.specs.get(slug="shared-end")
    save_version(cast["bob"], shared, f'IMPORT "deep.spak"\n{HIDDEN}', 1)
    execute.advance(made.key)
    made.refresh_from_db()
    assert made.takes_in == sorted([deep.pk, shared.pk])
    records = reverse("spak-api-records", args=[cast.team.slug, made.key])
    assert of(cast, "main", "shared-end").get(records).status_code == 403
    assert of(cast, "main", "shared-end", "deep").get(records).status_code == 200
