"""Polled steps in a real run: the runner waits, the ledger counts it, a replay does not wait."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from host_kit import reopen, start
from spak.kernel.replay import replay
from spak.records import Kind
from spak.runner import Run
from spak.runner import run as running

SPEC = """
task Polls {
  step w: tool.write { path: "a.txt" text: "a" exit: 1 poll: { every_s: EVERY limit: 3 } }
}
"""


def spec(every: str) -> str:
    return SPEC.replace("EVERY", every)


def sides(run: Run) -> list[object]:
    return [record.side.get("waited_ms") for record, _ in run.ledger.read() if record.kind == Kind.ACT]


def test_the_runner_waits_between_polls_and_the_ledger_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(running.time, "sleep", sleep)
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    run = start(tmp_path, spec("60"))
    assert run.advance("full_auto") == "ended"
    assert run.state.r7.codes == ("run.poll_limit",)
    assert 100 < sum(slept) <= 120 and sides(run) == [None, 60_000, 60_000]
    assert run.state.r1.elapsed_ms >= 120_000
    records = [record for record, _ in run.ledger.read()]
    slept.clear()
    assert replay(records).difference is None and not slept
    run.close()


def test_a_run_that_waits_for_a_poll_stops_when_it_is_told_to(tmp_path: Path) -> None:
    run = start(tmp_path, spec("3600"))
    assert run.advance("full_auto", until=time.monotonic() + 0.5) == "paused"
    run.performer.cancel.set()
    assert run.advance("full_auto") == "interrupted"
    assert sides(run) == [None]
    run.close()


def test_a_run_that_is_taken_up_later_does_not_wait_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, spec("1000"))
    assert run.advance("full_auto", until=time.monotonic() + 0.5) == "paused"
    run.close()
    later = running.now() + 1_000_000
    monkeypatch.setattr(running, "now", lambda: later)
    again = reopen(tmp_path)
    assert again.advance("full_auto", until=time.monotonic() + 0.5) == "paused"
    assert sides(again) == [None, 1_000_000], "one more poll was done"
    again.close()


def test_no_interval_is_no_wait(tmp_path: Path) -> None:
    run = start(tmp_path, spec("0"))
    assert run.advance("full_auto") == "ended" and sides(run) == [None, None, None]
    run.close()
