"""What a workspace holds, as a Merkle tree.

Takes an open folder; gives a tree of Nodes whose digests are content-addressed: a file by its bytes, a link
by its target, a folder by the list of what is in it. Name, kind, executable bit, size and content count; the
other mode bits are kept in the Node (rollback restores them) and stay out of the digest, as do times, owners
and hard links, so that the same files give the same root on every machine.

Format of a folder's list (raise TREE when an older reader would misread it): `spak-tree 1\\0`, then for each
entry in order of the bytes of its name `kind digest size name\\0`, kind being d, f, x (executable) or l.

A file whose inode, size, mtime and ctime are as they were is not read again, unless it changed so shortly
before it was read that a later change could bear the same time. What is as it was in the scan before is the
same Node: comparing trees stops there, and such a folder's list is neither made nor hashed again. Sockets,
pipes and devices have no content: they are in the tree with kind s and not in any list.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spak.cancel import Cancel, check
from spak.errors import RunError
from spak.files.disk import Disk
from spak.secrets import contents, which
from spak.workspace.store import CHUNK, Store, name
from spak.workspace.watch import Dirty, Watch

TREE = b"spak-tree 1\0"
MAX_DEPTH = 128

TAKES_RIGHTS = stat.S_ISUID | stat.S_ISGID
"""Bits by which whoever runs a file gets the rights of its owner or group."""

_RACY_NS, _COARSE_NS = 100_000_000, 2_000_000_000
"""Two changes in so short a time may bear the same time; the second where a disk counts whole seconds."""
_TRIES = 3
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Node:
    """One thing in a tree: kind is d, f, l or s; `mode` its permission bits; `children` by name."""

    kind: str
    mode: int
    digest: str = ""
    size: int = 0
    children: dict[str, Node] = field(default_factory=dict)
    inode: int = 0
    changed_ns: int = 0
    """Inode and ctime of a file that was scanned."""
    holds_secret: bool = False
    """Of a file that was scanned or unpacked: whether its contents say so."""
    secrets: tuple[str, tuple[str, ...]] | None = None
    """Of a folder: under which name `secret_files` found what, so that it looks at what changed only."""
    holds: tuple[Mapping[str, int], tuple[str, ...]] | None = None
    """Of a folder: what `holding` found, and of what."""
    links: int = 1
    """Of a file that was scanned: how many names it has."""
    sums: tuple[int, int, Mapping[tuple[str, int], int]] | None = None
    """Of a folder that was scanned: entries and bytes below it, and modes, its own included."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a workspace may hold before it is called a mistake."""

    entries: int = 300_000
    size_bytes: int = 8 << 30
    store_bytes: int = 16 << 30
    """Of all states of its files that are kept."""


@dataclass(slots=True)
class Tree:
    """The files of a workspace at one moment, and how often each mode is used."""

    root: Node
    modes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """How often each mode occurs, by kind of line (d, f, x)."""
    entries: int = 0
    size_bytes: int = 0

    @property
    def takes_rights(self) -> bool:
        """Whether a file in it has a bit of TAKES_RIGHTS."""
        return any(mode & TAKES_RIGHTS and kind != "d" for kind, mode in self.modes)


_Signature = tuple[int, ...]
_UNSEEN: tuple[None, None] = (None, None)


