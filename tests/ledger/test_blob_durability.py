"""What a writer that was killed has put and not synced is durable before a record can rest on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ledger_contract import genesis
from spak.ledger import FileLedgers, blobs
from spak.records import Record


def names(digest: str) -> Record:
    return Record("act", "proposal", {"blob": digest})


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced, in order."""
    found: list[str] = []
    data_only, whole = os.fdatasync, blobs.sync_file_system
    monkeypatch.setattr(os, "fdatasync", lambda fd: found.append("ledger") or data_only(fd))
    monkeypatch.setattr(blobs, "sync_file_system", lambda fd: found.append("all blobs") or whole(fd))
    return found


def test_blobs_of_a_dead_writer_are_synced_before_the_records(tmp_path: Path, order: list[str]) -> None:
    """Those that its last records name, and those that it put and wrote no record of."""
    ledger = FileLedgers(tmp_path).create("r1", genesis())
    ledger.append([names(ledger.blobs.put(b"named"))])
    ledger.blobs.put(b"not named")
    ledger._lease.release()  # type: ignore[union-attr]
    order.clear()
    again = FileLedgers(tmp_path).open("r1")
    again.append([names(again.blobs.put(b"not named"))])
    again.flush()
    assert order == ["all blobs", "ledger"]
    again.append([names(again.blobs.put(b"named"))])
    again.flush()
    assert order == ["all blobs", "ledger", "ledger"], "once is enough"
    again.close()


def test_a_sync_that_fails_is_tried_again(
    tmp_path: Path, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = FileLedgers(tmp_path).create("r1", genesis())
    ledger.blobs.put(b"bytes")
    ledger._lease.release()  # type: ignore[union-attr]
    again = FileLedgers(tmp_path).open("r1")

    def fails(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(blobs, "sync_file_system", fails)
        with pytest.raises(blobs.LedgerError, match="flushing blobs"):
            again.flush()
    order.clear()
    again.close()
    assert order == ["all blobs", "ledger"]


def test_a_run_without_blobs_syncs_its_records_alone(tmp_path: Path, order: list[str]) -> None:
    FileLedgers(tmp_path).create("r1", genesis()).close()
    order.clear()
    FileLedgers(tmp_path).open("r1").close()
    assert order == ["ledger"]


def test_after_a_sync_that_failed_a_blob_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second fsync of the same file says that all is well, and may not be so."""

    def fails(fd: int) -> None:
        raise OSError(5, "Input/output error")

    store = blobs.FileBlobs(tmp_path / "blobs")
    digest = store.put(b"bytes")
    (path,) = (tmp_path / "blobs").glob("*/*")
    with path.open("rb") as before:  # held, so that its number is not given to another file
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fails)
            with pytest.raises(blobs.LedgerError, match="flushing blobs"):
                store.flush()
        store.flush()
        assert path.stat().st_ino != os.fstat(before.fileno()).st_ino
    assert store.get(digest) == b"bytes"
