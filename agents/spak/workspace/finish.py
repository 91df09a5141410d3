"""What a step that is committed leaves on the disk: no socket, no rights of an owner, and all of it durable.

Takes an open folder and the trees of it before and after the step; each function looks at what changed alone.
"""

from __future__ import annotations

import os

from spak.files.disk import Disk
from spak.workspace.tree import TAKES_RIGHTS, Node, changed, specials

_NOTHING = Node("d", 0)


def drop_specials(disk: Disk, fd: int, old: Node, new: Node) -> None:
    """Remove sockets, pipes and devices that were not there before."""
    for filename in changed(old, new):
        before, node = old.children.get(filename), new.children.get(filename)
        if node is None:
            continue
        if node.kind == "s" and (before is None or before.kind != "s"):
            disk.remove(filename, fd)
            del new.children[filename]
        elif node.kind == "d" and specials(node.children):
            with disk.visit(filename, fd, node.mode) as inner:
                drop_specials(disk, inner, before or _NOTHING, node)


def strip(disk: Disk, fd: int, old: Node, new: Node) -> bool:
    """Take setuid and setgid from files that are not as they were; whether there were any."""
    found = False
    for filename in changed(old, new):
        before, node = old.children.get(filename), new.children.get(filename)
        if node is None:
            continue
        if node.kind == "d":
            with disk.visit(filename, fd, node.mode) as inner:
                found |= strip(disk, inner, before or _NOTHING, node)
        elif node.kind == "f" and node.mode & TAKES_RIGHTS:
            file = disk.open_file(filename, fd)
            try:
                disk.chmod(file, node.mode & ~TAKES_RIGHTS)
            finally:
                os.close(file)
            found = True
    return found


def sync_changed(disk: Disk, fd: int, old: Node, new: Node) -> None:
    """Sync what changed below an open folder, and each folder in which names changed."""
    names = old.mode != new.mode
    for filename in changed(old, new):
        before, node = old.children.get(filename), new.children.get(filename)
        if node is None:
            names = True
            continue
        same = before is not None and before.kind == node.kind
        if node.kind == "d":
            names |= not same
            with disk.visit(filename, fd, node.mode) as inner:
                sync_changed(disk, inner, before if before is not None and same else _NOTHING, node)
        elif node.kind == "f":
            names |= _sync_file(disk, filename, fd, before, node)
        else:
            names |= node.kind == "l"
    if names:
        disk.fsync(fd)


def _sync_file(disk: Disk, filename: str, at: int, before: Node | None, node: Node) -> bool:
    """Sync a file; True when its name may stand for another file than before."""
    fd = disk.open_file(filename, at)
    try:
        if before is None or before.inode != node.inode:
            disk.fsync(fd)
            return True
        (disk.fdatasync if before.mode == node.mode else disk.fsync)(fd)
        return False
    finally:
        os.close(fd)