class Scanner:
    """Reads trees; remembers what it has read by inode, and the last tree."""

    def __init__(self, store: Store, disk: Disk, bounds: Bounds) -> None:
        self.store = store
        self.disk = disk
        self.bounds = bounds
        self._seen: dict[int, tuple[_Signature | None, Node]] = {}
        self.last: Node | None = None
        """The tree of the scan before."""
        self.cancel: Cancel | None = None
        """What breaks off a scan."""
        self._watch: Watch | None = None
        self._known = False
        """Whether the last tree is what there is, but for what the watch saw since."""

    def watch(self, folder: Path | None) -> None:
        """Hear of changes in the folder from now on; in none, no more."""
        if self._watch is not None:
            self._watch.close()
        self._watch, self._known = Watch(folder) if folder is not None else None, False

    @property
    def still(self) -> bool:
        """Whether the folder is known to be as the last tree says."""
        return self._watch is not None and self._known and self._watch.quiet()

    def scan(self, fd: int, skip: frozenset[str] = frozenset(), *, keep: bool, partly: bool = False) -> Tree:
        """The tree under an open folder, without the names in `skip` at its top; `keep` stores what is new.
        `partly`: where changes are heard of, only folders in which something changed are read.

        Raises: RunError `workspace.limit`, `workspace.unreadable`, `workspace.changing`; Cancelled.
        """
        watched = self._watch is not None and keep
        dirty = self._watch.take() if watched and self._watch is not None else None
        known, self._known = self._known, False
        if dirty is not None and partly and known:
            this = _Pass(self, keep, dirty)
            tree = this.tree(fd, skip)
            if not this.linked and all(at(tree.root, path) is not None for path in dirty.written):
                self._known = True
                return tree
        this = _Pass(self, keep)
        tree = this.tree(fd, skip)
        self._known = watched and dirty is not None
        if len(self._seen) > len(this.inodes):
            for inode in self._seen.keys() - this.inodes:
                del self._seen[inode]
        return tree

    def know(self, written: Iterable[tuple[os.stat_result, str, bool]]) -> None:
        """Take files for read that were written under the workspace lock, which is held still: nobody else
        can have changed them since. Their contents are in the store; each says whether it holds a secret."""
        now = time.time_ns()
        for found, digest, holds_secret in written:
            self._remember(found, digest, now).holds_secret = holds_secret

    def digest(self, at: int, filename: str, found: os.stat_result) -> str:
        """The digest of one file, from memory where it cannot have changed; stores nothing."""
        return self.file(at, filename, found, keep=False).digest

    def file(self, at: int, filename: str, found: os.stat_result, *, keep: bool) -> Node:
        """The node of a file; one that looks as before is not read again."""
        signature, node = self._seen.get(found.st_ino, _UNSEEN)
        if node is None or signature != _signature(found) or (keep and not self.store.has(node.digest)):
            return self._read(at, filename, keep)
        return node

    def _read(self, at: int, filename: str, keep: bool) -> Node:
        for _ in range(_TRIES):
            check(self.cancel)
            fd = self.disk.open_file(filename, at)
            try:
                before = os.fstat(fd)
                started = time.time_ns()
                digest = self._digest(fd, before.st_size, keep)
                holds = which.may_hold(filename) and holds_secret(fd, filename)
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if digest and _signature(before) == _signature(after):
                node = self._remember(before, digest, started)
                node.holds_secret = holds
                return node
        raise RunError(
            "workspace.changing",
            f"a file changes while it is read: {filename!r}",
            "end whatever else writes into the workspace, then continue with `spak resume`",
        )

    def _remember(self, found: os.stat_result, digest: str, started: int) -> Node:
        mode = stat.S_IMODE(found.st_mode)
        _, node = self._seen.get(found.st_ino, _UNSEEN)
        if node is None or node.digest != digest or node.changed_ns != found.st_ctime_ns:
            node = Node("f", mode, digest, found.st_size, {}, found.st_ino, found.st_ctime_ns)
        node.links = found.st_nlink
        self._seen[found.st_ino] = (_signature(found) if settled(found, started) else None, node)
        return node

    def _digest(self, fd: int, size: int, keep: bool) -> str:
        """The digest of an open file; empty when it changed between reading and storing."""
        if size < CHUNK:
            data = os.read(fd, size + 1)
            digest = self.store.digest(data)
            self.store.meet(digest, data, keep)
            return digest
        hashing = self.store.hashing()
        while chunk := os.read(fd, CHUNK):
            check(self.cancel)
            hashing.update(chunk)
        digest = name(hashing)
        if keep:
            return digest if self.store.put_file(digest, fd, size, self.cancel) else ""
        self.store.compare_file(digest, fd)
        return digest


def settled(found: os.stat_result, read_ns: int) -> bool:
    """Whether a file that looked like this when it was read, then, looks otherwise after any later change."""
    margin = _RACY_NS if found.st_ctime_ns % 1_000_000_000 else _COARSE_NS
    return max(found.st_ctime_ns, found.st_mtime_ns) < read_ns - margin


def holds_secret(fd: int, filename: str) -> bool:
    """Whether an open file does, by its contents."""
    return bool(which.finds(filename, os.pread(fd, contents.MAX_BYTES, 0)))


