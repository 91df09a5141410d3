"""Unprivileged user ids for a launcher that is root, and the ownership of workspaces.

The kernel counts processes per user id, so two runs under one id would eat each other's limit. A `Slot` is
one id of a small range, held by a file lock that dies with its holder. A workspace belongs to the id of the
slot that runs in it: root goes on reading and rolling back, the tool writes as an owner would.

A workspace prefers the slot that already owns it, because a change of owner changes every file's ctime and
a stat cache would have to hash them all again. Two sandboxes in one workspace at one time share a slot.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

FIRST = 64900
COUNT = 64
UIDS = range(FIRST, FIRST + COUNT)
"""Inside 60000-64999, which Debian's policy leaves to local use, and below every subordinate range."""

_FOLDERS = (Path("/run/spak"), Path("/tmp/spak-0"))
_SYSTEM = (
    "bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var var/lib var/tmp"
)
_NEVER = frozenset({"/", *(f"/{name}" for name in _SYSTEM.split())})
"""Folders whose ownership is not ours to change, whatever a caller says."""

_guard = threading.Lock()
_held: dict[int, tuple[str, int]] = {}
"""Slots of this process: user id to (workspace, how many sandboxes run in it)."""
_locks: dict[int, int] = {}


class SlotError(Exception):
    """No slot, or the workspace cannot be handed to one; the text says why."""


class Slot:
    """One user id, until `release`."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._open = True

    def release(self) -> None:
        """Give the user id back; idempotent."""
        with _guard:
            if not self._open:
                return
            self._open = False
            workspace, users = _held[self.uid]
            if users > 1:
                _held[self.uid] = (workspace, users - 1)
                return
            del _held[self.uid]
            os.close(_locks.pop(self.uid))


def take(workspace: Path, avoid: Collection[int] = ()) -> Slot:
    """A slot for a sandbox in that workspace, none of those to avoid. Raises: SlotError."""
    with _guard:
        owner = workspace.stat().st_uid
        held = _held.get(owner)
        if held is not None and held[0] == str(workspace):
            _held[owner] = (held[0], held[1] + 1)
            return Slot(owner)
        folder = private_folder()
        for uid in sorted(UIDS, key=lambda uid: uid != owner):
            if uid not in _held and uid not in avoid and (lock := _lock(folder / str(uid))) is not None:
                _locks[uid], _held[uid] = lock, (str(workspace), 1)
                return Slot(uid)
    raise SlotError(f"all {COUNT} sandbox users are taken; wait for a run to end")


def own(root: Path, uid: int) -> int:
    """Give the tree to the user and to the group of the same number; how many entries changed hands.

    Links are not followed, other file systems not entered. A file with a hard link outside of the tree stays
    as it is: its other name may be a package cache or someone's home.
    Raises: SlotError for a folder of the system or a home, or when the file system refuses.
    """
    homes = {os.path.normpath(user.pw_dir) for user in pwd.getpwall()}
    if str(root) in _NEVER or str(root) in homes:
        raise SlotError(f"{root} is a folder of the system or a home; give a folder of its own as workspace")
    try:
        wrong, links = [], Counter[tuple[int, int]]()
        for path, info in _walk(root):
            if not stat.S_ISDIR(info.st_mode) and info.st_nlink > 1:
                links[info.st_dev, info.st_ino] += 1
            if (info.st_uid, info.st_gid) != (uid, uid):
                wrong.append((path, info))
        changed = 0
        for path, info in wrong:
            if stat.S_ISDIR(info.st_mode) or links[info.st_dev, info.st_ino] in (0, info.st_nlink):
                os.chown(path, uid, uid, follow_symlinks=False)
                changed += 1
    except OSError as error:
        raise SlotError(f"the workspace cannot be given to the sandbox user: {error}") from error
    return changed


def give_back(root: Path, uid: int, gid: int) -> int:
    """Give what belongs to sandbox users to another owner; how many entries changed hands.

    Each entry is reached from its open folder, links are not followed, other file systems not entered. Only
    root has slots, so for everybody else there is nothing to do. Raises: OSError.
    """
    if os.geteuid() != 0:
        return 0
    device, changed = root.stat().st_dev, 0
    for _, folders, files, fd in os.fwalk(root, follow_symlinks=False):
        if os.fstat(fd).st_dev != device:
            folders.clear()
            continue
        for name in (*files, *folders):
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if info.st_uid in UIDS and info.st_dev == device:
                os.chown(name, uid, gid, dir_fd=fd, follow_symlinks=False)
                changed += 1
    if root.stat().st_uid in UIDS:
        os.chown(root, uid, gid)
        changed += 1
    return changed


def private_folder() -> Path:
    """The first folder of the list that is root's alone, made if it is not there. Raises: SlotError."""
    for folder in _FOLDERS:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            info = folder.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o077:
            return folder
    raise SlotError(f"none of {', '.join(map(str, _FOLDERS))} can be used; make one with mode 0700")


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry with its own status, the root first; only files, folders and links."""
    top = root.stat()
    yield str(root), top
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                if info.st_dev != top.st_dev:
                    continue
                if stat.S_ISDIR(info.st_mode):
                    folders.append(entry.path)
                if stat.S_IFMT(info.st_mode) in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                    yield entry.path, info


def _lock(path: Path) -> int | None:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
