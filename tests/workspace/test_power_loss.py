"""A loss of power takes any part of what was not synced: the pack opens, and no step is undone wrongly."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.errors import RunError
from spak.files.disk import Disk
from spak.workspace import Workspace
from workspace.trees import fingerprint, plant

SECTOR = 512


class Failing(Disk):
    """A disk whose next sync fails."""

    fails = False

    def fdatasync(self, fd: int) -> None:
        if self.fails:
            self.fails = False
            raise OSError(5, "Input/output error")
        super().fdatasync(fd)


def _history(place: Path) -> tuple[Path, Path, int, str]:
    """Two steps; gives folder, pack, how much of the pack was synced before the second, and its root."""
    folder = place / "ws"
    folder.mkdir(parents=True)
    plant(folder)
    (folder / "big").write_bytes(b"not so big")
    space = Workspace(folder, place / "store")
    space.begin("e1")
    synced = (place / "store" / "pack").stat().st_size
    (folder / "src" / "a.c").write_bytes(b"edited" * 200)
    (folder / "made").mkdir()
    (folder / "made" / "f").write_bytes(b"made" * 500)
    space.commit()
    space.settle()
    root = space.begin("e2")
    return folder, place / "store" / "pack", synced, root


def _lose(pack: Path, synced: int, lost: set[int], length: int) -> None:
    """Sectors that never reached the disk read as zeros; the file may be shorter too."""
    data = bytearray(pack.read_bytes())
    for sector in lost:
        start = max(synced, (synced // SECTOR + sector) * SECTOR)
        end = min((synced // SECTOR + sector + 1) * SECTOR, len(data))
        data[start:end] = bytes(max(0, end - start))
    pack.write_bytes(data[: max(synced, len(data) - length)])


@settings(max_examples=60, deadline=None)
@given(lost=st.sets(st.integers(0, 12), max_size=6), length=st.integers(0, 5000) | st.just(0))
def test_whatever_was_not_synced_may_be_lost(lost: set[int], length: int) -> None:
    """The second effect had not begun: its sync had not returned. The folder is as the first step left it."""
    with tempfile.TemporaryDirectory() as place:
        folder, pack, synced, root = _history(Path(place))
        before = fingerprint(folder)
        _lose(pack, synced, lost, length)
        space = Workspace(folder, pack.parent)
        assert space.recover("e2", root) == []
        assert fingerprint(folder) == before
        assert space.snapshot() == root == space.begin("e2")
        (folder / "src" / "a.c").unlink()
        (folder / "made" / "f").write_bytes(b"spoiled")
        again = Workspace(folder, pack.parent)
        again.recover("e2", root)
        assert fingerprint(folder) == before and again.pending() is None
        copy = Workspace(Path(place, "copy"), Path(place, "copy-store"))
        copy.restore(root, source=pack.parent)
        assert copy.snapshot() == root


def test_a_first_write_that_never_arrived_is_an_empty_store(tmp_path: Path) -> None:
    folder, pack, _, root = _history(tmp_path)
    for data in (b"", bytes(5), bytes(10_000)):
        pack.write_bytes(data)
        space = Workspace(folder, pack.parent)
        assert space.pending() is None and space.recover("e2", root) == []
        assert space.begin("e2") == root
        (folder / "private").write_bytes(b"changed")
        assert Workspace(folder, pack.parent).recover("e2", root) == ["private"]


@pytest.mark.parametrize("first", [True, False])
def test_after_a_sync_that_failed_all_is_written_again(tmp_path: Path, first: bool) -> None:
    """The kernel may drop what it could not write, and a second sync would not say so."""
    folder = tmp_path / "ws"
    folder.mkdir()
    plant(folder)
    space = Workspace(folder, tmp_path / "store")
    disk = Failing()
    space._disk = space._store._disk = space._scanner.disk = disk
    if not first:
        space.begin("e0")
        (folder / "private").write_bytes(b"other")
        space.commit()
        space.settle()
    pack = tmp_path / "store" / "pack"
    synced = 0 if first else space._store._synced
    disk.fails = True
    with pytest.raises(RunError) as caught:
        space.begin("e1")
    assert caught.value.code == "workspace.io"
    with pack.open("r+b") as file:  # what the kernel dropped
        file.seek(synced)
        file.write(bytes(pack.stat().st_size - synced))
    before = fingerprint(folder)
    root = space.begin("e1")
    (folder / "private").write_bytes(b"spoiled")
    os.truncate(folder / "big", 7)
    again = Workspace(folder, tmp_path / "store")
    assert sorted(again.recover("e1", root)) == ["big", "private"]
    assert fingerprint(folder) == before


def test_the_name_of_the_pack_is_durable_before_the_first_step_begins(tmp_path: Path) -> None:
    """A snapshot waits for no disk; whoever opens a pack of which nothing was synced syncs its name."""
    folder = tmp_path / "ws"
    folder.mkdir()
    plant(folder)
    space = Workspace(folder, tmp_path / "store")
    space.snapshot()
    assert space.fsyncs == 0
    killed = Workspace(folder, tmp_path / "store")
    killed.begin("e1")
    assert killed.fsyncs == 2
    killed.rollback()
    killed.begin("e1")
    assert killed.fsyncs == 3
    again = Workspace(folder, tmp_path / "store")
    again.recover("e1", "")
    again.begin("e2")
    assert again.fsyncs == 1


def test_a_name_that_cannot_be_synced_begins_no_step(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    plant(folder)
    failures = iter([False, True])

    def before(call: str) -> None:
        if call == "fsync" and next(failures, False):
            raise OSError(5, "Input/output error")

    space = Workspace(folder, tmp_path / "store", before=before)
    with pytest.raises(RunError) as caught:
        space.begin("e1")
    assert caught.value.code == "workspace.io" and space.fsyncs == 1
    space.begin("e1")
    assert space.fsyncs == 3
    (folder / "private").write_bytes(b"spoiled")
    assert Workspace(folder, tmp_path / "store").recover("e1", "") == ["private"]
