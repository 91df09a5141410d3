"""Two contents of one name: the hash is weak on purpose here, and the bytes are compared."""

from __future__ import annotations

import hashlib
from itertools import count
from pathlib import Path

import pytest

from spak.errors import LedgerError, RunError
from spak.ledger.blobs import FileBlobs
from spak.ledger.memory import MemoryBlobs
from spak.workspace import Workspace
from spak.workspace.store import CHUNK, name


class Weak:
    """SHA-256 of which 6 bits are left, as `hashlib` has it."""

    def __init__(self) -> None:
        self._inner = hashlib.sha256()

    def update(self, data: bytes) -> None:
        self._inner.update(data)

    def digest(self) -> bytes:
        return bytes([self._inner.digest()[0] & 0x3F]) * 32


def weak(data: bytes) -> str:
    hashing = Weak()
    hashing.update(data)
    return name(hashing)  # type: ignore[arg-type]


def colliding(first: bytes, padding: int = 0) -> bytes:
    """Other bytes of the same length and the same weak name."""
    for number in count():
        found = b"%0*d" % (len(first) - padding, number) + first[len(first) - padding :]
        if weak(found) == weak(first) and found != first:
            return found
    raise AssertionError


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws", tmp_path / "store", hashing=Weak)  # type: ignore[arg-type]


FIRST = b"000 the first content"


@pytest.mark.parametrize("where", ["same file", "another file", "a link"])
def test_a_snapshot_refuses_a_second_content_of_one_name(space: Workspace, where: str) -> None:
    (space.directory / "a.txt").write_bytes(FIRST)
    space.snapshot()
    other = colliding(FIRST)
    match where:
        case "same file":
            (space.directory / "a.txt").write_bytes(other)
        case "another file":
            (space.directory / "b.txt").write_bytes(other)
        case _:
            (space.directory / "b").symlink_to(other.decode())
    with pytest.raises(RunError) as caught:
        space.snapshot()
    assert caught.value.code == "workspace.collision" and caught.value.hint


def test_a_step_that_makes_one_is_neither_committed_nor_taken_for_no_change(space: Workspace) -> None:
    (space.directory / "a.txt").write_bytes(FIRST)
    space.begin("e1")
    (space.directory / "a.txt").write_bytes(colliding(FIRST))
    for act in (space.touched, space.commit, space.snapshot):
        with pytest.raises(RunError) as caught:
            act()
        assert caught.value.code == "workspace.collision"
    assert space.pending() is not None
    space.rollback()
    assert (space.directory / "a.txt").read_bytes() == FIRST and space.pending() is None


def test_a_large_file_is_compared_piece_by_piece(space: Workspace) -> None:
    first = b"x" * 32 + b"y" * (2 * CHUNK)
    (space.directory / "a.bin").write_bytes(first)
    space.snapshot()
    (space.directory / "b.bin").write_bytes(first)
    space.snapshot()
    (space.directory / "c.bin").write_bytes(colliding(first, padding=2 * CHUNK))
    with pytest.raises(RunError) as caught:
        space.snapshot()
    assert caught.value.code == "workspace.collision"


def test_the_same_content_twice_is_no_collision(space: Workspace) -> None:
    (space.directory / "a.txt").write_bytes(FIRST)
    root = space.snapshot()
    (space.directory / "a.txt").write_bytes(FIRST)
    assert space.snapshot() == root


def test_blobs_keep_the_first_and_refuse_the_second(tmp_path: Path) -> None:
    other = colliding(FIRST)
    for blobs in (FileBlobs(tmp_path / "blobs", digest=weak), MemoryBlobs({}, digest=weak)):
        kept = blobs.put(FIRST)
        with pytest.raises(LedgerError) as caught:
            blobs.put(other)
        assert caught.value.code == "ledger.collision"
        assert blobs.get(kept) == FIRST and blobs.put(FIRST) == kept


def test_a_damaged_blob_is_written_again_as_before(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    kept = blobs.put(FIRST)
    (tmp_path / "blobs" / kept[:2] / kept).write_bytes(b"damaged")
    assert blobs.put(FIRST) == kept and blobs.get(kept) == FIRST
