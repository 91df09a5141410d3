"""Approvals through the pages: who may, what is signed, two people at once, and what a denial does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from spak import canon
from spak.kernel.rules import Rules
from spak.ledger import verify
from spak.policy import approval
from spak.records import decode
from spakweb.face.runs import run_parts
from spakweb.ground.errors import Refused
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.import_law import only_shown
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import actions
from spakweb.work.teams import tokens
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
TIDY = '''\
AGENT Tidy LEVEL 2 {
  CONFIG { APPROVALS ask }
  POLICY """forbidden(A) :- tool(A, /run), !approved(A)."""
  START -> tidy
  TASK tidy {
    step make: tool.write_file { path: "build-2019/a.txt" content: "old" }
    step old: tool.run { cmd: ["rm", "-r", "build-2019"] }
    success: exit_code(old) == 0
  }
}
'''


ASKS = """\
AGENT Asks LEVEL 2 {
  START -> ask
  TASK ask { step word: llm.query { prompt_template: "A word?" output_var: word } }
}
"""


def as_program(user: Any, path: str, body: dict[str, str]) -> Any:
    _, secret = tokens.make(user, "ci", 7, None, ["answer"])
    headers = {"authorization": f"Bearer {secret}"}
    address = f"/api/v1/teams/kernel-tuners/{path}"
    return Client().post(address, json.dumps(body), content_type="application/json", headers=headers)


def post(client: Client, run: Run, decision: str, of: str = "") -> Any:
    address = reverse("spak-run-decide", kwargs={"team": run.team.slug, "run": run.key})
    return client.post(address, {"of": of or run.summary["waiting"]["id"], "decision": decision})


def gone(run: Run) -> bool:
    return not (workspaces.folder_of(run.key) / "workspace" / "build-2019").exists()


def test_a_page_shows_all_that_is_approved(cast: Any, ran: Ran) -> None:
    """A long text is in the records by reference, and its end may be what matters."""
    words = "# nothing to see here\\n" * 2000
    run = ran(TIDY.replace('["rm", "-r", "build-2019"]', f'["sh", "-c", "{words}echo THE-END"]'))
    assert run.summary["waiting"]["kind"] == "approval"
    assert "echo THE-END" in cast.client("rita").get(run_parts.address(run)).content.decode()


def test_an_approval_goes_through_the_page(cast: Any, ran: Ran) -> None:
    run = ran(TIDY)
    assert (run.state, run.summary["waiting"]["kind"]) == (State.WAITING, "approval") and not gone(run)
    address = run_parts.address(run)
    bob, rita = (cast.client(name).get(address).content.decode() for name in ("bob", "rita"))
    for text in (bob, rita):
        assert "Waiting for an approval" in text and "run rm -r build-2019" in text
        assert "POLICY:1 forbids it" in text  # why it is asked
    asked = run.records.filter(kind="permit").last()
    why = cast.client("bob").get(f"{address}r/{asked.seq}/").content.decode()
    assert "approved(/action)" in why
    assert "Approve run</button>" in rita and "Approve run</button>" not in bob
    assert "A reviewer or an admin of the team can approve it" in bob
    for name, status in (("vera", 403), ("bob", 403), ("charlie", 404), ("", 302)):
        assert post(cast.client(name), run, "approve").status_code == status, name
    assert not run.commands.exists()
    assert post(cast.client("rita"), run, "approve").status_code == 302
    assert "rita approved it" in cast.client("vera").get(address).content.decode()
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED and gone(run)
    record = decode(bytes(run.records.get(kind="approval").line))
    assert record.side["by"] == "rita"
    genesis = decode(bytes(run.records.get(seq=0).line))
    (key,) = [one for one in Rules.of(genesis.body).keys if one["name"] == "rita"]
    permit = decode(bytes(run.records.filter(kind="permit", seq__lt=record.seq).last().line))
    found = approval.verify(
        record.body, keys=[key], at=record.at, of=permit.content, run=run.key, step="tidy/old",
        action=approval.action_hash("run", {"cmd": ["rm", "-r", "build-2019"]}),
    )  # fmt: skip
    assert found == approval.Approved("rita", (approval.APPROVER,))
    reader = DatabaseLedgers().reader(run.key)
    assert verify((line for _, line in reader.read()), exported=False, blobs=reader.blobs).ok
    shown = cast.client("vera").get(f"{address}r/{record.seq}/").content.decode()
    assert "rita" in shown and "approve" in shown


def test_a_denial_is_told_to_the_run(cast: Any, ran: Ran) -> None:
    run = ran(TIDY)
    post(cast.client("alice"), run, "deny")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state != State.SUCCEEDED and not gone(run)
    assert decode(bytes(run.records.get(kind="approval").line)).body["decision"] == "deny"


def test_the_first_of_two_people_counts(cast: Any, ran: Ran) -> None:
    run = ran(TIDY)
    of = run.summary["waiting"]["id"]
    rita, alice = cast.client("rita"), cast.client("alice")
    assert post(rita, run, "approve").status_code == 302
    assert post(rita, run, "approve").status_code == 302  # the same twice is once
    late = post(alice, run, "deny")
    assert late.status_code == 409 and "rita approved it" in late.content.decode()
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED and [one.kind for one in run.commands.all()] == ["approve"]
    assert post(alice, run, "deny", of).status_code == 409
    with pytest.raises(Refused, match="has ended"):
        actions.ask(cast["alice"], run, "approve", of)


@pytest.mark.findings("A9")
def test_a_call_of_a_backend_does_not_answer_an_approval(cast: Any, ran: Ran) -> None:
    run = ran(TIDY)
    of = run.summary["waiting"]["id"]
    body = {"of": of, "backend": "manual"}
    answer = as_program(cast["bob"], f"runs/{run.key}/call/", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "web.run_approval")
    run.refresh_from_db()
    assert run.backend == "" and not run.commands.exists()
    assert post(cast.client("rita"), run, "approve").status_code == 302


@pytest.mark.findings("A9")
@pytest.mark.parametrize("kind", ["approve", "deny"])
def test_a_question_is_not_approved(cast: Any, ran: Ran, kind: str) -> None:
    run = ran(ASKS)
    assert run.summary["waiting"]["kind"] != "approval"
    with pytest.raises(Refused, check=lambda why: why.code == "web.run_approval"):
        actions.ask(cast["rita"], run, kind, run.summary["waiting"]["id"])
    assert not run.commands.exists()


def test_an_old_page_approves_nothing(cast: Any, ran: Ran) -> None:
    run = ran(TIDY)
    for of in ("x" * 43, "", "0"):
        answer = cast.client("alice").post(
            reverse("spak-run-decide", kwargs={"team": run.team.slug, "run": run.key}),
            {"of": of, "decision": "approve"},
        )
        assert answer.status_code == 409 and "is no longer waiting for this" in answer.content.decode()
    assert not run.commands.exists()


def test_a_forged_approval_is_refused(cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes the row of a command but has not the platform's key gets nothing done."""
    run = ran(TIDY)
    monkeypatch.setattr("spakweb.store.runs.signing.private_key", lambda: bytes(range(32)))
    post(cast.client("rita"), run, "approve")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.WAITING and not gone(run)


