"""Where the objects of a pack are, in a file of their own: a cache, so that opening a pack costs the same
whatever its length.

    <store>/index    `spak-index 1\n`, a head, then entries of 59 bytes in order of their digest

The head names the part of the pack that the entries are of: where it ends (`covered`, all of it on disk), the
last head before that as it is written there, the step that was under way, and the CRC-32 of all this. An
index that is not of the pack beside it, or damaged, is not used, and the pack is read from its beginning. It
is written aside and renamed, never synced, and searched where it lies; it is loaded for whoever asks often.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from spak.files.disk import Disk

FILE = "index"
MAGIC = b"spak-index 1\n"
LEAST, GROWN = 2_000, 10
"""A new one is written for so many new objects, and for as many as a tenth of those in the old one."""
_MANY = 8
"""Whoever looks for more than this part of the entries is better off with all of them in memory."""
_HEAD = struct.Struct(">QQ64s43sQQQ")
_CRC = struct.Struct(">I")
_ENTRY = struct.Struct(">43sQQ")
_START = len(MAGIC) + _HEAD.size + _CRC.size

Place = tuple[int, int]


class Covered(NamedTuple):
    """The part of a pack that an index is of: its end, where its last head is and what it says, and the step
    that is under way there."""

    end: int
    last: int
    head: bytes
    begun: tuple[str, Place] | None


class Index:
    """The entries of one index file, or none."""

    def __init__(self, covered: Covered | None = None, data: mmap.mmap | None = None) -> None:
        self.covered = covered
        self._data = data
        self._count = 0 if data is None else (len(data) - _START) // _ENTRY.size
        self._asked = 0
        self._all: dict[bytes, Place] = {}

    def __len__(self) -> int:
        return self._count

    def get(self, digest: str) -> Place | None:
        """Where the bytes of an object begin, and how many they are."""
        if self._data is None:
            return None
        wanted, low, high = digest.encode("ascii", "replace"), 0, self._count
        self._asked += 1
        if self._asked > self._count // _MANY:
            return self._loaded().get(wanted)
        while low < high:
            middle = (low + high) // 2
            at = _START + middle * _ENTRY.size
            if self._data[at : at + 43] < wanted:
                low = middle + 1
            else:
                high = middle
        if low == self._count:
            return None
        found, start, length = _ENTRY.unpack_from(self._data, _START + low * _ENTRY.size)
        return (start, length) if found == wanted else None

    def _loaded(self) -> Mapping[bytes, Place]:
        """All of it, for whoever asks often."""
        if not self._all and self._data is not None:
            entries = _ENTRY.iter_unpack(memoryview(self._data)[_START:])
            self._all = {digest: (start, length) for digest, start, length in entries}
        return self._all

    def with_more(self, places: Mapping[str, Place]) -> bytes:
        """The entries of a new index: those of this one and these."""
        size, data = _ENTRY.size, b"" if self._data is None else self._data[_START:]
        mine = [data[at : at + size] for at in range(0, len(data), size)]
        mine += [_ENTRY.pack(digest.encode(), *place) for digest, place in places.items()]
        return b"".join(sorted(mine))


def read(folder: Path, pack: int, size: int) -> Index:
    """The index of a pack that is open; an empty one where there is none that can be used."""
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Index()
    try:
        data = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return Index()
    finally:
        os.close(fd)
    if len(data) < _START or data[: len(MAGIC)] != MAGIC or (len(data) - _START) % _ENTRY.size:
        return Index()
    end, last, head, digest, start, length, flag = _HEAD.unpack_from(data, len(MAGIC))
    (crc,) = _CRC.unpack_from(data, _START - _CRC.size)
    begun = (digest.rstrip(b"\0").decode("ascii", "replace"), (start, length)) if flag else None
    same = end <= size and last < end and os.pread(pack, len(head), last) == head
    if not same or _crc(data[: _START - _CRC.size], memoryview(data)[_START:]) != crc:
        return Index()
    return Index(Covered(end, last, head, begun), data)


def write(folder: Path, disk: Disk, covered: Covered, entries: bytes) -> None:
    """Put it in the place of the one before. Raises: OSError."""
    digest, place = covered.begun or ("", (0, 0))
    flag = int(covered.begun is not None)
    head = MAGIC + _HEAD.pack(covered.end, covered.last, covered.head, digest.encode(), *place, flag)
    crc = _CRC.pack(_crc(head, entries))
    aside = folder / f".{FILE}.new"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        disk.write(fd, head + crc + entries)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    aside.replace(folder / FILE)


def _crc(head: bytes, entries: bytes | memoryview) -> int:
    return zlib.crc32(entries, zlib.crc32(head))
