"""Taking up a run from its snapshot: the same run as one that was never stopped, whatever happened to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from host_kit import TUNING, reopen, start
from spak import canon
from spak.errors import LedgerError
from spak.kernel.replay import replay
from spak.kernel.snapshot import Snapshot
from spak.ledger import snapshots
from spak.ledger.files import FileLedgers
from spak.ledger.memory import MemoryLedgers
from spak.ports import Ledgers
from spak.records import Authority, Record
from spak.runner import Run
from spak.runner import run as module

ASKING = """
AGENT Asking LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 500 } }
  START -> t
  TASK t {
    step q: llm.query { prompt: "Go on." output_var: x }
    step w: tool.write { path: "a.txt" text: "{{x}}" }
    step l: tool.look { text: "{{x}}" }
    NEXT { success -> t }
  }
}
"""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 12)
    monkeypatch.setattr(module, "LEAST", 6)


@pytest.fixture(params=["files", "memory"])
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Ledgers:
    return FileLedgers(tmp_path) if request.param == "files" else MemoryLedgers()


def content(run: Run) -> list[tuple[str, str, Any]]:
    """What was proposed and decided, without clocks and without what the host noted."""
    found = (record for record, _ in run.ledger.read() if record.authority != Authority.HOST)
    return [(record.kind, record.task, record.body) for record in found if record.seq]


def answered(run: Run, times: int) -> None:
    for number in range(times):
        run.advance("stepwise")
        run.answer(f"answer {number} {run.ledger.count}")
    run.advance("stepwise")


def test_a_run_that_is_stopped_at_each_question_goes_on_from_its_snapshot(
    tmp_path: Path, ledgers: Ledgers
) -> None:
    run = start(tmp_path, ASKING, ledgers=ledgers)
    run.advance("stepwise")
    run.close()
    starts = []
    for number in range(8):
        run = reopen(tmp_path, ledgers=ledgers)
        assert run.discarded is None
        starts.append(run._kept)
        run.answer(f"answer {number}")
        run.advance("stepwise")
        found = replay(record for record, _ in run.ledger.read())
        assert (found.difference, found.state) == (None, run.state)
        run.close()
    assert starts[0] == 0 and starts == sorted(starts) and starts[-1] > 50


def test_a_killed_run_replays_only_what_came_after_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, ASKING)
    answered(run, 6)
    kept = run._kept
    count, state = run.ledger.count, run.state
    run.ledger.flush()
    run.ledger._lease.release()  # type: ignore[attr-defined]
    fed: list[int] = []

    def feed(self: Any, record: Record) -> None:
        fed.append(record.seq)
        real(self, record)

    from spak.kernel.replay import Replay

    real = Replay.feed
    monkeypatch.setattr(Replay, "feed", feed)
    again = reopen(tmp_path)
    assert fed == list(range(kept, count)) and len(fed) < 12
    assert again.state == state and again.state.r6 is not None
    again.close()


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_a_tuning_run_taken_up_anywhere_proposes_and_decides_the_same(
    tmp_path: Path, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator's past is among the records before the snapshot."""
    whole = start(tmp_path / "a", TUNING)
    whole.advance("full_auto")
    monkeypatch.setattr(module, "EVERY", every)
    monkeypatch.setattr(module, "LEAST", 1)
    run = start(tmp_path / "b", TUNING)
    while not run.state.ended:
        run.advance("full_auto", until=0.0)  # nothing: the time is over
        run._do(run.pending())
        run.keep_snapshot(every)
        numbers = [row.number for row in run.history.rows]
        assert numbers == sorted(numbers)
        run.close()
        run = reopen(tmp_path / "b")
        assert run.discarded is None
        if every == 1 and not run.state.ended:
            assert run._kept >= run.ledger.count - 3
    assert content(run) == content(whole)
    assert [list(run.history.of(task)) for task in ("base", "tune")] == [
        list(whole.history.of(task)) for task in ("base", "tune")
    ]
    run.close()
    kept = snapshots.found(tmp_path / "b/run-1", "run-1")
    assert kept is not None and (kept.count, kept.head) == (run.ledger.count, run.ledger.head)
    whole.close()


def test_the_root_that_an_author_could_see_is_found_among_the_records_before_it(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING)
    answered(run, 5)
    texts = [
        record.body["out"] for record, _ in run.ledger.read() if record.body.get("outcome") == "answered"
    ]
    roots = [run.history.origins.of(text) for text in texts]
    assert len(set(roots)) == 5
    run.close()
    again = reopen(tmp_path)
    assert again._kept and len(again.history.origins._written) < 5
    assert [again.history.origins.of(text) for text in texts] == roots
    assert again.history.origins.of("of nobody") == again.history.origins.asked
    again.close()


def test_recorded_answers_before_it_are_given_again(tmp_path: Path) -> None:
    from spak.records import Kind
    from spak.runner.perform import Proposed

    run = start(tmp_path, ASKING)
    noted = [{"name": "r", "line": number, "hash": "h"} for number in range(4)]
    for number in range(4):
        run.advance("stepwise")
        body = {"of": run.pending().id, "outcome": "answered", "out": f"a{number}"}
        run.feed(Proposed(Kind.ACT, body, {"recorded": noted[number]}))
    run.advance("stepwise")
    run.close()
    again = reopen(tmp_path)
    assert again._kept and list(again.history.given) == noted
    again.close()
    assert list(reopen(tmp_path).history.given) == noted


