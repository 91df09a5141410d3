"""Reviews in the API: a program proposes, revises, comments, queues and merges; it never approves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs_kit import do
from spakweb.store.reviews.models import Patch, Verdict
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, checks, queue_steps
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import save_version
from spakweb.work.teams import tokens

SPEC = "/api/v1/teams/kernel-tuners/specs/small/"
ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'


def program(cast: Any, who: str, *scopes: str) -> Client:
    _, secret = tokens.make(cast[who], "ci", 7, cast.team, list(scopes))
    return Client(headers={"authorization": f"Bearer {secret}"})


@pytest.fixture
def ci(cast: Any) -> Client:
    """A program of bob's with the scope review."""
    return program(cast, "bob", "review")


def post(client: Client, address: str, body: Any = None, **headers: str) -> Any:
    text = json.dumps({} if body is None else body)
    return client.post(SPEC + address, text, content_type="application/json", headers=headers)


def get(client: Client, address: str) -> Any:
    return client.get(SPEC + address).json()


@pytest.fixture
def patch(cast: Any) -> Patch:
    """Bob's, with two edits."""
    text = cast.spec.head.text.replace(ONE, ONE.replace('"."', '"a"')).replace(TWO, TWO.replace('"."', '"b"'))
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")


def test_patches_are_listed_by_pages_and_state(
    cast: Any, ci: Client, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spakweb.face.api.reading.PAGE", 2)
    for number in range(3):
        actions.propose(cast["bob"], cast.spec, cast.spec.head.text + f"// {number}\n", 1, f"p{number}")
    actions.close(cast["bob"], patch, 1)
    first = get(ci, "patches/")
    assert [one["number"] for one in first["patches"]] == [4, 3]
    second = ci.get(first["next"]).json()
    assert [one["number"] for one in second["patches"]] == [2, 1] and second["next"] is None
    assert [one["number"] for one in get(ci, "patches/?state=closed")["patches"]] == [1]
    assert get(ci, "patches/?state=open")["next"].endswith("?state=open&before=3")
    whole = get(ci, "patches/4/")
    assert first["patches"][0] == {
        name: whole[name] for name in whole if name not in ("checks", "missing", "queue")
    }
    assert ci.get(SPEC + "patches/?state=none").status_code == 400


def test_lists_read_no_texts_and_ask_as_often_for_many(cast: Any, ci: Client, patch: Patch) -> None:
    """Texts are long: a list of patches or revisions would have all of them in memory."""
    get(ci, "patches/")  # the first use of a token writes

    def asked(address: str) -> tuple[int, str]:
        with CaptureQueriesContext(connection) as queries:
            assert ci.get(SPEC + address).status_code == 200
        return len(queries), " ".join(one["sql"] for one in queries)

    few = {address: asked(address)[0] for address in ("patches/", "patches/1/revisions/")}
    for number in range(5):
        actions.propose(cast["bob"], cast.spec, cast.spec.head.text + f"// {number}\n", 1, f"p{number}")
        actions.revise(cast["bob"], patch, number + 1, patch.latest.text + f"// {number}\n")
    for address, count in few.items():
        many, said = asked(address)
        assert many == count and '"reviews_revision"."text"' not in said, address


def test_a_patch_is_revised_and_an_edit_dropped(cast: Any, ci: Client, patch: Patch) -> None:
    found = get(ci, "patches/1/revisions/1/")
    assert [(one["number"], one["old"], one["new"]) for one in found["edits"]] == [
        (1, ["    " + ONE], ["    " + ONE.replace('"."', '"a"')]),
        (2, ["    " + TWO], ["    " + TWO.replace('"."', '"b"')]),
    ]
    assert found["text"] == patch.latest.text and found["edits"][0]["new_line"] == 4
    body = {"revision": 1, "edit": 2, "why": "Not there"}
    made = post(ci, "patches/1/drop-edit/", body, **{"Idempotency-Key": "d"})
    again = post(ci, "patches/1/drop-edit/", body, **{"Idempotency-Key": "d"})
    assert made.status_code == again.status_code == 201 and made.json() == again.json()
    assert made["Location"].endswith("/patches/1/revisions/2/") and made.json()["revision"] == 2
    assert patch.latest.text == cast.spec.head.text.replace(ONE, ONE.replace('"."', '"a"'))
    late = post(ci, "patches/1/revisions/", {"revision": 1, "text": cast.spec.head.text})
    assert (late.status_code, late.json()["code"]) == (409, "web.patch_moved")
    wrong = post(ci, "patches/1/drop-edit/", {"revision": 2, "edit": 9})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "web.patch_edit")
    text = patch.latest.text + "// more\n"
    assert post(ci, "patches/1/revisions/", {"revision": 2, "text": text, "why": "More"}).status_code == 201
    rows = get(ci, "patches/1/revisions/")["revisions"]
    assert [(one["number"], one["why"]) for one in rows] == [
        (3, "More"), (2, "Without edit 2: Not there"), (1, "First revision"),
    ]  # fmt: skip
    assert ci.get(SPEC + "patches/1/revisions/9/").status_code == 404


