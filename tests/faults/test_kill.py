"""kill -9 of the runner at every record: resuming ends with the summary of a run that nobody disturbed.

The measurements come from a table (the length of a file), so that the same decisions are due. The child is a
fork that kills itself when the n-th record has been written, once before and once after the flush.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fault_points import FaultPoints
from host_kit import TUNING, reopen, start
from spak.kernel.replay import replay
from spak.ledger.verify import verify
from spak.runner import Run

SHORT = TUNING.replace("patience: 4, evaluations: 12", "patience: 2, evaluations: 4")


def undisturbed(folder: Path) -> tuple[str, int, str]:
    run = start(folder, SHORT)
    run.advance("full_auto")
    found = run.state.summary, run.ledger.count, run.state.r3
    run.close()
    return found


def in_a_child(work: Callable[[], None]) -> int:
    """Run in a fork; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def kill_at(run: Run, count: int, *, flushed: bool) -> None:
    """Make this process die when the ledger holds `count` records."""

    def check() -> None:
        if run.ledger.count >= count:
            os.kill(os.getpid(), signal.SIGKILL)

    if flushed:
        flush = run.ledger.flush

        def flush_and_check() -> None:
            flush()
            check()

        run.ledger.flush = flush_and_check  # type: ignore[method-assign]
    else:
        run.listeners.append(lambda record, state: check())


@pytest.mark.parametrize("flushed", [False, True], ids=["before_the_flush", "after_the_flush"])
def test_kill_at_every_record(tmp_path: Path, flushed: bool, fault_points: FaultPoints) -> None:
    summary, count, root = undisturbed(tmp_path / "calm")
    assert count > 30
    killed = 0
    for at in range(1, count + 1):
        folder = tmp_path / f"{at}"

        def work(folder: Path = folder, at: int = at) -> None:
            run = start(folder, SHORT)
            kill_at(run, at, flushed=flushed)
            run.advance("full_auto")

        killed += in_a_child(work) == signal.SIGKILL
        run = reopen(folder)
        run.advance("full_auto")
        assert run.state.summary == summary, at
        assert run.state.r3 == root == run.workspace.snapshot(), at
        assert replay(record for record, _ in run.ledger.read()).difference is None
        assert verify((line for _, line in run.ledger.read()), exported=False).ok
        run.close()
    fault_points["killed"] += killed
    assert killed > count / 3


def test_kill_at_every_record_and_once_more_while_it_goes_on(
    tmp_path: Path, fault_points: FaultPoints
) -> None:
    """The life that resumes dies with its first new record."""
    summary, count, root = undisturbed(tmp_path / "calm")
    for at in range(1, count):
        folder = tmp_path / f"{at}"

        def work(folder: Path = folder, at: int = at) -> None:
            run = start(folder, SHORT)
            kill_at(run, at, flushed=False)
            run.advance("full_auto")

        def resume(folder: Path = folder) -> None:
            run = reopen(folder)
            kill_at(run, run.ledger.count + 1, flushed=False)
            run.advance("full_auto")

        killed = [in_a_child(work), in_a_child(resume)].count(signal.SIGKILL)
        run = reopen(folder)
        run.advance("full_auto")
        assert (run.state.summary, run.state.r3) == (summary, root), at
        assert run.workspace.snapshot() == root, at
        assert replay(record for record, _ in run.ledger.read()).difference is None
        run.close()
        fault_points["killed"] += killed
    assert fault_points["killed"] > count


def test_kill_again_and_again(tmp_path: Path, fault_points: FaultPoints) -> None:
    """Every life ends after a few more records; the run still comes to its end, the same one."""
    summary, _, root = undisturbed(tmp_path / "calm")
    folder = tmp_path / "run"

    def first() -> None:
        run = start(folder, SHORT)
        kill_at(run, 3, flushed=False)
        run.advance("full_auto")

    def again() -> None:
        run = reopen(folder)
        kill_at(run, run.ledger.count + 4, flushed=False)
        run.advance("full_auto")

    lives = 1
    in_a_child(first)
    while lives < 200 and in_a_child(again) != 0:
        lives += 1
    run = reopen(folder)
    assert run.state.summary == summary
    assert run.workspace.snapshot() == root
    fault_points["killed"] += lives
    run.close()


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_a_cut_in_the_last_records_heals(tmp_path: Path, cut: int, fault_points: FaultPoints) -> None:
    """Bytes cut off the end stand for what the disk never got."""
    summary, _, _ = undisturbed(tmp_path)
    trace = tmp_path / "run-1/trace.jsonl"
    data = trace.read_bytes()
    trace.write_bytes(data[: len(data) - cut * 37])
    run = reopen(tmp_path)
    run.advance("full_auto")
    assert run.state.summary == summary
    fault_points["cut"] += 1
    run.close()
