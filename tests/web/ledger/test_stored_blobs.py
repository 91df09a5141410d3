"""A blob on a disk is durable, its name and its folders' too, before a row or a record can rest on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage

from spak import canon
from spak.errors import LedgerError
from spakweb.store.ledger import blobs


@pytest.fixture
def synced(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were synced, in order, below the folder of the storage."""
    settings.MEDIA_ROOT = tmp_path / "media"
    found: list[str] = []
    really = os.fsync

    def fsync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        found.append(str(path.relative_to(tmp_path)))
        really(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_bytes_name_and_folders_are_synced_in_that_order(synced: list[str]) -> None:
    digest = canon.digest(b"bytes")
    assert blobs.store(digest, b"bytes")
    shelf = f"media/blobs/{digest[:2]}"
    assert synced[0].startswith(f"{shelf}/.{digest}.")
    assert synced[1:] == [shelf, "media/blobs", "media"]


def test_a_blob_that_somebody_else_has_just_put_there_is_durable_too(
    synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread or process has renamed it, and has not come to sync the folder, or never will."""
    digest = canon.digest(b"bytes")

    def killed(path: Path) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(blobs, "_sync_name", killed)
        with pytest.raises(LedgerError):
            blobs.store(digest, b"bytes")
    assert Path(default_storage.path(blobs.name_of(digest))).is_file()
    synced.clear()
    assert not blobs.store(digest, b"bytes")
    assert synced == [f"media/blobs/{digest[:2]}", "media/blobs", "media"]


def test_a_name_is_synced_once_for_each_file_that_it_is_given_to(synced: list[str]) -> None:
    """Runs of one spec store the same proofs; what is deleted and stored again is another file."""
    digest = canon.digest(b"bytes of many runs")
    assert blobs.store(digest, b"bytes of many runs")
    shelf = f"media/blobs/{digest[:2]}"
    for expected in ([shelf], [], []):
        synced.clear()
        assert not blobs.store(digest, b"bytes of many runs")
        assert synced == expected
    path = Path(default_storage.path(blobs.name_of(digest)))
    aside = path.with_name("by-somebody-else")
    aside.write_bytes(b"bytes of many runs")
    aside.rename(path)
    assert not blobs.store(digest, b"bytes of many runs")
    assert synced == [shelf]
    path.write_bytes(b"other bytes, as many")
    assert blobs.store(digest, b"bytes of many runs") and path.read_bytes() == b"bytes of many runs"
