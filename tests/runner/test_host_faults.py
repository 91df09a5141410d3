"""Faults of the host while a run works: no verdict on a launcher and no outcome of a tool."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host_kit import reopen, start
from spak.errors import RunError, UnavailableError, UserError
from spak.lang.catalog import NamedEntry
from spak.ports import Call, Measurement, ToolResult
from spak.runner import faults
from spak.tools.results import guarded

FULL = os.strerror(errno.ENOSPC)
QUOTA = os.strerror(errno.EDQUOT)
WRITING = 'task T { step a: tool.write { path: "a" text: "x" } }'


class Box:
    """A launcher whose probe says what it is given."""

    entry = NamedEntry("box", "for tests")

    def __init__(self, said: str | Exception) -> None:
        self.said = said

    def probe(self) -> str:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


@pytest.mark.findings("F2")
@pytest.mark.parametrize(
    "said",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "Too many open files in system"),
        RuntimeError("can't start new thread"),
        MemoryError(),
        "bwrap does not start: Resource temporarily unavailable",
        "[Errno 12] Cannot allocate memory; to fix: see docs/sandbox.md",
    ],
    ids=repr,
)
def test_a_probe_that_lacked_something_is_no_verdict(said: Any) -> None:
    found = faults.fault_of(Box(said))  # type: ignore[arg-type]
    assert found is not None and found.code == "unavailable.host"


def test_a_probe_that_failed_otherwise_is_one() -> None:
    found = faults.fault_of(Box("bwrap: No permissions"))  # type: ignore[arg-type]
    assert found is not None and (found.code, found.hint) == ("unavailable.sandbox", "bwrap: No permissions")
    assert faults.fault_of(Box("")) is None  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        faults.fault_of(Box(FileNotFoundError(errno.ENOENT, "gone")))  # type: ignore[arg-type]


@pytest.mark.findings("F2")
@pytest.mark.parametrize("text", ["[Errno 24] Too many open files", "can't start new thread"])
def test_a_sandbox_that_did_not_start_for_want_of_something(tmp_path: Path, text: str) -> None:
    """Though it would start by now: the probe says that all is well."""
    with pytest.raises(UnavailableError, match="did not start"):
        faults.look(Box(""), True, ToolResult("launcher", 125, text.encode()), tmp_path)  # type: ignore[arg-type]
    check = {"name": "ran", "ok": False, "code": "launcher", "detail": text}
    with pytest.raises(UnavailableError, match="did not start"):
        faults.look_at_measurement(Measurement("unavailable", checks=(check,)), tmp_path)


@pytest.mark.parametrize("text", ["all sandbox users are taken", "bwrap: No permissions"])
def test_a_sandbox_that_did_not_start_otherwise(tmp_path: Path, text: str) -> None:
    faults.look(Box(""), True, ToolResult("launcher", 125, text.encode()), tmp_path)  # type: ignore[arg-type]


@pytest.mark.findings("F1")
@pytest.mark.parametrize("name", ["EIO", "EROFS", "EDQUOT", "ENOSPC", "EFBIG", "EMFILE", "ENOMEM", "EAGAIN"])
@pytest.mark.parametrize("within", [False, True])
def test_a_tool_of_the_host_that_met_one_has_no_outcome(tmp_path: Path, name: str, within: bool) -> None:
    def work(call: Call) -> ToolResult:
        error = OSError(getattr(errno, name), os.strerror(getattr(errno, name)))
        if within:
            raise RunError("git.failed", "it ended", "") from error
        raise error

    call = Call("e", "tool", {}, tmp_path, None)
    if within and name == "EFBIG":
        assert guarded(work, call).exit == 1
        return
    with pytest.raises(UserError):
        guarded(work, call)


def saying(run: Any, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> list[str]:
    """The tool `write` is one of a sandbox, whose calls say these texts and fail; then all is well."""
    tool = run.performer.host.tools["write"]
    usual, seen = tool.run, []

    def fails(call: Call) -> ToolResult:
        done = usual(call)
        seen.append(call.id)
        if texts:
            return ToolResult("exited", 1, f"a: {texts.pop(0)}".encode(), 9)
        return done

    monkeypatch.setattr(tool, "run", fails)
    monkeypatch.setattr(type(tool), "entry", replace(tool.entry, sandboxed=True))
    monkeypatch.setattr(faults, "PAUSE_S", 0)
    return seen


@pytest.mark.findings("F3")
@pytest.mark.parametrize("said", [FULL, QUOTA])
def test_a_step_that_says_that_the_disk_is_full_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """The runner looks after it, and there is room again."""
    run = start(tmp_path, WRITING)
    seen = saying(run, monkeypatch, [said] * faults.REPEATS)
    assert run.advance("full_auto") == "ended" and run.state.status == "succeeded"
    assert len(seen) == faults.REPEATS + 1 and len(set(seen)) == 1
    run.close()


@pytest.mark.findings("F3")
def test_one_that_says_so_each_time_has_that_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own small disk is full, which more tries do not change."""
    run = start(tmp_path, WRITING)
    seen = saying(run, monkeypatch, [FULL] * 99)
    assert run.advance("full_auto") == "ended" and run.state.status == "failed"
    assert len(seen) == faults.REPEATS + 1
    run.close()


@pytest.mark.findings("F3")
def test_a_step_that_is_done_again_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(tmp_path, WRITING)
    seen = saying(run, monkeypatch, [FULL] * 99)

    def cancels(seconds: float, cancel: Any) -> None:
        cancel.set()

    monkeypatch.setattr(faults, "sleep", cancels)
    assert run.advance("full_auto") == "interrupted" and len(seen) == 1
    run.close()
    again = reopen(tmp_path)
    assert again.advance("full_auto") == "ended"
    again.close()


def test_the_words_alone_are_no_full_disk_for_a_tool_of_the_host(tmp_path: Path) -> None:
    """What it prints may be the answer of another machine."""
    faults.look(None, False, ToolResult("exited", 1, FULL.encode()), tmp_path, last=False)
    with pytest.raises(faults.NamesFull):
        faults.look(
            None, True, ToolResult("exited", 1, b"", diagnostics=({"message": FULL},)), tmp_path, False
        )


@pytest.mark.findings("F3")
def test_a_check_that_says_so_is_done_again(tmp_path: Path) -> None:
    check = {"name": "ran", "ok": False, "code": "exit", "detail": f"x: {FULL}"}
    with pytest.raises(faults.NamesFull):
        faults.look_at_measurement(Measurement("checked", checks=(check,)), tmp_path, last=False)
    faults.look_at_measurement(Measurement("checked", checks=({**check, "ok": True},)), tmp_path, last=False)
