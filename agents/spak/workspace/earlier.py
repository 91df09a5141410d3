"""What earlier copies of a folder have read, so that the next one reads and keeps only what is new.

    <runs>/.copies/<folder>/list    which file had which content, by inode, size and times
    <runs>/.copies/<folder>/pack    the contents: one file with `store/shared/pack` of the runs that share it
    <runs>/.copies/<folder>/index   where they are in it

Takes the folder of all runs, the folder that is copied and the run's store. `known` says what a file holds
that looks as it did, unless it had changed so shortly before it was read that a later change could bear the
same time; `content` gives the bytes, from the pack. A pack is finished before it is shared and never written
again: what is new goes into the run's own, and where more than a part is new into a new pack to share.

It is a cache, and a copy without it is the same. The list has a checksum, each content is hashed when it is
taken, and what is not a plain file of ours, not whole or too large is not used. Two runs may write at once:
a list beside another's pack names contents that are not found there.
Large files are not in it, nor is anything for a folder of few files.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spak import __version__, canon
from spak.errors import UserError
from spak.files.disk import Disk
from spak.secrets.lists import LISTS
from spak.workspace.index import FILE as INDEX
from spak.workspace.store import SHARED, Store
from spak.workspace.tree import settled, to_bytes, to_text

FOLDER = ".copies"
KEPT = 8
"""So many folders are remembered, those that were copied last."""
LEAST, PART = 1_000, 10
"""Files from which on it is worth while; where more than this part of them is new, a new pack is begun."""
_LIST, _PACK = "list", "pack"
_FORMAT = 1
"""Raise the number when an older reader would misread the list."""
_HEAD = struct.Struct(">II")
_ENTRY = struct.Struct(">QQQqq43s?")
_MOST_BYTES = 1 << 27
"""Of a list, and of an index."""

State = tuple[int, int, int, int, int]


class Known(NamedTuple):
    """What a file holds that looks like this."""

    state: State
    digest: str
    secret: bool


def state(found: os.stat_result) -> State:
    """Which file it is and when it was changed."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Earlier:
    """The earlier copies of one folder, for one new copy; none where there is no `runs`."""

    def __init__(self, runs: Path | None, source: Path, store: Store, disk: Disk) -> None:
        self._store, self._into, self._disk = store, store, disk
        self._folder = runs and runs / FOLDER / canon.digest(os.fsencode(source.resolve()))[:22]
        self._known = _read(self._folder) if self._folder else {}
        self._began = time.time_ns()
        self._goes_on = False
        """Whether the pack of earlier copies is shared, and not a new one made."""
        self._used: dict[str, Known] = {}
        self._new: dict[str, Known] = {}
        self._missed: set[str] = set()

    def known(self, path: str, found: os.stat_result) -> Known | None:
        """What the file there holds; None where that is to be read."""
        known = self._known.get(path)
        return known if known is not None and known.state == state(found) else None

    def begin(self, files: int, known: int, most_bytes: int) -> None:
        """Decide where contents are put, of so many files that are not large. Raises: OSError."""
        if self._folder is None or files < LEAST:
            self._folder = None
            return
        shared = self._store.folder / SHARED
        shared.mkdir(mode=0o700, exist_ok=True)
        self._goes_on = known * PART >= files * (PART - 1) and self._link(self._folder, shared)
        if not self._goes_on:
            self._into = self._store.shared = Store(shared, self._disk, most_bytes)
            self._into.look(write=True)

    def content(self, path: str, known: Known) -> bytes | None:
        """The bytes, which are what they are called; None where they are to be read again."""
        if not self._goes_on or self._store.shared is None:
            return None
        data = self._store.shared.small(known.digest)
        if data is None:
            self._missed.add(known.digest)
        else:
            self._used[path] = known
        return data

    def put(self, path: str, found: os.stat_result, digest: str, data: bytes, secret: bool) -> None:
        """Keep a content that was read."""
        self._into.put(digest, data, own=digest in self._missed)
        if self._folder is not None and settled(found, self._began):
            self._new[path] = Known(state(found), digest, secret)

    def keep(self) -> None:
        """Remember what was put for the next copy, if that can be. Raises: OSError where contents cannot be
        written, or those that are to be shared made durable."""
        is_new = self._into is not self._store
        if is_new:
            self._into.sync()
        self._store.write()
        if self._folder is None:
            return
        with suppress(OSError):
            if self._missed:
                shutil.rmtree(self._folder)
                return
            if is_new and not self._share(self._folder, self._into):
                return
            new = {path: one for path, one in self._new.items() if is_new or self._store.shares(one.digest)}
            if new or is_new:
                aside = self._store.folder / SHARED / _LIST
                _write(aside, self._used | new)
                aside.replace(self._folder / _LIST)
            os.utime(self._folder)

    def _share(self, folder: Path, pack: Store) -> bool:
        """Put a pack in the place of the one before, and forget the folders that were copied long ago."""
        pack.keep_index()
        above = folder.parent
        above.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(above.lstat(), stat.S_IFDIR):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        for name in (_PACK, INDEX):
            path = pack.folder / name
            if path.exists():
                path.chmod(0o400)
                os.link(path, folder / name)
        found = sorted((path.stat().st_mtime_ns, path) for path in above.iterdir())
        for _, path in found[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)
        return True

    def _link(self, folder: Path, shared: Path) -> bool:
        """Let the store go on from the pack there; False where that is not possible."""
        for name in (INDEX, _PACK):
            try:
                os.link(folder / name, shared / name, follow_symlinks=False)
                found = (shared / name).lstat()
                if _is_ours(found, stat.S_IFREG) and (name == _PACK or found.st_size <= _MOST_BYTES):
                    continue
            except OSError:
                pass
            (shared / name).unlink(missing_ok=True)
        store = Store(shared, self._disk)
        try:
            store.look()
        except UserError:
            (shared / _PACK).unlink()
            return False
        self._store.shared = store
        return store.size > 0


