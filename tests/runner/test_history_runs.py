"""Runs under laws about the past: folds are kept, replayed, taken up after any crash, and told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from host_kit import PERMITS, reopen, start
from spak import canon
from spak.kernel.replay import replay
from spak.kernel.snapshot import equal
from spak.ledger.chain import is_record_line
from spak.policy.history import state
from spak.records import Kind, Record, decode

LAW = (
    PERMITS
    + """
Decl looked(Text, N) bound [/string, /number] descr [fold("count")].
feed_looked(T) :- event(E), tool(E, /look), argument(E, "text", T).
forbidden(A) :- tool(A, /look), argument(A, "text", T), looked(T, N), 2 <= N.

Decl known(Path) bound [/string] descr [fold("open"), counts("done")].
feed_known(P) :- event(E), tool(E, /look), argument(E, "text", P), result(E, "exit", 0).
close_known(P) :- event(E), tool(E, /write), argument(E, "path", P).
forbidden(A) :- tool(A, /write), argument(A, "path", P), !known(P).
"""
)
"""Nobody looks at one thing more than twice, and a file is looked at before each time it is written."""

HONEST = """
task Honest {
  step a: tool.look { text: "a.txt" }
  step b: tool.write { path: "a.txt" text: "1" }
  step c: tool.look { text: "a.txt" }
  step d: tool.write { path: "a.txt" text: "2" }
  step e: tool.look { text: "b.txt" }
}
"""
BLIND = """
task Blind {
  step a: tool.look { text: "a.txt" }
  step b: tool.write { path: "a.txt" text: "1" }
  step c: tool.write { path: "a.txt" text: "2" }
}
"""
STARING = """
task Staring {
  step a: tool.look { text: "a" }
  step b: tool.look { text: "b" }
  step c: tool.look { text: "a" }
  step d: tool.look { text: "a" }
}
"""
UNDONE = """
task Undone {
  step a: tool.look { text: "a.txt" }
  step b: tool.write { path: "a.txt" text: "1" status: "crash" }
}
"""


def ledger_of(folder: Path) -> Path:
    (found,) = [path for path in folder.rglob("*.jsonl") if path.is_file()]
    return found


def records(path: Path) -> list[Record]:
    return [decode(line) for line in path.read_bytes().splitlines(keepends=True) if is_record_line(line)]


def ended(folder: Path, spec: str) -> list[Record]:
    run = start(folder, spec, law=LAW)
    run.advance("full_auto")
    run.close()
    found = records(ledger_of(folder / "run-1"))
    again = replay(found)
    assert again.difference is None
    assert equal(again.state, run.state)
    return found


CASES = [(HONEST, "succeeded", ()), (BLIND, "refused", ("c",)), (STARING, "refused", ("d",))]


@pytest.mark.parametrize(("spec", "status", "denied"), CASES, ids=["honest", "blind", "staring"])
def test_a_law_about_the_past_decides(
    tmp_path: Path, spec: str, status: str, denied: tuple[str, ...]
) -> None:
    found = ended(tmp_path, spec)
    assert found[-1].body["state"] == status
    permits = [item for item in found if item.kind == Kind.PERMIT]
    assert tuple(item.step for item in permits if not item.body["allow"]) == denied


@pytest.mark.parametrize("spec", [HONEST, BLIND, STARING], ids=["honest", "blind", "staring"])
def test_a_run_taken_up_after_a_crash_at_any_record_decides_the_same(tmp_path: Path, spec: str) -> None:
    first = tmp_path / "first"
    whole = ended(first, spec)
    path = ledger_of(first / "run-1")
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        folder = tmp_path / f"cut{kept}"
        start(folder, spec, law=LAW).close()
        cut = ledger_of(folder / "run-1")
        shutil.rmtree(folder)
        shutil.copytree(first, folder)
        cut.write_bytes(b"".join(lines[:kept]))
        run = reopen(folder)
        run.advance("full_auto")
        run.close()
        found = records(cut)
        assert [item.body for item in found if item.kind == Kind.PERMIT] == [
            item.body for item in whole if item.kind == Kind.PERMIT
        ]
        assert found[-1].body["state"] == whole[-1].body["state"]


def test_a_tool_that_was_rolled_back_gives_its_permission_back(tmp_path: Path) -> None:
    run = start(tmp_path, UNDONE, law=LAW)
    run.advance("full_auto")
    gate = run.rules.gate
    assert gate is not None
    assert state.rows(gate.folds, run.state.r7.history) == [("known", ("a.txt",))]
    assert run.state.r7.history.calls == {}
    run.close()


def test_the_proof_of_a_denial_names_the_records_that_were_counted(tmp_path: Path) -> None:
    run = start(tmp_path, STARING, law=LAW)
    run.advance("full_auto")
    found = records(ledger_of(tmp_path / "run-1"))
    looks = [item.seq for item in found if item.kind == Kind.PERMIT and item.body["args"] == {"text": "a"}]
    denied = next(item for item in found if item.kind == Kind.PERMIT and not item.body["allow"])
    why = canon.loads(run.ledger.blobs.get(denied.side["proof"]))
    (past,) = [item for item in why["past"] if item["fold"] == "looked"]
    assert (past["value"], past["records"]) == (2, looks[:2])
    assert 'looked("a", 2)' in canon.dumps(why["why_not"]).decode().replace('\\"', '"')
    run.close()


def test_a_full_fold_denies_and_says_which(tmp_path: Path) -> None:
    law = LAW.replace('descr [fold("count")]', 'descr [fold("count"), keys(1)]')
    run = start(tmp_path, STARING, law=law)
    run.advance("full_auto")
    assert run.state.r7.codes == ("policy.limit",)
    found = records(ledger_of(tmp_path / "run-1"))
    denied = next(item for item in found if item.kind == Kind.PERMIT and not item.body["allow"])
    assert (denied.step, found[-1].body["cause"]["reason"]) == (
        "b",
        "the fold looked is full: more than 1 keys",
    )
    assert replay(found).difference is None
    run.close()


def test_a_law_without_folds_keeps_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, HONEST)
    run.advance("full_auto")
    assert run.state.r7.history == state.History()
    run.close()
