"""The runner: order of writing, waiting and answering, resuming, forks; with real ledgers and workspaces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from host_kit import TUNING, reopen, start
from spak.errors import LedgerError, RunError
from spak.kernel.replay import replay
from spak.ledger.files import FileLedgers
from spak.ledger.memory import MemoryLedgers
from spak.ledger.verify import verify
from spak.records import Authority, Kind, Record
from spak.runner.fork import copied, from_snapshot
from spak.runner.views.run_json import refusal

ASKING = """
task Ask {
  step a: tool.look { text: "what was there" }
  step q: llm.query { role: "coder" prompt_template: "Seen: {{last_tool_output}}" output_var: patch }
  step w: tool.write { path: "out.txt" text: patch }
  success: file_contains("out.txt", "yes")
}
"""

PLANNING = """
AGENT Plan LEVEL 5 {
  CONFIG { BUDGET { steps: 50 } }
  START -> t
  TASK t { GOAL "x" TOOLS [write] step p: llm.plan { role: "coder" } }
}
"""


def test_a_tuning_run_ends_and_replays_to_the_same_summary(tmp_path: Path) -> None:
    run = start(tmp_path, TUNING)
    assert run.advance("full_auto") == "ended"
    assert run.state.status == "succeeded", run.state.r7.codes
    found = replay(record for record, _ in run.ledger.read())
    assert found.difference is None
    assert found.state.summary == run.state.summary
    report = verify((line for _, line in run.ledger.read()), exported=False, blobs=run.ledger.blobs)
    assert report.ok and report.records == run.ledger.count
    assert run.history.rows and any(row.outcome == "improved" for row in run.history.rows)
    best = (tmp_path / "run-1/workspace/best.txt").read_bytes()
    assert run.state.r7.best is not None and 1000 + len(best) == run.state.r7.best.value
    run.close()


def test_what_validators_keep_ends_when_the_run_is_left(tmp_path: Path) -> None:
    closed = []
    run = start(tmp_path, ASKING)
    timer = run.performer.host.validators["Timer"]
    keeping = type(
        "Keeping", (), {"entry": timer.entry, "measure": None, "close": lambda self: closed.append(self)}
    )()
    run.performer.host = replace(run.performer.host, validators={"Keeping": keeping, "Timer": timer})
    assert run.advance("stepwise") == "waiting" and closed == []
    run.close()
    assert closed == [keeping]


def test_the_same_rules_and_answers_give_the_same_summary_in_both_stores(tmp_path: Path) -> None:
    first = start(tmp_path / "a", TUNING)
    second = start(tmp_path / "b", TUNING, run="another", ledgers=MemoryLedgers())
    other = start(tmp_path / "c", TUNING, seed=6)
    for run in (first, second, other):
        run.advance("full_auto")
    assert first.state.summary == second.state.summary
    assert first.state.summary != other.state.summary
    assert first.ledger.head != second.ledger.head
    for run in (first, second, other):
        run.close()


def test_a_question_stops_the_run_and_an_answer_in_another_process_goes_on(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    assert run.advance("stepwise") == "waiting"
    assert "Seen: what was there" in run.performer.prompt(run.pending()).text
    run.close()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "waiting"
    again.answer("yes, indeed")
    assert again.advance("stepwise") == "ended"
    assert again.state.status == "succeeded"
    assert (tmp_path / "run-1/workspace/out.txt").read_text() == "yes, indeed"
    with pytest.raises(RunError) as error:
        again.answer("twice")
    assert error.value.code == "run.not_waiting"
    again.close()


def test_modes_and_who_answers_leave_no_trace_in_the_summary(tmp_path: Path) -> None:
    summaries = set()
    for index, mode in enumerate(("stepwise", "semi_auto", "full_auto")):
        run = start(tmp_path / str(index), ASKING)
        run.advance(mode)  # type: ignore[arg-type]
        run.answer("yes", by=f"person {index}")
        run.advance(mode)  # type: ignore[arg-type]
        summaries.add(run.state.summary)
        run.close()
    assert len(summaries) == 1


def test_a_long_answer_is_a_blob_and_comes_back_whole(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    run.advance("stepwise")
    run.answer("yes " * 50_000)
    run.advance("stepwise")
    assert (tmp_path / "run-1/workspace/out.txt").read_text() == "yes " * 50_000
    assert all(len(line) < 70_000 for _, line in run.ledger.read())
    run.close()


@pytest.mark.parametrize("depth", [*range(240, 256), 100_000])
def test_a_plan_too_deep_for_a_record_is_malformed_and_asked_for_again(tmp_path: Path, depth: int) -> None:
    run = start(tmp_path, PLANNING)
    run.advance("stepwise")
    run.answer('{"candidates": [' + "[" * depth + "]" * depth + "]}")
    assert run.advance("stepwise") == "waiting"
    assert run.state.r4 is not None
    assert run.state.r4["code"] == ("answer.too_deep" if depth > 20 else "schema.type")
    run.close()


def test_a_late_answer_is_noted_and_decides_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    run.advance("stepwise")
    effect = run.pending()
    run.answer("yes")
    before = run.state
    run.feed(run.performer.answer(effect, "no"))
    assert run.state == before
    assert [record.kind for record, _ in run.ledger.read()].count("late") == 1
    run.close()


def test_resuming_an_ended_run_appends_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, TUNING)
    run.advance("full_auto")
    run.close()
    before = (tmp_path / "run-1/trace.jsonl").read_bytes()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "ended"
    again.close()
    assert (tmp_path / "run-1/trace.jsonl").read_bytes() == before


def test_cancelling_an_ended_run_appends_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, TUNING)
    run.advance("full_auto")
    run.close()
    before = (tmp_path / "run-1/trace.jsonl").read_bytes()
    again = reopen(tmp_path)
    again.cancel()
    again.close()
    assert again.state.status == "succeeded"
    assert (tmp_path / "run-1/trace.jsonl").read_bytes() == before


def test_a_second_runner_is_refused(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    with pytest.raises(LedgerError) as error:
        reopen(tmp_path)
    assert error.value.code == "ledger.busy"
    run.close()


def test_one_fsync_per_step_when_each_is_durable_and_far_fewer_when_pure(tmp_path: Path) -> None:
    writes = "\n".join(f'step w{n}: tool.write {{ path: "f{n}" text: "x" }}' for n in range(40))
    looks = "\n".join(f'step l{n}: tool.look {{ text: "{n}" }}' for n in range(40))
    for body, most in ((writes, 1.1), (looks, 0.15)):
        run = start(tmp_path / str(most), f"task T {{ {body} }}")
        before = run.ledger.fsyncs  # type: ignore[attr-defined]
        run.advance("full_auto")
        assert run.state.status == "succeeded"
        assert (run.ledger.fsyncs - before) / 40 <= most  # type: ignore[attr-defined]
        run.close()


def test_a_broken_invariant_leaves_the_workspace_as_it_was(tmp_path: Path) -> None:
    spec = """
    task T {
      step a: tool.write { path: "keep.txt" text: "kept" }
      step b: tool.write { path: "keep.txt" text: "lost" }
      invariant: file_contains("keep.txt", "kept")
    }
    """
    run = start(tmp_path, spec)
    run.advance("full_auto")
    assert run.state.r7.codes == ("run.invariant",)
    assert (refusal(run.state) or {})["knob"] == "fix step b or the invariant of TASK T"
    assert (tmp_path / "run-1/workspace/keep.txt").read_text() == "kept"
    assert run.workspace.snapshot() == run.state.r3
    run.close()


def test_a_tool_that_times_out_is_rolled_back(tmp_path: Path) -> None:
    spec = 'task T { step a: tool.write { path: "half.txt" text: "half" status: "timeout" } }'
    run = start(tmp_path, spec)
    run.advance("full_auto")
    assert run.state.status == "failed"
    assert not (tmp_path / "run-1/workspace/half.txt").exists()
    run.close()


def test_a_fork_with_the_same_answer_has_the_same_summary(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    run.advance("stepwise")
    at = run.ledger.count
    run.answer("yes")
    run.advance("stepwise")
    records = [record for record, _ in run.ledger.read()]
    copy = copied(records, at)
    assert copy.stopped_at is None and [record.kind for record in copy.proposals] == ["act"]
    fork = start(tmp_path, ASKING, run="fork")
    fork.adopt(copy.proposals)
    fork.answer("yes")
    fork.advance("stepwise")
    assert fork.state.summary == run.state.summary
    with pytest.raises(RunError):
        copied(records, 10_000)
    run.close()
    fork.close()


def test_files_changed_while_the_run_was_stopped_are_put_back(tmp_path: Path) -> None:
    run = start(
        tmp_path, ASKING.replace("step a: tool.look { text:", 'step a: tool.write { path: "a.txt" text:')
    )
    run.advance("stepwise")
    run.close()
    (tmp_path / "run-1/workspace/a.txt").write_text("somebody was here")
    again = reopen(tmp_path)
    assert (tmp_path / "run-1/workspace/a.txt").read_text() == "what was there"
    assert [record.kind for record, _ in again.ledger.read()].count("rollback") == 1
    again.close()


def test_a_closed_ledger_can_be_opened_by_another_store(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    run.close()
    run.close()
    assert FileLedgers(tmp_path).runs() == ["run-1"]


@pytest.mark.parametrize("kind", ["", Kind.APPROVAL, Kind.CONTROL])
def test_records_at_which_a_fork_stops_are_not_carried_over(tmp_path: Path, kind: str) -> None:
    run = start(tmp_path, ASKING)
    run.advance("stepwise")
    if kind:
        run.tally.feed(Record(kind, Authority.PROPOSAL, {}))
    run.keep_snapshot()
    assert (from_snapshot(run.ledger, run.ledger.count) is None) is bool(kind)
    assert from_snapshot(run.ledger, run.ledger.count - 1) is None
    run.close()
