"""What is a fault of the host, by an error or by what a program said of it."""

from __future__ import annotations

import errno
import os
import re
import threading
from pathlib import Path

import pytest

from spak.errors import LedgerError, RunError, UnavailableError
from spak.files import faults
from spak.files.disk import refusal, unwritable

ROOT = Path(__file__).parents[1]
HOST = ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENFILE", "EAGAIN", "ENOMEM")
pytestmark = pytest.mark.findings("F1", "F2")


@pytest.mark.parametrize("name", HOST)
def test_each_fault_of_the_host_is_one_in_every_shape(name: str) -> None:
    error = OSError(getattr(errno, name), os.strerror(getattr(errno, name)), "/srv/x")
    later = UnavailableError("unavailable.sandbox", "it does not start", "")
    later.__cause__ = error
    assert faults.is_fault(error) and faults.is_fault(later) and faults.is_fault(refusal(error, "working"))
    assert faults.is_full(refusal(error, "working")) is faults.is_full(error) is (name in HOST[:2])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError(faults.NO_THREAD), True),
        (LedgerError("ledger.io", "", ""), True),
        (RuntimeError("something else"), False),
        (FileNotFoundError(errno.ENOENT, "no such file"), False),
        (RunError("workspace.changing", "", ""), False),
        (UnavailableError("unavailable.sandbox", "there is no image", ""), False),
        (ValueError(), False),
        (None, False),
    ],
    ids=repr,
)
def test_what_else_is_and_is_not(error: BaseException | None, expected: bool) -> None:
    assert faults.is_fault(error) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bwrap: Creating new namespace failed: Resource temporarily unavailable", "Resource temporarily"),
        ("[Errno 24] Too many open files", "Too many"),
        ("fork/exec: cannot allocate memory", "Cannot allocate"),
        ("can't start new thread", "can't start"),
        ("bwrap: No permissions to create a new namespace", ""),
        ("nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)", ""),
    ],
)
def test_what_a_program_that_did_not_start_said(text: str, expected: str) -> None:
    found = faults.starting(text)
    assert found.startswith(expected) if expected else not found


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    assert unwritable(tmp_path) == "" and not list(tmp_path.iterdir())
    assert unwritable(tmp_path / "nowhere") == os.strerror(errno.ENOENT)


def test_a_folder_whose_disk_fails_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    assert unwritable(tmp_path) == os.strerror(errno.EIO) and not list(tmp_path.iterdir())
    monkeypatch.undo()
    threads = [threading.Thread(target=unwritable, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not list(tmp_path.iterdir())


@pytest.mark.findings("F9")
def test_temporary_folders_are_those_that_a_later_process_sweeps() -> None:
    """`dir=` puts one elsewhere, into what somebody cleans; an image is built by hand."""
    found = {
        f"{path.name}: {line.strip()}"
        for top in ("agents", "platform")
        for path in (ROOT / top).rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"\b(TemporaryDirectory|mkdtemp)\(", line) and "dir=" not in line
    }
    assert {line.partition(":")[0] for line in found} == {"images.py"}, found