RELEASE = TIDY.replace('["rm", "-r", "build-2019"]', '["touch", "build-2019/released"]')
TWO_PERSONS = (Path(__file__).parents[3] / "specs/laws/two_persons.mg").read_text()


def answered(cast: Any, run: Run, name: str, decision: str = "approve") -> None:
    assert post(cast.client(name), run, decision).status_code == 302
    execute.advance(run.key)
    run.refresh_from_db()


@pytest.fixture
def release(settings: Any, ran: Ran) -> Run:
    settings.LAW = {"two_persons.mg": TWO_PERSONS, "rel.mg": 'release_program("touch").'}
    return ran(RELEASE)


def released(run: Run) -> bool:
    return (workspaces.folder_of(run.key) / "workspace/build-2019/released").exists()


@pytest.mark.findings("S5.1")
def test_two_people_release_and_one_person_twice_does_not(cast: Any, release: Run) -> None:
    for _ in range(2):
        answered(cast, release, "rita")
        assert (release.state, release.summary["waiting"]["kind"]) == (State.WAITING, "approval")
        assert not released(release)
    page = cast.client("alice").get(run_parts.address(release)).content.decode()
    assert "Approve run</button>" in page and "two_persons.mg" in page  # the law that wants one more
    answered(cast, release, "alice")
    assert release.state == State.SUCCEEDED and released(release)
    signers = [decode(bytes(row.line)) for row in release.records.filter(kind="approval")]
    assert [record.side["by"] for record in signers] == ["rita", "rita", "alice"]
    reader = DatabaseLedgers().reader(release.key)
    assert verify((line for _, line in reader.read()), exported=False, blobs=reader.blobs).ok


@pytest.mark.findings("S5.1")
def test_the_second_person_may_say_no(cast: Any, release: Run) -> None:
    answered(cast, release, "rita")
    answered(cast, release, "alice", "deny")
    assert release.state == State.REFUSED and not released(release)


@pytest.mark.findings("S5.1")
def test_who_joined_later_is_one_of_two_people(cast: Any, release: Run) -> None:
    """Two of them count as one: the run knows neither by name."""
    cast.team.memberships.filter(user=cast["bob"]).update(role="reviewer")
    cast.team.memberships.filter(user=cast["vera"]).update(role="reviewer")
    answered(cast, release, "bob")
    answered(cast, release, "vera")
    assert release.state == State.WAITING
    answered(cast, release, "rita")
    assert release.state == State.SUCCEEDED and released(release)


@pytest.mark.findings("S5.1")
def test_a_law_may_name_who_signs(cast: Any, ran: Ran, settings: Any) -> None:
    settings.LAW = {"own.mg": 'forbidden(A) :- tool(A, /run), !signed_approval(A, "rita").'}
    run = ran(TIDY)
    answered(cast, run, "alice")
    assert run.state != State.SUCCEEDED and not gone(run)
    run = ran(TIDY)
    answered(cast, run, "rita")
    assert run.state == State.SUCCEEDED and gone(run)


@pytest.mark.findings("S5.1")
def test_an_export_of_it_is_a_run_of_this_platform(cast: Any, release: Run) -> None:
    genesis = decode(bytes(release.records.get(seq=0).line))
    names = [key["name"] for key in genesis.body["rules"]["keys"]]
    assert names == ["platform", "alice", "rita"]
    assert only_shown(release.team, genesis.body) == ""
    forged = canon.loads(canon.dumps(genesis.body))
    forged["rules"]["keys"][1]["public"] = forged["rules"]["keys"][2]["public"]
    assert "other keys" in only_shown(release.team, forged)