def test_comments_are_made_answered_resolved_and_applied(cast: Any, ci: Client, patch: Patch) -> None:
    line = patch.latest.text.split("\n").index("    " + ONE.replace('"."', '"a"')) + 1
    wanted = "    " + ONE.replace('"."', '"c"')
    body = {"text": "Rather c.", "line": line, "revision": 1, "suggestion": wanted}
    made = post(ci, "patches/1/comments/", body)
    assert made.status_code == 201 and (made.json()["line"], made.json()["suggestion"]) == (line, wanted)
    key = made.json()["id"]
    answer = post(ci, "patches/1/comments/", {"text": "Yes.", "answers": key}).json()
    assert answer["answers"] == key
    applied = post(ci, f"patches/1/comments/{key}/apply/", {"revision": 1})
    assert applied.status_code == 201 and wanted in patch.latest.text
    found = {one["id"]: one for one in get(ci, "patches/1/comments/")["comments"]}
    assert (found[key]["outdated"], found[key]["resolved"]) == (True, True)
    opened = post(ci, f"patches/1/comments/{answer['id']}/resolve/", {"resolved": False})
    assert opened.status_code == 200 and not get(ci, "patches/1/comments/")["comments"][0]["resolved"]
    assert post(ci, "patches/1/comments/", {"text": " "}).json()["code"] == "web.comment"
    assert post(ci, "patches/1/comments/", {"text": "x" * 4001}).status_code == 422
    assert post(ci, "patches/1/comments/", {"text": "x", "line": 999}).json()["code"] == "web.comment_place"
    for address in ("comments/999999/resolve/", "comments/999999/apply/"):
        body = {"resolved": True} if "resolve" in address else {"revision": 2}
        assert post(ci, f"patches/1/{address}", body).status_code == 404


def test_it_is_merged_with_the_approvals_of_people_alone(cast: Any, ci: Client, patch: Patch) -> None:
    early = post(ci, "patches/1/merge/", {"revision": 1})
    assert (early.status_code, early.json()["code"]) == (409, "web.patch_waits")
    for verdict in ("approve", "verdicts", "judge"):
        answer = post(program(cast, "rita", "review", "edit"), f"patches/1/{verdict}/", {"revision": 1})
        assert answer.status_code in (404, 405)
    assert not Verdict.objects.exists()
    actions.judge(cast["rita"], patch, 1, True, "Good.")
    said = get(ci, "patches/1/verdicts/")["verdicts"]
    assert [(one["by"], one["revision"], one["approves"], one["counts"], one["text"]) for one in said] == [
        ("rita", 1, True, True, "Good.")
    ]
    merged = post(ci, "patches/1/merge/", {"revision": 1})
    assert merged.status_code == 200 and merged.json()["merged_version"] == 2
    twice = post(ci, "patches/1/merge/", {"revision": 1})
    assert (twice.status_code, twice.json()["code"]) == (409, "web.patch_closed")
    back = post(ci, "patches/1/revert/", None, **{"Idempotency-Key": "r"})
    assert back.status_code == 201 and back.json()["title"] == "Revert patch 1: Look elsewhere"
    assert post(ci, "patches/1/revert/", None, **{"Idempotency-Key": "r"}).json() == back.json()
    assert Patch.objects.count() == 2
    closed = post(ci, "patches/2/close/", {"revision": 1})
    assert closed.status_code == 200 and closed.json()["state"] == "closed"


