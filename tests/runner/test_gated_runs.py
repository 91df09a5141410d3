"""Runs under the gate: looking before and after the permit, proofs as blobs, approvals through the runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from host_kit import reopen, start
from spak import canon
from spak.errors import RunError
from spak.kernel.gate import Gate, Judged
from spak.kernel.replay import replay
from spak.ledger.verify import verify
from spak.policy import approval
from spak.runner import Run
from spak.runner.observe import observe, questions_of, unchanged


def all_records(run: Run) -> list[Any]:
    return [record for record, _ in run.ledger.read()]


def test_each_permit_names_the_blob_of_its_proof_and_the_ledger_verifies(tmp_path: Path) -> None:
    spec = 'task T { step a: tool.write { path: "a" text: "x" } step b: tool.look { text: "y" } }'
    run = start(tmp_path, spec)
    assert run.advance("full_auto") == "ended" and run.state.status == "succeeded"
    permits = [record for record in all_records(run) if record.kind == "permit"]
    for record in permits:
        found = canon.loads(run.ledger.blobs.get(record.side["proof"]))
        assert found["decision"] == "allow" and found["proof"]["nodes"]
    report = verify((line for _, line in run.ledger.read()), exported=False, blobs=run.ledger.blobs)
    assert report.ok, report.problems
    assert replay(iter(all_records(run))).state == run.state
    run.close()


def test_a_permit_that_is_derived_again_after_a_crash_names_its_proof_too(tmp_path: Path) -> None:
    spec = 'task T { step a: tool.look { text: "x" } step b: tool.write { path: "a" text: "y" } }'
    run = start(tmp_path, spec)
    run.advance("full_auto")
    run.close()
    trace = tmp_path / "run-1/trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    second = [place for place, kind in enumerate(kinds) if kind == "permit"][1]
    trace.write_bytes(b"".join(lines[:second]))
    again = reopen(tmp_path)
    permits = [record for record in all_records(again) if record.kind == "permit"]
    assert len(permits) == 2
    for record in permits:
        found = canon.loads(again.ledger.blobs.get(record.side["proof"]))
        assert found["decision"] == "allow" and found["proof"]["nodes"]
    assert again.advance("full_auto") == "ended" and again.state.status == "succeeded"
    again.close()


def test_a_denial_has_its_why_not_and_leaves_no_trace_in_the_workspace(tmp_path: Path) -> None:
    run = start(tmp_path, 'task T { step a: tool.write { path: "a" text: "x" } }', law="")
    assert run.advance("full_auto") == "ended" and run.state.r7.codes == ("policy.denied",)
    (record,) = [record for record in all_records(run) if record.kind == "permit"]
    found = canon.loads(run.ledger.blobs.get(record.side["proof"]))
    assert found["decision"] == "deny" and found["why_not"]
    assert list((tmp_path / "run-1/workspace").iterdir()) == []
    run.close()


def test_an_observation_answers_in_order_and_tells_when_the_world_changed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "out").symlink_to("/etc")
    questions = {"paths": ["a.txt", "out/passwd", "b"]}
    facts = canon.loads(canon.dumps(observe(questions, tmp_path)))
    assert [item[:2] for item in facts["paths"]] == [
        ["a.txt", "inside"],
        ["out/passwd", "outside"],
        ["b", "inside"],
    ]
    assert questions_of(facts) == questions and unchanged(facts, tmp_path)
    (tmp_path / "c.txt").write_text("c")
    assert unchanged(facts, tmp_path), "nobody asked about it"
    (tmp_path / "b").symlink_to("out")
    assert not unchanged(facts, tmp_path)


def test_more_than_a_mebibyte_is_not_observed(tmp_path: Path) -> None:
    some = [f"{number:04}" * 50 for number in range(5000)]
    assert len(canon.dumps(observe({"paths": some[:4000]}, tmp_path))) < 1 << 20
    assert observe({"paths": some}, tmp_path) == {"trouble": ["world.too_large"]}


def test_the_world_answers_what_a_guard_asks_and_says_when_it_can_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("")
    ask = ["dependency_link", [None, None, None]]
    facts = canon.loads(canon.dumps(observe({"rows": [ask]}, tmp_path)))
    assert facts == {"rows": [[ask, [["a.py", "b.py", "b"]]]]}
    unknown = observe({"rows": [["nobody_knows", [None]]]}, tmp_path)
    assert unknown == {"trouble": ["world.unknown", "nobody answers nobody_knows(_)"]}


def test_a_path_that_leads_elsewhere_since_its_permit_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between permit and effect somebody puts a link where the file was to be written."""
    run = start(tmp_path, 'task T { step a: tool.look { text: "x" } }')
    effect = run.pending()
    place = run.workspace.directory
    seen = canon.loads(canon.dumps(observe({"paths": ["a.txt"]}, place)))
    (place / "a.txt").symlink_to("/etc/passwd")
    called: list[str] = []
    tool = run.performer.host.tools["look"]
    monkeypatch.setattr(type(tool), "run", lambda self, call: called.append(call.id))
    done = run.performer.perform(effect._replace(observed=seen), run.history)
    assert done is not None and called == []
    assert done.body["outcome"] == "invalid" and done.body["code"] == "policy.changed"
    run.close()