# ---- in doubt ------------------------------------------------------------------------------------------


def forged(data: bytes, **changes: Any) -> bytes:
    text = canon.dumps({**canon.loads(data[44:]), **changes})
    return canon.digest(text).encode() + b"\n" + text


def other_state(kept: Snapshot) -> bytes:
    """Of a run that has one permit more; the records after it do not follow."""
    state = canon.loads(kept.data[44:])["state"]
    counter = next(item for item in state if isinstance(item, list) and item[0] == "Counter")
    counter[3] += 1
    return forged(kept.data, state=state)


def without_history(kept: Snapshot) -> bytes:
    return forged(kept.data, beside={})


def of_another_version(kept: Snapshot) -> bytes:
    return forged(kept.data, layout="another")


def of_other_rules(kept: Snapshot) -> bytes:
    return forged(kept.data, rules="others")


def of_fewer_records(kept: Snapshot) -> bytes:
    return forged(kept.data, count=kept.count - 1)


@pytest.fixture
def stopped(tmp_path: Path, ledgers: Ledgers) -> Iterator[tuple[Ledgers, Run]]:
    """A run with records after its snapshot."""
    run = start(tmp_path, ASKING, ledgers=ledgers)
    answered(run, 6)
    module.LEAST = 1000  # type: ignore[misc]
    answered(run, 1)
    run.close()
    yield ledgers, run


@pytest.mark.parametrize(
    "forge", [other_state, without_history, of_another_version, of_other_rules, of_fewer_records]
)
def test_a_snapshot_in_doubt_is_thrown_away_and_all_is_replayed(
    tmp_path: Path, stopped: tuple[Ledgers, Run], forge: Callable[[Snapshot], bytes]
) -> None:
    ledgers, before = stopped
    ledger = ledgers.open("run-1")
    kept = ledger.kept()
    assert kept is not None and kept.count < ledger.count
    replace(ledgers, tmp_path, Snapshot(kept.count, kept.head, forge(kept)))
    ledger.close()
    run = reopen(tmp_path, ledgers=ledgers)
    assert run.discarded is not None and run.discarded.code == "ledger.snapshot_discarded"
    assert run.state == before.state
    answered(run, 1)
    assert replay(record for record, _ in run.ledger.read()).difference is None
    run.close()
    again = reopen(tmp_path, ledgers=ledgers)
    assert again.discarded is None
    again.close()


def replace(ledgers: Ledgers, root: Path, snapshot: Snapshot) -> None:
    if isinstance(ledgers, MemoryLedgers):
        ledgers._runs["run-1"].snapshot = snapshot
        return
    path = root / "run-1/snapshot"
    head = canon.loads(path.read_bytes().partition(b"\n")[0])
    head["data"] = canon.digest(snapshot.data)
    path.write_bytes(canon.dumps(head) + b"\n" + snapshot.data)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_no_snapshot(tmp_path: Path, kind: str) -> None:
    run = start(tmp_path, ASKING)
    answered(run, 6)
    run.close()
    path = tmp_path / "run-1/snapshot"
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    again = reopen(tmp_path)
    assert again.discarded is not None and again.state == run.state
    again.close()


def test_records_that_do_not_follow_are_still_found_after_it(tmp_path: Path) -> None:
    run = start(tmp_path, ASKING, ledgers=(ledgers := MemoryLedgers()))
    answered(run, 6)
    forged_route = Record("route", "commit", {"signal": "success", "to": "w"}, "t", "q", at=5)
    run.ledger.append([forged_route])
    run.ledger.close()
    with pytest.raises(LedgerError) as caught:
        reopen(tmp_path, ledgers=ledgers)
    assert caught.value.code == "ledger.diverged"


def test_what_was_decided_and_not_yet_written_is_in_no_snapshot(tmp_path: Path) -> None:
    """A runner may be broken off between a decision and its records."""
    run = start(tmp_path, ASKING)
    answered(run, 2)
    before = (tmp_path / "run-1/snapshot").read_bytes()
    append = run._append
    run._append = lambda records: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.answer("lost")
    run._append = append  # type: ignore[method-assign]
    run.keep_snapshot()
    assert (tmp_path / "run-1/snapshot").read_bytes() == before
    run.close()
    again = reopen(tmp_path)
    assert again.state.r6 is not None and again.state.r6.act == "ask"
    again.close()


def test_nothing_is_kept_of_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 200)
    run = start(tmp_path, ASKING)
    answered(run, 2)
    run.close()
    assert snapshots.found(tmp_path / "run-1", "run-1") is not None  # after EVERY records
    monkeypatch.setattr(module, "EVERY", 1000)
    short = start(tmp_path, ASKING, run="run-2")
    answered(short, 2)
    short.close()
    assert snapshots.found(tmp_path / "run-2", "run-2") is None
