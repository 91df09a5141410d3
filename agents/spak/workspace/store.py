"""What a workspace must keep, in one file that only grows: contents under their SHA-256, and steps begun.

    <store>/pack    `spak-pack 1\\n`, then records: a head of 64 bytes and the bytes that it names
    <store>/index   where its objects are, a cache (spak.workspace.index)
    <store>/shared  a pack that is finished, and the same file in several stores (spak.workspace.earlier)
    <store>/lock    the workspace lock, empty
    <store>/fence   the highest lease that took it (spak.workspace.lock)
    <store>/secrets what was in files of secrets (spak.workspace.secret_list)

A head is kind (1), SHA-256 in base64url (43), length (8), synced (8) and the CRC-32 of these (4). Kinds: `o`
a file content, link target or folder list, `b` a step begins (`spak.workspace.wal`), `s` nothing is under way
any more, `x` void. One write appends all that is new, and one sync makes it durable.

A name that is known is no proof that bytes are: whatever is put under one is compared with what is kept
(`compare`), and a second content of the same name is refused.

A loss of power can take any part of what was not synced. `synced` says how much of the file was known to be
on disk when the head was written, so whoever opens the file to write verifies the rest once, and voids
records that are not whole: their contents are stored again when they are seen again, and a step whose record
is not whole had not begun. The file ends for us where the first head is not whole.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from spak.cancel import Cancel, check
from spak.errors import RunError
from spak.files.disk import Disk
from spak.workspace import index as indexes
from spak.workspace.index import Covered, Index

SHARED = "shared"
CHUNK = 1 << 20

MAGIC = b"spak-pack 1\n"
"""Raise the number when an older reader would misread the file."""

_HEAD = struct.Struct(">c43sQQ")
_CRC = struct.Struct(">I")
_SIZE = _HEAD.size + _CRC.size
_BUFFERED = 4 << 20
COLLISION = "workspace.collision"
Hashing = Callable[[], "hashlib._Hash"]
_Place = tuple[int, int]
"""Where the bytes begin, and how many they are."""


class Source(Protocol):
    """Where objects may be read from."""

    def has(self, digest: str) -> bool:
        """Whether a content is there."""

    def pieces(self, digest: str) -> Iterator[bytes]:
        """A content in pieces. Raises: LedgerError where it is not there."""


class Store:
    """The objects of one workspace; many may read the file, whoever holds the workspace lock may write."""

    def __init__(
        self, folder: Path, disk: Disk, most_bytes: int | None = None, hashing: Hashing = hashlib.sha256
    ) -> None:
        self.folder = folder
        self.hashing = hashing
        """What names contents. Only a test gives another one, to have two contents of one name."""
        self._most_bytes = most_bytes
        self.sources: tuple[Source, ...] = ()
        """Other places to read from: the store of a run that this one was forked from, the run's blobs."""
        self.shared: Store | None = None
        """A finished pack that this one goes on from: what is there is not kept again."""
        self.lost = False
        """Something had been written but was not whole when we opened the file."""
        self._path = folder / "pack"
        self._disk = disk
        self._fd = -1
        self._writable = False
        self._seen: tuple[int, int, int] = (0, 0, 0)
        self._base = Index()
        self._index: dict[str, _Place] = {}
        """Objects that are not in the index file."""
        self._waiting: dict[str, bytes] = {}
        self._waiting_size = 0
        self._begun: tuple[str, _Place] | None = None
        self._end = self._synced = self._last = 0

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    # ---- looking -----------------------------------------------------------------------------------

    def look(self, *, write: bool = False) -> None:
        """See what is there, and what others have written since. Raises: RunError `workspace.object`."""
        if self._fd < 0 and self.shared is None and (self.folder / SHARED).is_dir():
            self.shared = Store(self.folder / SHARED, self._disk, hashing=self.hashing)
            self.shared.look()
        try:
            found = self._path.stat()
        except FileNotFoundError:
            if not write:
                return self._close()
            found = self._create()
        seen = (found.st_dev, found.st_ino, found.st_size)
        if seen == self._seen and self._writable >= write:
            return None
        if seen[:2] != self._seen[:2] or found.st_size < self._end or self._writable < write:
            self._close()
            self._fd = os.open(self._path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)
            self._writable = write
        self._seen = seen
        self._index_from(found.st_size)
        return None

    def digest(self, data: bytes) -> str:
        """The name of a content."""
        hashing = self.hashing()
        hashing.update(data)
        return name(hashing)

    def has(self, digest: str) -> bool:
        """Whether a content is there, or waits to be written."""
        if self._fd < 0:
            self.look()
        return self._has_own(digest) or self.shares(digest)

    def shares(self, digest: str) -> bool:
        """Whether the shared pack has a content."""
        return self.shared is not None and self.shared.has(digest)

    def knows(self, digest: str) -> bool:
        """Whether it is here or in one of the sources."""
        return self.has(digest) or any(source.has(digest) for source in self.sources)

    def pieces(self, digest: str) -> Iterator[bytes]:
        """An object that is here, unchecked."""
        place = self._place(digest)
        if place is None and self.shared is not None:
            return self.shared.pieces(digest)
        assert place is not None
        return self._pieces(place)

    def read(self, digest: str) -> bytes:
        """A small object. Raises: RunError `workspace.object`."""
        data = b"".join(self._chunks(digest))
        if self.digest(data) != digest:
            raise _damaged(digest)
        return data

    def small(self, digest: str) -> bytes | None:
        """A small object of the file itself; None where it is not there, or not what it is called."""
        if self._fd < 0 or (place := self._place(digest)) is None:
            return None
        data = os.pread(self._fd, place[1], place[0])
        return data if self.digest(data) == digest else None

    def copy_to(self, digest: str, fd: int) -> None:
        """Write an object to an open file. Raises: RunError `workspace.object`; it may be half written."""
        hashing = self.hashing()
        for chunk in self._chunks(digest):
            hashing.update(chunk)
            self._disk.write(fd, chunk)
        if name(hashing) != digest:
            raise _damaged(digest)

    @property
    def size(self) -> int:
        """Bytes of what is in the file."""
        return self._end

    def begun(self) -> bytes | None:
        """The record of the step under way, if one is."""
        if self._begun is None:
            return None
        digest, place = self._begun
        data = b"".join(self._pieces(place))
        return data if self.digest(data) == digest else None

    # ---- writing -----------------------------------------------------------------------------------

    def put(self, digest: str, data: bytes, *, own: bool = False) -> None:
        """Keep bytes whose digest is known already; they are in the file after `write`. `own`: though the
        shared pack has them, for there they are damaged.

        Raises: RunError `workspace.limit` where it would hold too much, `workspace.collision`.
        """
        if not own:
            self.compare(digest, data)
        if not (self._has_own(digest) if own else self.has(digest)):
            self._must_hold(len(data))
            self._waiting[digest] = data
            self._waiting_size += len(data)
            if self._waiting_size > _BUFFERED:
                self.write()

    def put_file(self, digest: str, fd: int, size: int, cancel: Cancel | None = None) -> bool:
        """Keep the content of an open file; False when it is not what `digest` says (any more).

        Raises: Cancelled, RunError `workspace.limit` or `workspace.collision`, and nothing of it is kept.
        """
        if self.has(digest):
            self.compare_file(digest, fd)
            return True
        self._must_hold(size)
        self.write()
        if self._end == 0:
            self._append([])
        hashing, at = self.hashing(), self._end + _SIZE
        self._put_at(self._head(b"o", digest, size), self._end)
        os.lseek(fd, 0, os.SEEK_SET)
        while (chunk := os.read(fd, CHUNK)) and at + len(chunk) <= self._end + _SIZE + size:
            check(cancel)
            hashing.update(chunk)
            self._put_at(chunk, at)
            at += len(chunk)
        if chunk or name(hashing) != digest:
            return False
        self._index[digest] = (self._end + _SIZE, size)
        self._last, self._end = self._end, at
        return True

    def meet(self, digest: str, data: bytes, keep: bool) -> None:
        """Put bytes that were just read, or only compare them. Raises: as `put`."""
        if keep:
            self.put(digest, data)
        else:
            self.compare(digest, data)

    def compare(self, digest: str, data: bytes) -> None:
        """The second line after the hash: bytes of a name that is known are the bytes that are kept.

        Raises: RunError `workspace.collision`. What is kept and damaged is not compared: `read` finds that.
        """
        if self.has(digest):
            known = self._waiting.get(digest)
            known = b"".join(self.pieces(digest)) if known is None else known
            if known != data and self.digest(known) == digest:
                raise _collision(digest)

    def compare_file(self, digest: str, fd: int) -> None:
        """The same of an open file, piece by piece. Raises: RunError `workspace.collision`."""
        if digest in self._waiting or not self.has(digest):
            return
        os.lseek(fd, 0, os.SEEK_SET)
        same, hashing = True, self.hashing()
        for piece in self.pieces(digest):
            hashing.update(piece)
            same = same and _read(fd, len(piece)) == piece
        if not (same and not os.read(fd, 1)) and name(hashing) == digest:
            raise _collision(digest)

    def write(self) -> None:
        """Write what is new."""
        if self._waiting:
            self._append([(b"o", digest, data) for digest, data in self._waiting.items()])

    def sync(self) -> None:
        """Write what is new, and make all durable."""
        self.write()
        if self._end > self._synced:
            self._sync()

    def begin(self, data: bytes) -> None:
        """A step begins: its record, and every object put so far, are durable."""
        new = [(b"o", digest, one) for digest, one in self._waiting.items()]
        self._append([*new, (b"b", self.digest(data), data)])
        try:
            self._sync()
        except BaseException:
            self._forget_unsynced()
            raise

    def settle(self) -> None:
        """Nothing is under way any more. Not synced: a step that came back would name its effect."""
        if self._begun is not None:
            self._append([(b"s", "", b"")])

    def keep_index(self) -> None:
        """Write where the objects are, if many are new: opening then looks at those after them alone.

        Raises: OSError, and the index is as it was.
        """
        enough = max(indexes.LEAST, len(self._base) // indexes.GROWN)
        if len(self._index) < enough or not self._writable or self._waiting or not self._last:
            return
        self._sync()
        covered = Covered(self._end, self._last, os.pread(self._fd, _SIZE, self._last), self._begun)
        indexes.write(self.folder, self._disk, covered, self._base.with_more(self._index))
        written = indexes.read(self.folder, self._fd, self._end)
        if written.covered is not None:
            self._base, self._index = written, {}

    # ---- private: reading --------------------------------------------------------------------------

    def _chunks(self, digest: str) -> Iterator[bytes]:
        if digest in self._waiting:
            yield self._waiting[digest]
            return
        for source in (self, *self.sources):
            if source.has(digest):
                yield from source.pieces(digest)
                return
        raise RunError(
            "workspace.object",
            f"the stored files lack {digest}",
            "put the run's store folder back from a copy, or name that of the run it was forked from",
        )

    def _pieces(self, place: _Place) -> Iterator[bytes]:
        at, left = place
        while left > 0 and (data := os.pread(self._fd, min(CHUNK, left), at)):
            yield data
            at, left = at + len(data), left - len(data)

    def _index_from(self, size: int) -> None:
        """Take in the records from where we had got to."""
        if self._end == 0:
            magic = os.pread(self._fd, len(MAGIC), 0)
            if magic != MAGIC:
                if magic.strip(b"\0"):
                    raise _no_pack(self._path)
                return  # nothing was ever synced here
            self._end = len(MAGIC)
            self._base = indexes.read(self.folder, self._fd, size)
            if self._base.covered is not None:
                self._end, self._last, _, self._begun = self._base.covered
                self._synced = max(self._synced, self._end)
        heads = []
        while (head := self._head_at(self._end)) is not None and self._end + _SIZE + head[2] <= size:
            heads.append((*head, self._end + _SIZE))
            self._last = self._end
            self._end += _SIZE + head[2]
            self._synced = max(self._synced, head[3])
        for kind, digest, length, _, at in heads:
            self._take(kind, digest, (at, length))

    def _has_own(self, digest: str) -> bool:
        return digest in self._waiting or self._place(digest) is not None

    def _place(self, digest: str) -> _Place | None:
        return self._index.get(digest) or self._base.get(digest)

    def _take(self, kind: bytes, digest: str, place: _Place) -> None:
        """Take one record into the index; whoever is going to write verifies what may not be on disk."""
        if self._writable and place[0] >= self._synced and kind in b"ob":
            hashing = self.hashing()
            for piece in self._pieces(place):
                hashing.update(piece)
            if name(hashing) != digest:
                self.lost = True
                self._disk.write_at(self._fd, self._head(b"x", digest, place[1]), place[0] - _SIZE)
                return
        match kind:
            case b"o":
                self._index[digest] = place
            case b"b":
                self._begun = digest, place
            case b"s":
                self._begun = None

    def _head_at(self, at: int) -> tuple[bytes, str, int, int] | None:
        data = os.pread(self._fd, _SIZE, at)
        if len(data) < _SIZE or _CRC.unpack_from(data, _HEAD.size)[0] != zlib.crc32(data[: _HEAD.size]):
            return None
        kind, digest, length, synced = _HEAD.unpack_from(data)
        return kind, digest.rstrip(b"\0").decode("ascii"), length, synced

    # ---- private: writing --------------------------------------------------------------------------

    def _append(self, records: list[tuple[bytes, str, bytes]]) -> None:
        """Write records at the end, in one go: when it fails, nothing of them counts."""
        parts, end = [], self._end
        if end == 0:
            parts, end = [MAGIC], len(MAGIC)
        placed = []
        for kind, digest, data in records:
            parts += [self._head(kind, digest, len(data)), data]
            placed.append((kind, digest, (end + _SIZE, len(data))))
            end += _SIZE + len(data)
        self._put_at(b"".join(parts), self._end)
        self._end = end
        if placed:
            self._last = placed[-1][2][0] - _SIZE
        for kind, digest, place in placed:
            match kind:
                case b"o":
                    self._index[digest] = place
                    self._waiting.pop(digest, None)
                case b"b":
                    self._begun = digest, place
                case _:
                    self._begun = None
        if not self._waiting:
            self._waiting_size = 0

    def _must_hold(self, more: int) -> None:
        most = self._most_bytes
        held = self._end + self._waiting_size + (self.shared.size if self.shared is not None else 0)
        if most is not None and held + more > most:
            raise RunError(
                "workspace.limit",
                f"the states of the files that are kept would be more than {most >> 20} MiB",
                "let steps write less, or raise `store_mib` in [workspace]; the step was not committed",
            )

    def _put_at(self, data: bytes, at: int) -> None:
        """Write at the end, over whatever a write that failed has left there."""
        device, inode, size = self._seen
        if at == self._end and size > at:
            self._disk.truncate(self._fd, at)
        self._seen = (device, inode, at + len(data))
        self._disk.write_at(self._fd, data, at)

    def _head(self, kind: bytes, digest: str, length: int) -> bytes:
        head = _HEAD.pack(kind, digest.encode(), length, self._synced)
        return head + _CRC.pack(zlib.crc32(head))

    def _create(self) -> os.stat_result:
        with self._disk.folder(str(self.folder)) as folder:
            os.close(self._disk.create("pack", folder))
        return self._path.stat()

    def _sync(self) -> None:
        """Make all that was written durable, with the first of it the name of the file: nothing is durable
        before."""
        self._disk.fdatasync(self._fd)
        if not self._synced:
            with self._disk.folder(str(self.folder)) as folder:
                self._disk.fsync(folder)
        self._synced = self._end

    def _forget_unsynced(self) -> None:
        """A sync that failed may have thrown away what it could not write: take it as not written."""
        self._index = {digest: place for digest, place in self._index.items() if place[0] < self._synced}
        self._end, self._last = self._synced, 0
        self._begun = None

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._writable, self._seen = -1, False, (0, 0, 0)
        self._base, self._index, self._begun = Index(), {}, None
        self._end = self._synced = self._last = 0


def name(hashing: hashlib._Hash) -> str:
    """The name of a content: its SHA-256 in base64url."""
    return urlsafe_b64encode(hashing.digest())[:43].decode()


def _read(fd: int, size: int) -> bytes:
    """So many bytes of a file, or what is left of it."""
    found = b""
    while len(found) < size and (data := os.read(fd, size - len(found))):
        found += data
    return found


def _collision(digest: str) -> RunError:
    return RunError(
        COLLISION,
        f"two different contents have the name {digest}",
        "nothing was stored over the other; keep both files and the store folder, and report it",
    )


def _damaged(digest: str) -> RunError:
    return RunError(
        "workspace.object",
        f"the stored file {digest} does not match its name",
        "restore the run's store folder from a copy; the file in the workspace was left as it is",
    )


def _no_pack(path: Path) -> RunError:
    return RunError(
        "workspace.object",
        f"{path} does not hold the stored files of a run, or is damaged",
        "restore the run's store folder from a copy; nothing was changed",
    )