PRIVATE = bytes(range(32))
ASKING = """
AGENT A LEVEL 2 {
  CONFIG { APPROVALS ask }
  START -> t
  TASK t { step a: tool.write { path: "a" text: "x" } }
}
"""


def asking(folder: Path, law: str = "") -> Run:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = approval.encoded(Ed25519PrivateKey.from_private_bytes(PRIVATE).public_key().public_bytes_raw())
    key = {"id": approval.key_id(public), "name": "alice", "public": public, "roles": ["approver"]}
    return start(folder, ASKING, law=law, keys=[key])


def yes(held: Run, **changed: Any) -> dict[str, Any]:
    effect = held.pending()
    about: dict[str, Any] = {
        "action": approval.action_hash(effect.name, effect.args["args"]),
        "of": effect.id,
        "run": held.ledger.run,
        "step": f"{effect.task}/{effect.step}",
        "expires": 2**50,
    }
    return approval.make(PRIVATE, **{**about, **changed})


def test_a_run_waits_for_an_approval_in_another_process_and_goes_on(tmp_path: Path) -> None:
    run = asking(tmp_path)
    assert run.advance("full_auto") == "waiting"
    with pytest.raises(RunError):
        run.answer("yes")
    run.close()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "waiting"
    again.approve(yes(again, run="another"))
    assert again.advance("full_auto") == "waiting", "what does not fit asks anew"
    again.approve(yes(again))
    assert again.advance("full_auto") == "ended" and again.state.status == "succeeded"
    assert (tmp_path / "run-1/workspace/a").read_text() == "x"
    with pytest.raises(RunError) as caught:
        again.approve({})
    assert caught.value.code == "run.no_approval"
    found = replay(iter(all_records(again)))
    assert found.difference is None and found.state.summary == again.state.summary
    again.close()


@pytest.mark.parametrize("signed", [True, False])
def test_only_an_approval_that_holds_counts_for_what_it_permits(
    tmp_path: Path, signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law permits the action by itself when the answer comes, as one with a clock in it may."""
    run = asking(tmp_path)
    assert run.advance("full_auto") == "waiting"
    judge = Gate.judge
    monkeypatch.setattr(Gate, "judge", lambda *given: cast(Judged, judge(*given))._replace(allow=True))
    run.approve(yes(run) if signed else yes(run, run="another"))
    assert run.pending().act == "tool"
    run.close()


def test_an_approval_still_counts_in_another_process(tmp_path: Path) -> None:
    run = asking(tmp_path)
    run.advance("full_auto")
    run.approve(yes(run))
    run.close()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "ended" and again.state.status == "succeeded"
    again.close()