def test_it_is_queued_and_taken_out(cast: Any, ci: Client, patch: Patch) -> None:
    assert get(ci, "queue/") == {"enabled": False, "waiting": []}
    assert post(ci, "patches/1/queue/", {"revision": 1}).json()["code"] == "web.patch_queue"
    protect(cast["alice"], cast.spec, 1, queue=True)
    assert post(ci, "patches/1/queue/", {"revision": 1}).json()["code"] == "web.patch_waits"
    actions.judge(cast["rita"], Patch.objects.get(), 1, True)
    assert get(ci, "patches/1/")["queue"] is None
    for _ in range(2):
        queued = post(ci, "patches/1/queue/", {"revision": 1})
        assert (queued.status_code, queued.json()["queue"]) == (202, {"state": "waiting", "why": ""})
    assert post(ci, "patches/1/merge/", {"revision": 1}).json()["code"] == "web.patch_queue"
    [place] = get(ci, "queue/")["waiting"]
    assert (place["place"], place["patch"], place["revision"], place["by"]) == (1, 1, 1, "bob")
    for _ in range(2):
        assert post(ci, "patches/1/unqueue/").status_code == 200
    assert get(ci, "queue/") == {"enabled": True, "waiting": []}
    assert get(ci, "patches/1/")["queue"] == {"state": "left", "why": "bob took it out"}


def test_what_a_program_queued_is_merged_by_the_queue(
    cast: Any, ci: Client, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its person queued it, and has to be able to merge when its turn comes."""
    protect(cast["alice"], cast.spec, 1, queue=True)
    actions.judge(cast["rita"], Patch.objects.get(), 1, True)
    do(checks.CHECK, patch.latest.pk)
    post(ci, "patches/1/queue/", {"revision": 1})
    assert queue_steps.step(cast.spec.pk)
    assert get(ci, "patches/1/")["merged_version"] == 2


def test_it_is_brought_up_to_date_and_checked_again(cast: Any, ci: Client, patch: Patch) -> None:
    assert post(ci, "patches/1/update/", {"revision": 1}).status_code == 200 and patch.latest.number == 1
    save_version(cast["alice"], cast.spec, "// first\n" + cast.spec.head.text, 1)
    made = post(ci, "patches/1/update/", {"revision": 1})
    assert made.status_code == 201 and (made.json()["revision"], made.json()["base_version"]) == (2, 2)
    assert patch.latest.text.startswith("// first\n") and '"b"' in patch.latest.text
    spec = Spec.objects.get(pk=cast.spec.pk)
    save_version(cast["alice"], spec, spec.head.text.replace(ONE, ONE.replace('"."', '"z"')), 2)
    conflict = post(ci, "patches/1/update/", {"revision": 2})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "web.patch_conflict")
    patch.latest.checks.update(state="failed")
    answer = post(ci, "patches/1/check/", {"revision": 2})
    assert answer.status_code == 202 and {one["state"] for one in answer.json()["checks"]} == {"queued"}


WRITES = (
    ("revisions/", {"revision": 1, "text": "x"}),
    ("drop-edit/", {"revision": 1, "edit": 1}),
    ("update/", {"revision": 1}),
    ("check/", {"revision": 1}),
    ("comments/", {"text": "x"}),
    ("merge/", {"revision": 1}),
    ("queue/", {"revision": 1}),
    ("unqueue/", {}),
    ("close/", {"revision": 1}),
    ("revert/", {}),
)


@pytest.mark.parametrize(("address", "body"), WRITES)
def test_it_needs_the_scope_and_the_role(cast: Any, patch: Patch, address: str, body: Any) -> None:
    """An editor's token with the scope review; strangers learn nothing."""
    everything_else = program(cast, "bob", "start", "answer", "edit")
    assert post(everything_else, "patches/1/" + address, body).status_code == 403
    proposed = {"text": "x", "base_version": 1, "title": "t"}
    assert post(everything_else, "patches/", proposed).status_code == 403
    assert post(program(cast, "vera", "review"), "patches/1/" + address, body).status_code == 403
    _, secret = tokens.make(cast["charlie"], "ci", 7, cast.other_team, ["review"])
    stranger = Client(headers={"authorization": f"Bearer {secret}"})
    assert post(stranger, "patches/1/" + address, body).status_code == 404
    assert post(program(cast, "bob", "review"), "patches/99/" + address, body).status_code == 404
    assert Patch.objects.get().revisions.count() == 1 and not Patch.objects.get().comments.exists()


def test_looking_needs_no_scope(cast: Any, patch: Patch) -> None:
    viewer = program(cast, "vera")
    for address in (
        "patches/", "patches/1/revisions/", "patches/1/revisions/1/", "patches/1/verdicts/",
        "patches/1/comments/", "queue/",
    ):  # fmt: skip
        assert viewer.get(SPEC + address).status_code == 200
