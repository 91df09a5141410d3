"""Make a folder hold a given tree, touching only what is not so already.

Takes an open folder and the tree wanted; gives the paths that it changed. Every file is written aside and
renamed, so that no other name of an inode changes with it; what is not wanted goes, whatever it is; links
are never followed. Each change stands alone: stopped anywhere and begun again, it ends in the same tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from spak.errors import RunError
from spak.files.disk import SYNC_EACH, Disk
from spak.workspace.store import COLLISION, Store
from spak.workspace.tree import Node, Scanner, to_bytes, to_text


class Applier:
    """One restoration. `exact` also restores permission bits, and removes sockets, pipes and devices."""

    def __init__(self, disk: Disk, store: Store, scanner: Scanner, *, exact: bool) -> None:
        self._disk = disk
        self._store = store
        self._scanner = scanner
        self._exact = exact
        self._paths: list[str] = []
        self._synced = 0

    def apply(
        self, fd: int, target: Node, skip: frozenset[str] = frozenset(), known: Node | None = None
    ) -> list[str]:
        """Bring the open folder to `target`, durably; gives the changed paths in the order of the walk.
        `known` is the tree that it has, where that is certain: what is alike in both is not looked at."""
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        self._folder(fd, target, "", self._mode(target, mode), skip, known)
        if self._synced > SYNC_EACH:
            self._disk.sync_all(fd)
        return self._paths

    def _folder(
        self,
        fd: int,
        target: Node,
        path: str,
        mode: int,
        skip: frozenset[str] = frozenset(),
        known: Node | None = None,
    ) -> None:
        """Bring an open folder to `target` and leave it with the permission bits `mode`."""
        with _Folder(fd, self._disk, mode) as folder:
            right: set[str] = set()
            for filename in _names(fd):
                here = f"{path}{filename}"
                wanted = target.children.get(filename)
                has = known.children.get(filename) if known is not None else None
                alike = _alike(has, wanted) and not self._exact
                if filename in skip or alike or self._settle(folder, filename, wanted, here, has):
                    right.add(filename)
            for filename in sorted(target.children.keys() - right, key=to_bytes):
                self._make(folder, filename, target.children[filename], f"{path}{filename}")
            if folder.changed:
                self._sync(fd)

    def _settle(
        self, folder: _Folder, filename: str, wanted: Node | None, path: str, known: Node | None
    ) -> bool:
        """Bring what stands there to `wanted`; False when it is gone and must be made."""
        found = os.stat(filename, dir_fd=folder.fd, follow_symlinks=False)
        kind = _kind(found)
        if kind == "s" and (not self._exact if wanted is None else wanted.kind == "s"):
            return True
        if wanted is None or wanted.kind != kind:
            folder.lift()
            self._disk.remove(filename, folder.fd)
            self._note(path)
            return False
        if kind == "d":
            mode = self._mode(wanted, stat.S_IMODE(found.st_mode))
            if mode != stat.S_IMODE(found.st_mode):
                self._note(path)
            with self._disk.folder(filename, folder.fd, force=True) as inner:
                self._folder(inner, wanted, f"{path}/", mode, known=known)
        elif kind == "f":
            self._settle_file(folder, filename, wanted, path, found)
        elif os.readlink(filename, dir_fd=folder.fd) != to_text(self._store.read(wanted.digest)):
            self._make(folder, filename, wanted, path)
        return True

    def _settle_file(
        self, folder: _Folder, filename: str, wanted: Node, path: str, found: os.stat_result
    ) -> None:
        mode = self._mode(wanted, stat.S_IMODE(found.st_mode))
        same = found.st_size == wanted.size and self._holds(folder.fd, filename, found, wanted)
        if same and mode == stat.S_IMODE(found.st_mode):
            return
        if same and found.st_nlink == 1:
            fd = self._disk.open_file(filename, folder.fd)
            try:
                self._disk.chmod(fd, mode)
                self._sync(fd)
            finally:
                os.close(fd)
            self._note(path)
            return
        self._make(folder, filename, wanted, path, mode)

    def _holds(self, at: int, filename: str, found: os.stat_result, wanted: Node) -> bool:
        """Whether a file has the content; one that has other bytes of the same name has not."""
        try:
            return self._scanner.digest(at, filename, found) == wanted.digest
        except RunError as error:
            if error.code != COLLISION:
                raise
            return False

    def _make(self, folder: _Folder, filename: str, wanted: Node, path: str, mode: int | None = None) -> None:
        """Make a file, link or folder in place of nothing or of one of the same kind."""
        if wanted.kind == "s":
            return  # a socket, pipe or device that went away cannot be made again
        folder.lift()
        self._note(path)
        match wanted.kind:
            case "d":
                self._disk.mkdir(filename, folder.fd)
                with self._disk.folder(filename, folder.fd) as inner:
                    self._disk.own(inner, 0o700)
                    self._folder(inner, wanted, f"{path}/", wanted.mode)
            case "l":
                target = to_text(self._store.read(wanted.digest))
                with self._aside(folder.fd) as aside:
                    self._disk.symlink(target, aside, folder.fd)
                    self._disk.rename(aside, filename, folder.fd)
            case _:
                self._make_file(folder.fd, filename, wanted, wanted.mode if mode is None else mode)

    def _make_file(self, at: int, filename: str, wanted: Node, mode: int) -> None:
        with self._aside(at) as aside:
            fd = self._disk.create(aside, at)
            try:
                self._store.copy_to(wanted.digest, fd)
                self._disk.own(fd, mode)
                self._sync(fd)
            finally:
                os.close(fd)
            self._disk.rename(aside, filename, at)

    @contextmanager
    def _aside(self, at: int) -> Iterator[str]:
        """A name that is free in this folder. If we are stopped here it is removed by the next attempt."""
        number = 0
        while _exists(f".spak-new-{number}", at):
            number += 1
        name = f".spak-new-{number}"
        try:
            yield name
        except Exception:
            if _exists(name, at):
                self._disk.unlink(name, at)
            raise

    def _sync(self, fd: int) -> None:
        """Each of the first few by itself; many are synced together at the end."""
        self._synced += 1
        if self._synced <= SYNC_EACH:
            self._disk.fsync(fd)

    def _mode(self, wanted: Node, found: int) -> int:
        if self._exact:
            return wanted.mode
        if wanted.kind == "f" and (wanted.mode ^ found) & 0o100:
            return wanted.mode
        return found

    def _note(self, path: str) -> None:
        if not self._paths or self._paths[-1] != path:
            self._paths.append(path)


class _Folder:
    """A folder being worked on; it has the permission bits `mode` when we leave it."""

    def __init__(self, fd: int, disk: Disk, mode: int) -> None:
        self.fd = fd
        self.changed = False
        self._disk = disk
        self._mode = mode

    def lift(self) -> None:
        """About to change something in here: see to it that we may."""
        self.changed = True
        found = stat.S_IMODE(os.fstat(self.fd).st_mode)
        if os.geteuid() != 0 and found & 0o300 != 0o300:
            self._disk.chmod(self.fd, found | 0o700)

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and stat.S_IMODE(os.fstat(self.fd).st_mode) != self._mode:
            self._disk.chmod(self.fd, self._mode)
            self._disk.fsync(self.fd)


def _alike(known: Node | None, wanted: Node | None) -> bool:
    """Whether both are the same, by what a digest says: contents, and whether a file may be run."""
    if known is None or wanted is None or known.kind != wanted.kind or known.digest != wanted.digest:
        return False
    return known.kind in ("d", "l") or (known.kind == "f" and not (known.mode ^ wanted.mode) & 0o100)


def _names(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return sorted((entry.name for entry in entries), key=to_bytes)


def _kind(found: os.stat_result) -> str:
    for test, kind in ((stat.S_ISREG, "f"), (stat.S_ISDIR, "d"), (stat.S_ISLNK, "l")):
        if test(found.st_mode):
            return kind
    return "s"


def _exists(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
