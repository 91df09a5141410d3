"""The API: what each answer holds, problems in words, idempotency, waiting, and the schema."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from openapi_kit import FILE, read
from run_rows_kit import begun
from spakweb.ground.audit.models import Event
from spakweb.store.api.models import KeptAnswer
from spakweb.store.reviews.models import Patch
from spakweb.store.runs.models import Command, Run, State
from spakweb.work.runs import actions
from spakweb.work.specs.actions import set_tag
from spakweb.work.teams import tokens

HERE = "/api/v1/teams/kernel-tuners/"
SPEC = HERE + "specs/small/"
INPUTS = 'AGENT a LEVEL 1 { INPUTS { size: int = 2 } START -> b TASK b { GOAL: "x" } }'


@pytest.fixture
def ci(cast: Any) -> Client:
    """A program with all scopes, of bob's."""
    _, secret = tokens.make(cast["bob"], "ci", 7, cast.team, ["start", "answer", "review"])
    return Client(headers={"authorization": f"Bearer {secret}"})


def post(client: Client, address: str, body: Any = None, **headers: str) -> Any:
    text = body if isinstance(body, str) else json.dumps({} if body is None else body)
    return client.post(address, text, content_type="application/json", headers=headers)


# ---- looking


def test_teams_specs_versions_and_runs(cast: Any, ci: Client) -> None:
    assert [one["slug"] for one in ci.get("/api/v1/teams/").json()["teams"]] == [cast.team.slug]
    set_tag(cast["alice"], cast.spec.head, "gold")
    spec = ci.get(HERE + "specs/").json()["specs"][0]
    assert (spec["slug"], spec["head"], spec["tags"], spec["protected"]) == ("small", 1, {"gold": 1}, False)
    assert ci.get(SPEC).json() == spec
    version = ci.get(SPEC + "versions/1/").json()
    assert (version["text"], version["hash"]) == (cast.spec.head.text, spec["hash"])
    for number in range(3):
        Run.objects.create(team=cast.team, version=cast.spec.head, key=f"r{number}", name="small")
    found = ci.get(HERE + "runs/?spec=small&label=&state=&colour=red&mine=yes").json()
    assert found["type"] == "urn:spak:error:web.run_filter"
    assert found["detail"] == "The filters cannot be used: colour, mine."
    found = ci.get(HERE + "runs/?spec=small&label=").json()  # an empty filter is none
    assert [one["key"] for one in found["runs"]] == ["r2", "r1", "r0"] and found["next"] is None
    assert found["runs"][0] == ci.get(HERE + "runs/r2/").json()


def test_what_a_token_does_is_told_of_the_token(cast: Any, ci: Client) -> None:
    """The audit log names it, and the role of a person is not the token's scopes."""
    [team] = ci.get("/api/v1/teams/").json()["teams"]
    assert team["role"] == "editor"
    assert post(ci, SPEC + "runs/").status_code == 201
    event = Event.objects.get(action="run.started")
    assert (event.actor, event.detail["token"]["name"]) == (cast["bob"], "ci")
    assert "by the token ci" in cast.client("alice").get("/t/kernel-tuners/audit/").content.decode()