class _Pass:
    """One scan; with `dirty`, of the folders in which something changed."""

    def __init__(self, scanner: Scanner, keep: bool, dirty: Dirty | None = None) -> None:
        self.inodes: set[int] = set()
        self.modes: dict[tuple[str, int], int] = {}
        self._scanner = scanner
        self._keep = keep
        self._dirty = dirty
        self.entries = 0
        self.size_bytes = 0
        self.linked = False
        """Whether a file that changed has names elsewhere, or had: the change is theirs too."""

    def tree(self, fd: int, skip: frozenset[str]) -> Tree:
        """The tree under an open folder."""
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        self._scanner.last = root = self.folder(fd, mode, skip, 0, self._scanner.last, "")
        return Tree(root, self.modes, self.entries, self.size_bytes)

    def folder(
        self, fd: int, mode: int, skip: frozenset[str], depth: int, before: Node | None, path: str
    ) -> Node:
        """The node of an open folder: the one of the scan before where nothing in it changed."""
        if depth > MAX_DEPTH:
            raise _too_much(f"folders are more than {MAX_DEPTH} deep")
        outer, count, size = self.modes, self.entries, self.size_bytes
        self.modes = {}
        self._count_mode("d", mode)
        children: dict[str, Node] = {}
        old = before.children if before is not None else {}
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.name not in skip:
                    here = f"{path}{entry.name}"
                    children[entry.name] = self._entry(fd, entry, depth, old.get(entry.name), here)
        gone = (node for filename, node in old.items() if children.get(filename) is not node)
        self.linked = self.linked or any(node.links > 1 for node in gone)
        sums = self.entries - count, self.size_bytes - size, self.modes
        self._add_modes(outer)
        if (
            before is not None
            and before.mode == mode
            and old == children
            and (not self._keep or self._scanner.store.has(before.digest))
        ):
            before.sums = sums
            return before
        node = Node("d", mode, children=children, sums=sums)
        listed = encode(node)
        node.digest = self._scanner.store.digest(listed)
        self._scanner.store.meet(node.digest, listed, self._keep)
        return node

    def _add_modes(self, more: Mapping[tuple[str, int], int]) -> None:
        self.modes = dict(self.modes)
        for kind, count in more.items():
            self.modes[kind] = self.modes.get(kind, 0) + count

    def _entry(self, fd: int, entry: os.DirEntry[str], depth: int, before: Node | None, path: str) -> Node:
        found = entry.stat(follow_symlinks=False)
        mode = found.st_mode
        self._count(1, 0)
        if stat.S_ISREG(mode):
            self._count(0, found.st_size)
            node = self._scanner.file(fd, entry.name, found, keep=self._keep)
            self.inodes.add(found.st_ino)
            self._count_mode("x" if node.mode & 0o100 else "f", node.mode)
            self.linked = self.linked or (node is not before and found.st_nlink > 1)
            return node
        if stat.S_ISDIR(mode):
            if before is not None and before.kind != "d":
                before = None
            if before is not None and self._as_it_was(before, stat.S_IMODE(mode), path):
                return before
            dirty, came = self._dirty, self._dirty is not None and path in self._dirty.whole
            self._dirty = None if came else dirty
            node = self._inner(fd, entry.name, stat.S_IMODE(mode), depth + 1, before, f"{path}/")
            self._dirty = dirty
            return node
        if stat.S_ISLNK(mode):
            return self._link(fd, entry.name, before)
        self._count_mode("s", 0)
        return Node("s", stat.S_IMODE(mode))

    def _as_it_was(self, before: Node, mode: int, path: str) -> bool:
        """Whether nothing changed in a folder; then it is counted without a look."""
        if self._dirty is None or before.sums is None or before.mode != mode or path in self._dirty.above:
            return False
        if self._keep and not self._scanner.store.has(before.digest):
            return False
        count, size, modes = before.sums
        self._count(count, size)
        self._add_modes(modes)
        return True

    def _count(self, entries: int, size_bytes: int) -> None:
        self.entries += entries
        self.size_bytes += size_bytes
        if self.entries > self._scanner.bounds.entries:
            raise _too_much(f"it holds more than {self._scanner.bounds.entries} files and folders")
        if self.size_bytes > self._scanner.bounds.size_bytes:
            raise _too_much(f"its files are more than {self._scanner.bounds.size_bytes >> 20} MiB")

    def _inner(self, at: int, filename: str, mode: int, depth: int, before: Node | None, path: str) -> Node:
        if mode & 0o500 != 0o500:
            with self._scanner.disk.visit(filename, at, mode) as fd:
                return self.folder(fd, mode, _NO_NAMES, depth, before, path)
        fd = self._scanner.disk.open_folder(filename, at)
        try:
            return self.folder(fd, mode, _NO_NAMES, depth, before, path)
        finally:
            os.close(fd)

    def _link(self, fd: int, filename: str, before: Node | None) -> Node:
        target = to_bytes(os.readlink(filename, dir_fd=fd))
        digest = self._scanner.store.digest(target)
        self._scanner.store.meet(digest, target, self._keep)
        if before is not None and before.kind == "l" and before.digest == digest:
            return before
        return Node("l", 0o777, digest, len(target))

    def _count_mode(self, kind: str, mode: int) -> None:
        self.modes[kind, mode] = self.modes.get((kind, mode), 0) + 1


