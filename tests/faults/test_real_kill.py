"""kill -9 of a runner that really compiles and measures: what was recorded stays, byte for byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_kit import spak
from fault_points import FaultPoints
from process_kit import start, until
from tuner_kit import shortened


def children_of(marker: str) -> list[str]:
    """Command lines of processes that mention a path of this test."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if marker in line:
                found.append(line)
    return found


@pytest.mark.sandbox
def test_the_records_before_each_kill_stay_and_the_run_goes_on(
    tmp_path: Path, fault_points: FaultPoints
) -> None:
    """Killed near its beginning, and resumed, killed while it measures, and resumed, and once more."""
    spec, whole, verb = shortened(tmp_path, 4), b"", ["run", "attention_tuner.spak", "--seed", "3"]
    assert spec.name == verb[1]

    def traces() -> list[Path]:
        return list(tmp_path.glob(".spak/runs/*/trace.jsonl"))

    for records in (4, 14, 25):
        runner = start(
            [sys.executable, "-c", "from spak.cli import main; main()", *verb],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda least=records: traces() and traces()[0].read_bytes().count(b"\n") >= least)
        os.kill(runner.pid, signal.SIGKILL)
        assert runner.wait() == -signal.SIGKILL, "it had ended before it was killed"
        (trace,) = traces()
        until(lambda: children_of(str(tmp_path)) == [])
        before = trace.read_bytes()
        assert before.startswith(whole)
        fault_points["killed"] += 1
        whole, verb = before[: before.rfind(b"\n") + 1], ["resume", "latest"]
    code, seen = spak(tmp_path, "resume", "latest", "--json")
    assert (code, seen["state"]) == (0, "succeeded") or seen["task"] == "finalize", (
        seen
    )  # measured, and noisy
    assert trace.read_bytes().startswith(whole)
    assert spak(tmp_path, "ledger", "verify", "latest", "--json")[0] == 0
    assert spak(tmp_path, "replay", "latest", "--json")[1]["summary_hash"] == seen["summary_hash"]
