"""A second folder of a run: the files that it began with, and of its changes those that a caller keeps.

Takes the run's store, two roots and a choice among what the door tells apart; gives the root that the folder
then has, or nothing where no change is left out and the workspace itself is as good. The folder is kept in
that of the store and brought up to date by what differs; its root is compared before each use. A check reads
it, and nobody works in it (ADR 0095).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spak import canon, door
from spak.errors import RunError
from spak.files.disk import Disk, typed
from spak.workspace.apply import Applier
from spak.workspace.store import Store
from spak.workspace.tree import Bounds, Node, Scanner, encode, load

FOLDER = "beginning"


class Checkout:
    """The checkout of one run."""

    def __init__(self, store: Store, bounds: Bounds) -> None:
        self._from, self._bounds = store, bounds
        self.folder = store.folder / FOLDER

    def hold(self, before: str, now: str, keep: Callable[[door.Change], bool]) -> str:
        """Make the folder hold the root `before` with the changes up to `now` that are kept; gives its root,
        or nothing where all are kept. Raises: RunError `workspace.*`."""
        if before == now:
            return ""
        with typed("making a checkout"):
            self._from.look()
            old = load(self._from, before)
            leaving = door.look(old, load(self._from, now), self._from.read)
            if all(map(keep, leaving.changes)):
                return ""
            wanted = _changed(old, [(one.path, one.after) for one in leaving.changes if keep(one)])
            disk = Disk()
            store = Store(self.folder.with_suffix(".store"), disk)
            store.sources = (self._from, *self._from.sources)
            for folder in (self.folder, store.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            store.look(write=True)
            scanner = Scanner(store, disk, self._bounds)
            with disk.folder(str(self.folder)) as fd:
                Applier(disk, store, scanner, exact=False).apply(fd, wanted)
                found = scanner.scan(fd, keep=False).root.digest
        if found != wanted.digest:
            raise RunError(
                "workspace.changing",
                "the checkout of a check is not what it was made to be",
                "end whatever else writes into the run's folder, then continue with `spak resume`",
            )
        return found


def _changed(root: Node, changes: Iterable[tuple[str, door.Node | None]]) -> Node:
    """The tree with other things at these paths; None takes one away. What was there is not touched."""
    made = _copy(root)
    for path, node in changes:
        *folders, name = path.split("/")
        at = made
        for part in folders:
            inner = at.children.get(part)
            inner = Node("d", 0o755) if inner is None or inner.kind != "d" else _copy(inner)
            at.children[part] = inner
            at = inner
        if node is None:
            at.children.pop(name, None)
        else:
            at.children[name] = Node(node.kind, node.mode, node.digest, node.size)
    _seal(made)
    return made


def _copy(folder: Node) -> Node:
    return Node("d", folder.mode, "", 0, dict(folder.children))


def _seal(folder: Node) -> None:
    """Give new folders their digests, and drop those that are empty now."""
    for name, node in list(folder.children.items()):
        if node.kind == "d" and not node.digest:
            _seal(node)
            if not node.children:
                del folder.children[name]
    folder.digest = canon.digest(encode(folder))
