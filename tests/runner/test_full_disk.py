"""A full disk is a fault of the host: it decides nothing, and the step is done again once there is room."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from host_kit import host, reopen, start
from spak.errors import RunError
from spak.files import disk
from spak.files.faults import CODES
from spak.kernel.replay import replay
from spak.ports import Measurement, ToolResult
from spak.runner import faults

WRITING = 'task T { step a: tool.write { path: "a" text: "x" } step b: tool.write { path: "b" text: "y" } }'
FAILING = 'task T { step a: tool.write { path: "a" text: "x" exit: 1 } }'
KILLED = 'task T { step a: tool.write { path: "a" text: "x" status: "limit" } }'
MEASURED = """
AGENT M LEVEL 5 {
  START -> t
  TASK t {
    step w: tool.write { path: "c.txt" text: "x" }
    VALIDATOR Timer { file: "c.txt", role: "baseline" }
  }
}
"""


def kinds(run: Any) -> list[str]:
    return [record.kind for record, _ in run.ledger.read() if record.authority != "host"]


def calm(folder: Path, spec: str) -> tuple[str, str]:
    run = start(folder / "calm", spec)
    run.advance("full_auto")
    run.close()
    return run.state.status, run.state.summary


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_commit_that_the_disk_refuses_is_no_outcome_of_the_tool(tmp_path: Path, code: int) -> None:
    run, refused = start(tmp_path, WRITING), True

    def before(call: str) -> None:
        if refused and call == "fsync" and run.workspace._state == "open":
            raise OSError(code, os.strerror(code))

    run.workspace._disk._before = before
    records = run.ledger.count
    with pytest.raises(RunError) as stopped:
        run.advance("full_auto")
    assert stopped.value.code in CODES and "act" not in kinds(run)
    assert run.ledger.count == records
    run.close()
    refused = False
    again = reopen(tmp_path)
    assert not (tmp_path / "run-1/workspace/a").exists()
    assert again.advance("full_auto") == "ended"
    assert (again.state.status, again.state.summary) == calm(tmp_path, WRITING)
    again.close()


def test_a_step_whose_outcome_was_not_handed_in_is_undone_by_its_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, WRITING)
    proof = run._proof

    def refused(judged: Any) -> Any:
        if run.workspace._state == "done":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return proof(judged)

    monkeypatch.setattr(run, "_proof", refused)
    with pytest.raises(OSError):
        run.advance("full_auto")
    run.close()
    again = reopen(tmp_path)
    assert not (tmp_path / "run-1/workspace/a").exists()
    assert "rollback" not in [record.kind for record, _ in again.ledger.read()], "nobody else changed a file"
    assert again.advance("full_auto") == "ended"
    again.close()


@pytest.mark.parametrize("spec", [FAILING, KILLED, MEASURED], ids=["exit", "status", "validator"])
def test_what_fails_while_the_disk_is_full_is_done_again(
    tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = calm(tmp_path, spec)
    run = start(tmp_path, spec)
    if spec is MEASURED:  # a check of it fails, for want of room
        void = Measurement("void", checks=({"name": "ran", "ok": False, "code": "no_space"},))
        monkeypatch.setattr(run.performer.host.validators["Timer"], "measure", lambda call: void)
    with monkeypatch.context() as full:
        full.setattr(faults, "has_room", lambda folder: False)
        with pytest.raises(RunError) as stopped:
            run.advance("full_auto")
        assert stopped.value.code == "workspace.full" and "route" not in kinds(run)[-1:]
        assert not (tmp_path / "run-1/workspace/a").exists()
    run.close()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "ended"
    assert (again.state.status, again.state.summary) == expected
    assert replay(record for record, _ in again.ledger.read()).difference is None
    again.close()


def test_what_succeeds_on_a_full_disk_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "has_room", lambda folder: False)
    run = start(tmp_path, WRITING)
    assert run.advance("full_auto") == "ended" and run.state.status == "succeeded"
    run.close()


def test_what_fails_with_room_is_an_outcome(tmp_path: Path) -> None:
    faults.look(None, True, ToolResult("exited", 1), tmp_path)
    assert host().launcher is None and calm(tmp_path, FAILING)[0] == "failed"


@pytest.mark.parametrize(
    ("free", "size", "inodes", "room"),
    [
        (64 << 20, 1 << 40, (100, 10), True),
        ((64 << 20) - 4096, 1 << 40, (100, 10), False),
        (128 << 10, 1 << 20, (100, 10), True),  # a disk of 1 MiB
        (32 << 10, 1 << 20, (100, 10), False),
        (64 << 20, 1 << 40, (100, 0), False),
        (64 << 20, 1 << 40, (100, 5), False),
        (64 << 20, 1 << 40, (1 << 20, 1023), False),
        (64 << 20, 1 << 40, (1 << 20, 1024), True),
        (64 << 20, 1 << 40, (0, 0), True),  # btrfs counts none
    ],
)
def test_room(
    monkeypatch: pytest.MonkeyPatch, free: int, size: int, inodes: tuple[int, int], room: bool
) -> None:
    block = 4096
    found = (
        block,
        block,
        size // block,
        free // block,
        free // block,
        inodes[0],
        inodes[1],
        inodes[1],
        0,
        255,
    )
    monkeypatch.setattr(disk.os, "statvfs", lambda folder: os.statvfs_result(found))
    assert disk.has_room(Path("/")) is room


def test_a_disk_that_cannot_be_asked_has_room(tmp_path: Path) -> None:
    assert disk.has_room(tmp_path / "nowhere")