def encode(folder: Node) -> bytes:
    """The list of a folder, which its digest is made from."""
    lines = []
    for filename, node in folder.children.items():
        if node.kind != "s":
            kind = "x" if node.kind == "f" and node.mode & 0o100 else node.kind
            lines.append((to_bytes(filename), f"{kind} {node.digest} {node.size} ".encode()))
    lines.sort()
    return TREE + b"".join(head + filename + b"\0" for filename, head in lines)


def load(store: Store, digest: str, known: dict[str, Node] | None = None) -> Node:
    """The tree of a root from the store; modes are 644 and 755. Folders in `known`, by digest, are not read
    again, and new ones are put there: trees that share one are not compared below it.

    Raises: RunError `workspace.object`."""
    if known is not None and digest in known:
        return known[digest]
    data = store.read(digest)
    if not data.startswith(TREE):
        raise RunError(
            "workspace.object", f"the stored file {digest} is no list of a folder", "use another root"
        )
    node = Node("d", 0o755, digest)
    for kind, of, size, child in entries(data):
        match kind:
            case "d":
                node.children[child] = load(store, of, known)
            case "l":
                node.children[child] = Node("l", 0o777, of, size)
            case _:
                node.children[child] = Node("f", 0o755 if kind == "x" else 0o644, of, size)
    if known is not None:
        known[digest] = node
    return node


def content_at(store: Store, root: str, path: str) -> str | None:
    """The digest of a file's content below a root; only the lists on the way are read.

    Raises: RunError `workspace.object`.
    """
    digest, kind = root, "d"
    for part in path.split("/"):
        if kind != "d":
            return None
        found = {child: (of_kind, of) for of_kind, of, _, child in entries(store.read(digest))}
        if part not in found:
            return None
        kind, digest = found[part]
    return digest if kind in ("f", "x") else None


def entries(data: bytes) -> Iterator[tuple[str, str, int, str]]:
    """The entries of a folder's list: kind, digest, size, name."""
    for line in data[len(TREE) :].split(b"\0")[:-1]:
        kind, of, size, filename = line.split(b" ", 3)
        yield kind.decode(), of.decode(), int(size), to_text(filename)


def differences(old: Node, new: Node, path: str = "") -> list[str]:
    """Paths that are not the same in both trees: content, kind, mode, there or not there."""
    found = []
    for filename in changed(old, new):
        before, after = old.children.get(filename), new.children.get(filename)
        here = f"{path}{filename}"
        if before is None or after is None or before.kind != after.kind:
            found.append(here)
            found += [item for node in (before, after) if node is not None for item in _below(node, here)]
            continue
        if before.mode != after.mode or (before.kind != "d" and before.digest != after.digest):
            found.append(here)
        if before.kind == "d":
            found += differences(before, after, f"{here}/")
    return found


def changed(old: Node, new: Node) -> list[str]:
    """Names at the top that do not stand for the same node in both, in order of their bytes."""
    names = [filename for filename, node in new.children.items() if old.children.get(filename) is not node]
    names += old.children.keys() - new.children.keys()
    return sorted(names, key=to_bytes)


def at(root: Node, path: str) -> Node | None:
    """The node of a path below the root."""
    node: Node | None = root
    for part in path.split("/"):
        if node is None:
            return None
        node = node.children.get(part)
    return node


def links(root: Node, skipped: Callable[[str], bool]) -> Iterator[str]:
    """The links in a tree, but for those in git's folder and in folders that are skipped."""
    todo = [("", root)]
    while todo:
        above, folder = todo.pop()
        for child, node in folder.children.items():
            path = f"{above}{child}"
            if node.kind == "l":
                yield path
            elif node.kind == "d" and path != ".git" and not skipped(f"{path}/"):
                todo.append((f"{path}/", node))


def specials(root: Mapping[str, Node], path: str = "") -> list[str]:
    """Paths of sockets, pipes and devices."""
    found = []
    for filename, node in root.items():
        if node.kind == "s":
            found.append(f"{path}{filename}")
        elif node.children:
            found += specials(node.children, f"{path}{filename}/")
    return found


def to_bytes(text: str) -> bytes:
    """A name as the system has it."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """A name as text; bytes that are no UTF-8 survive."""
    return data.decode("utf-8", "surrogateescape")


def _below(node: Node, path: str) -> list[str]:
    found = []
    for filename in sorted(node.children, key=to_bytes):
        here = f"{path}/{filename}"
        found += [here, *_below(node.children[filename], here)]
    return found


def _signature(found: os.stat_result) -> _Signature:
    return (found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)


def _too_much(what: str) -> RunError:
    return RunError(
        "workspace.limit",
        f"the workspace is too big: {what}",
        "name a smaller folder, or let the step write less; the step was not committed",
    )