def _read(folder: Path) -> dict[str, Known]:
    """What the list there says; nothing where it cannot be used."""
    try:
        if not all(_is_ours(path.lstat(), stat.S_IFDIR) for path in (folder.parent, folder)):
            return {}
        fd = os.open(folder / _LIST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            usable = _is_ours(found, stat.S_IFREG) and found.st_size <= _MOST_BYTES
            data = file.read() if usable else b""
    except OSError:
        return {}
    magic = _magic()
    begins = len(magic) + _HEAD.size
    if len(data) < begins or not data.startswith(magic):
        return {}
    crc, count = _HEAD.unpack_from(data, len(magic))
    names_at = begins + count * _ENTRY.size
    if zlib.crc32(data[begins:]) != crc or len(data) < names_at:
        return {}
    names = to_text(data[names_at:]).split("\0")
    entries = _ENTRY.iter_unpack(data[begins:names_at])
    return {
        path: Known(entry[:5], entry[5].decode("ascii", "replace"), entry[6])
        for path, entry in zip(names, entries, strict=False)
    }


def _write(path: Path, known: dict[str, Known]) -> None:
    """Raises: OSError."""
    entries = b"".join(_ENTRY.pack(*one.state, one.digest.encode(), one.secret) for one in known.values())
    data = entries + to_bytes("\0".join(known))
    path.write_bytes(_magic() + _HEAD.pack(zlib.crc32(data), len(known)) + data)
    path.chmod(0o600)


def _magic() -> bytes:
    """How a list begins: what it says of secrets holds for this version and its list of them alone."""
    return f"spak-copies {_FORMAT} {canon.digest(f'{__version__} {LISTS.text}'.encode())}\n".encode()


def _is_ours(found: os.stat_result, kind: int) -> bool:
    """Whether nobody else can have written it."""
    mode = found.st_mode
    return stat.S_IFMT(mode) == kind and found.st_uid == os.geteuid() and not mode & 0o022