def test_pages_of_runs_lead_to_the_next(cast: Any, ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.face.api.reading.PAGE", 2)
    for number in range(5):
        Run.objects.create(team=cast.team, version=cast.spec.head, key=f"r{number}", name="small")
    seen, address = [], HERE + "runs/?spec=small"
    while address:
        found = ci.get(address).json()
        seen += [one["key"] for one in found["runs"]]
        address = found["next"]
    assert seen == ["r4", "r3", "r2", "r1", "r0"]


def test_records_are_those_of_the_ledger(cast: Any, ci: Client) -> None:
    run = begun(cast.team, cast.spec.head, "live-run")
    found = ci.get(HERE + "runs/live-run/records/").json()
    assert [one["seq"] for one in found["records"]] == list(range(run.count))
    assert found["next"].endswith(f"?after={run.count - 1}")
    Run.objects.filter(pk=run.pk).update(state=State.FAILED, ended_at=timezone.now())
    assert ci.get(found["next"]).json() == {"records": [], "next": None}


def test_junit_of_a_run(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run")
    answer = ci.get(HERE + "runs/live-run/junit.xml")
    suite = ElementTree.fromstring(answer.content).find("testsuite")
    assert (
        suite is not None
        and suite.get("errors") == "1"
        and answer["Content-Type"].startswith("application/xml")
    )
    assert suite.findall("testcase")[-1].get("name") == "the run"


def test_a_text_is_checked_as_in_the_editor(cast: Any, ci: Client) -> None:
    good = post(ci, SPEC + "check/", {"text": cast.spec.head.text}).json()
    assert good["ok"] is True
    bad = post(ci, SPEC + "check/", {"text": "TASK a { NEXT { success -> nowhere } }"}).json()
    assert bad["ok"] is False and bad["findings"][0]["line"] == 1


# ---- starting


def test_a_run_starts_from_version_tag_and_inputs(cast: Any, ci: Client, saved: Any) -> None:
    answer = post(ci, SPEC + "runs/", {"labels": ["ci"], "queue": "slow"})
    run = Run.objects.get()
    assert answer.status_code == 201 and answer["Location"].endswith(f"/runs/{run.key}/")
    assert answer.json() == ci.get(answer["Location"]).json()
    assert (run.version.number, run.labels, run.queue, run.made_by.username) == (1, ["ci"], "slow", "bob")
    set_tag(cast["alice"], cast.spec.head, "gold")
    saved(INPUTS)
    assert post(ci, SPEC + "runs/", {"tag": "gold"}).json()["version"] == 1
    assert post(ci, SPEC + "runs/", {"inputs": {"size": "3"}}).json()["inputs"] == {"size": "3"}


REFUSED: dict[str, tuple[Any, int, str]] = {
    "no JSON": ("{", 400, "web.request"),
    "no object": ("[]", 400, "web.request"),
    "not UTF-8": ("\udcff", 400, "web.request"),
    "an unknown member": ({"lables": []}, 422, "web.request"),
    "a wrong type": ({"version": "new"}, 422, "web.request"),
    "a nested wrong type": ({"labels": [{}]}, 422, "web.request"),
    "no such version": ({"version": 9}, 422, "web.run_version"),
    "no such tag": ({"tag": "none"}, 422, "web.run_version"),
    "version and tag": ({"version": 1, "tag": "gold"}, 422, "web.request"),
    "an input that is not declared": ({"inputs": {"x": "1"}}, 422, "web.run_input"),
    "an odd queue": ({"queue": "a/b"}, 422, "web.request"),
    "an odd sandbox": ({"sandbox": "none at all"}, 422, "web.request"),
    "files that are not there": ({"files": "x" * 43}, 410, "web.run_files"),
    "too many labels": ({"labels": [str(n) for n in range(30)]}, 400, "web.run_labels"),
    "NUL": ({"labels": ["a\0b"]}, 422, "web.request"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_start_is_a_problem_in_words(ci: Client, name: str) -> None:
    body, status, code = REFUSED[name]
    if name == "not UTF-8":
        answer = ci.post(SPEC + "runs/", b'{"a": "\xff"}', content_type="application/json")
    else:
        answer = post(ci, SPEC + "runs/", body)
    found = answer.json()
    assert (answer.status_code, found["code"]) == (status, code), found
    assert answer["Content-Type"] == "application/problem+json" and found["status"] == status
    assert found["detail"] and not Run.objects.exists()


def test_other_problems(cast: Any, ci: Client) -> None:
    for address in (HERE + "runs/none/", "/api/v1/teams/next-door/specs/", "/api/v1/none/"):
        assert ci.get(address).json()["code"] == "web.404", address
    assert ci.delete(SPEC).status_code == 405
    assert ci.post(SPEC + "runs/", {"version": 1}).status_code == 415
    large = post(ci, SPEC + "runs/", json.dumps({"labels": ["x" * (5 << 20)]}))
    assert (large.status_code, large.json()["code"]) == (413, "web.text_size")
    wrong = Client(headers={"authorization": "Bearer spak_no"}).get(SPEC)
    assert (wrong.status_code, wrong.json()["code"]) == (401, "web.token")
    assert wrong["Content-Type"] == "application/problem+json"


def test_a_form_of_another_site_starts_nothing(cast: Any) -> None:
    """A session counts, with a form's token as on pages."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["bob"])
    assert client.get(SPEC).status_code == 200
    assert post(client, SPEC + "runs/").status_code == 403 and not Run.objects.exists()


def test_files_are_brought_once_and_begin_a_run(cast: Any, ci: Client) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", "text")
    sent = {"content_type": "application/zip"}
    one, two = (ci.post(SPEC + "files/?name=mine.zip", data.getvalue(), **sent) for _ in range(2))
    assert one.status_code == two.status_code == 201 and one.json()["hash"] == two.json()["hash"]
    assert post(ci, SPEC + "runs/", {"files": one.json()["hash"]}).json()["files"] == one.json()["hash"]
    bad = ci.post(SPEC + "files/", b"no zip", **sent)
    assert bad.status_code == 400 and bad.json()["code"].startswith("upload.")
    assert post(ci, SPEC + "runs/", {"files": "none"}).json()["files"] is None


# ---- once


def test_the_same_key_starts_one_run(ci: Client) -> None:
    one, two = (post(ci, SPEC + "runs/", {"labels": ["a"]}, **{"Idempotency-Key": "k1"}) for _ in range(2))
    assert (one.status_code, two.status_code, one.json()["key"]) == (201, 201, two.json()["key"])
    assert two["Idempotent-Replayed"] == "true" and two["Location"] == one["Location"]
    assert not one.has_header("Idempotent-Replayed") and Run.objects.count() == 1
    other = post(ci, SPEC + "runs/", {"labels": ["b"]}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (422, "web.idempotency_body")
    assert post(ci, SPEC + "runs/", {"labels": ["b"]}, **{"Idempotency-Key": "k2"}).status_code == 201


def test_a_request_that_is_under_way_is_not_begun_twice(ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request comes again while the first one starts its run."""
    seen: list[Any] = []
    start = actions.start

    def slow(*args: Any, **more: Any) -> Run:
        seen.append(post(ci, SPEC + "runs/", {}, **{"Idempotency-Key": "k"}))
        seen.append(post(ci, SPEC + "runs/", {"labels": ["b"]}, **{"Idempotency-Key": "k"}))
        monkeypatch.setattr(actions, "start", start)
        return start(*args, **more)

    monkeypatch.setattr(actions, "start", slow)
    made = post(ci, SPEC + "runs/", {}, **{"Idempotency-Key": "k"})
    assert (made.status_code, Run.objects.count()) == (201, 1)
    assert [one.status_code for one in seen] == [409, 409]
    assert seen[0].json()["code"] == "web.idempotency_busy" and seen[0]["Retry-After"] == "1"
    again = post(ci, SPEC + "runs/", {}, **{"Idempotency-Key": "k"})
    assert (again.json()["key"], again["Idempotent-Replayed"]) == (made.json()["key"], "true")


def test_what_was_refused_is_kept_for_nobody(cast: Any, ci: Client) -> None:
    header = {"Idempotency-Key": "k"}
    many = {"labels": [str(number) for number in range(30)]}
    assert post(ci, SPEC + "runs/", many, **header).status_code == 400
    assert not KeptAnswer.objects.exists()
    for key in ("", "x" * 201, "é"):
        assert (
            post(ci, SPEC + "runs/", {}, **{"Idempotency-Key": key}).json()["code"] == "web.idempotency_key"
        )
    post(ci, SPEC + "runs/", {}, **header)
    KeptAnswer.objects.update(made_at=timezone.now() - timezone.timedelta(hours=25))
    post(ci, SPEC + "runs/", {}, **header)
    assert Run.objects.count() == 2, "after a day the key is free"
    _, secret = tokens.make(cast["bob"], "other", 7, cast.team, ["start"])
    post(Client(headers={"authorization": f"Bearer {secret}"}), SPEC + "runs/", {}, **header)
    assert Run.objects.count() == 3, "another token's key is another key"


# ---- control, answers, patches


def test_control_and_answers(cast: Any, ci: Client) -> None:
    run = begun(cast.team, cast.spec.head, "live-run")
    here = HERE + "runs/live-run/"
    for word in ("pause", "cancel"):
        assert ci.post(f"{here}{word}/").status_code == 202
        assert Run.objects.get().wanted == word
    Run.objects.update(wanted="", state=State.WAITING, summary={"waiting": {"id": "q1", "kind": "query"}})
    assert ci.get(here).json()["asks"] == "q1"
    assert post(ci, here + "answer/", {"of": "q1", "text": " as it is \n"}).status_code == 202
    assert Command.objects.get(run=run).body == {"of": "q1", "text": " as it is \n"}
    late = post(ci, here + "answer/", {"of": "q0", "text": "x"})
    assert (late.status_code, late.json()["code"]) == (409, "web.run_answered")


def test_an_answer_is_no_approval(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run")
    Run.objects.update(state=State.WAITING, summary={"waiting": {"id": "q1", "kind": "approval"}})
    for client in (ci, cast.client("bob")):
        answer = post(client, HERE + "runs/live-run/answer/", {"of": "q1", "text": "yes"})
        assert (answer.status_code, answer.json()["code"]) == (409, "web.run_approval")
    assert not Command.objects.exists()


HUGE = "9" * 400


def test_huge_and_odd_numbers_are_problems_and_no_faults(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run")
    for body in (
        f'{{"version": {HUGE}}}',
        f'{{"version": 1e{"9" * 3}}}',
        '{"version": 99999999999999999999}',
    ):
        assert post(ci, SPEC + "runs/", body).status_code in (400, 422), body
    for path in (f"versions/{HUGE}/", f"patches/{HUGE}/"):
        assert ci.get(SPEC + path).json()["code"] == "web.404"
    for query in (f"after={HUGE}", "after=-1", "after=x", "wait=x&after=1"):
        assert ci.get(f"{HERE}runs/live-run/records/?{query}").status_code == 200
    for path in ("", "records/", "export.jsonl", "log.txt", "changes.patch", "report.html", "files/main.c"):
        for query in ("colour=", "=", "waits=60"):
            answer = ci.get(f"{HERE}runs/live-run/{path}?{query}")
            assert (answer.status_code, answer.json()["code"]) == (400, "web.filter"), (path, query)
    assert ci.get(HERE + f"runs/?version={HUGE}").status_code == 400
    assert ci.get(HERE + "runs/?before=%00").json()["code"] == "web.404"
    patch = {"text": "x", "base_version": int("9" * 19), "title": "t"}
    assert post(ci, SPEC + "patches/", patch).json()["code"] in ("web.patch_base", "web.request")


def test_a_patch_is_proposed_and_says_what_it_waits_for(cast: Any, ci: Client) -> None:
    text = cast.spec.head.text.replace('"."', '"docs"', 1)
    body = {"text": text, "base_version": 1, "title": "Look elsewhere"}
    made = post(ci, SPEC + "patches/", body, **{"Idempotency-Key": "p"})
    again = post(ci, SPEC + "patches/", body, **{"Idempotency-Key": "p"})
    assert (made.status_code, again.json()) == (201, made.json()) and Patch.objects.count() == 1
    found = ci.get(made["Location"]).json()
    assert (found["state"], found["missing"]) == ("open", ["1 more approval"])
    same = post(ci, SPEC + "patches/", {**body, "text": cast.spec.head.text})
    assert (same.status_code, same.json()["code"]) == (409, "web.patch_empty")


# ---- limits, waiting, the schema


def test_too_many_requests_are_told_when_to_come_again(ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.face.api.limits.READS_PER_MINUTE", 3)
    answers = [ci.get(SPEC) for _ in range(5)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["code"] == "web.rate" and int(answers[-1]["Retry-After"]) > 0
    assert post(ci, SPEC + "runs/").status_code == 201, "writes are counted apart"


@pytest.mark.parametrize("wait", ["0", "-1", "x", "", "99999999999999999999"])
def test_an_odd_wait_of_a_run_that_ended_answers_at_once(cast: Any, ci: Client, wait: str) -> None:
    Run.objects.create(team=cast.team, key="e", name="e", state=State.FAILED, ended_at=timezone.now())
    assert ci.get(f"{HERE}runs/e/?wait={wait}").json()["ended"] is True


def test_the_schema_in_the_docs_is_the_one_of_the_code() -> None:
    """Write it anew: manage.py spectacular --file docs/openapi.yaml"""
    out = io.StringIO()
    call_command("spectacular", stdout=out, fail_on_warn=True)
    assert read(out.getvalue()) == read(FILE.read_text())


def test_no_text_of_the_schema_may_hold_a_null_character() -> None:
    patterns = set(re.findall(r"pattern: (\^.+)", FILE.read_text()))
    assert len(patterns) > 3 and not [one for one in patterns if re.search(one, "\0")]
