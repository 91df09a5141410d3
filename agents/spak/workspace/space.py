"""The workspace of a run: the folder that its tools work in, and the way back.

Takes the folder and a store beside it; gives the content hash of the folder (register R3), and around each
effect that may write a transaction:

    with transaction(effect):   what is there is durable, and a record that names the effect and that root
        ... the effect runs ...
        commit() -> R3          what it changed is durable; without it exactly that is undone
    settle()                    once the ledger has the outcome on disk, the way back is no longer needed

and after a crash `recover`, which rolls back only if the effect under way is the one that the ledger waits
for. It may be stopped anywhere. It knows no ledger, no tool and no sandbox.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from spak.cancel import Cancel
from spak.errors import BugError, RunError, UserError
from spak.files.disk import SYNC_EACH, Disk, nothing, typed
from spak.ports import Blobs, Quota
from spak.repository.scratch import GIT
from spak.workspace import copying, finish, wal
from spak.workspace.apply import Applier
from spak.workspace.brought import USUAL, Wanted
from spak.workspace.checkout import Checkout
from spak.workspace.copied import Copied
from spak.workspace.git_files import GitPlaces
from spak.workspace.lock import WorkspaceLock
from spak.workspace.pushed import Pushed, push
from spak.workspace.secrets import Secrets
from spak.workspace.store import Hashing, Store
from spak.workspace.tree import Bounds, Node, Scanner, Tree, at, content_at, differences, holds_secret, load
from spak.workspace.unpack import Limits, unpack
from spak.workspace.wal import Preimage

_ANEW = "free some space or mend what is named there, then start the run again"


class Workspace:
    """One folder, one store. `wait_s`: for a tool that has outlived its runner. `travels`: the runner pushes
    each root before the ledger names it, for hosts that share no disk. Not `durable`: it is made anew.
    `hashing`: another one only in tests, to have two contents of one name."""

    def __init__(
        self,
        directory: Path,
        store: Path,
        *,
        bounds: Bounds | None = None,
        wait_s: float = 10.0,
        before: Callable[[str], None] = nothing,
        travels: bool = False,
        durable: bool = True,
        hashing: Hashing = hashlib.sha256,
    ) -> None:
        self.directory, self._place = Path(directory), str(directory)
        self._disk = Disk(before, durable=durable)
        self._bounds = bounds or Bounds()
        self._store = Store(Path(store), self._disk, self._bounds.store_bytes, hashing)
        self._scanner = Scanner(self._store, self._disk, self._bounds)
        self._lock = WorkspaceLock(Path(store), wait_s)
        self.ours = copying.skipped(self.directory, Path(store))  # names at the top that no job sees
        self._skip = self.ours | {GIT}
        self._state: Literal["clean", "open", "done"] = "clean"
        self._base: Node | None = None
        self.quota: Quota | None = None  # what a step that has begun may bring it to
        self._way_back: tuple[Node | None, bytes] = (None, b"")
        self._touched: list[str] = []
        self._left: Node | None = None
        self._prepared = False
        self.travels = travels
        self._fresh = Path(store) / "fresh"  # while files that it was filled with were never synced

    @property
    def fsyncs(self) -> int:
        """How often we waited for the disk; counted apart from the ledger's."""
        return self._disk.fsyncs

    @property
    def store(self) -> Path:
        """The folder of its store."""
        return self._store.folder

    @property
    def git(self) -> GitPlaces:
        """Its files as git has them, and where its repositories are."""
        return GitPlaces(self._store, self.directory, self.begun)

    @property
    def checkout(self) -> Checkout:
        """Where the files of the beginning are checked."""
        return Checkout(self._store, self._bounds)

    @property
    def secrets(self) -> Secrets:
        """Its files of secrets."""
        return Secrets(self._store, self._scanner, self.directory, self._skip, self.lock, self.begun)

    @property
    def original(self) -> Path | None:
        """The folder that it was copied from; None where a run's folder does not name one."""
        copied = Copied.read(self.directory.parent)
        return Path(copied.source) if copied is not None else None

    @property
    def seen(self) -> Node | None:
        """The tree with which the step under way began, else as the last scan saw it; None before one."""
        return self.begun or self._scanner.last

    @property
    def begun(self) -> Node | None:
        """The tree with which the step began that is under way; None where none is."""
        return self._base if self._state == "open" else None

    # ---- looking -----------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """The content hash of the folder as it is; its contents are in the store from then on.

        Raises: RunError `workspace.limit`, `workspace.unreadable`, `workspace.changing`, `workspace.full`.
        """
        with self._held("taking a snapshot") as fd:
            root = self._scan(fd).root.digest
            if self._fresh.exists():  # a loss of power may take its files: they come from the store then
                self._store.sync()
            return root

    def content_at(self, root: str, path: str) -> str | None:
        """The hash of the content that a file had under an earlier root; None when there was no such file.

        Raises: RunError `workspace.object` when nothing is known of that root.
        """
        self._store.look()
        return content_at(self._store, root, path)

    def changed_since(self, root: str) -> dict[str, bytes | None]:
        """The files that are not as they were under an earlier root, each with what it held then; None where
        there was none. Raises: RunError `workspace.*`."""
        with self._held("looking for changes") as fd:
            old, new = load(self._store, root), self._scan(fd, keep=False).root
            found: dict[str, bytes | None] = {}
            for path in differences(old, new):
                was, now = at(old, path), at(new, path)
                if "f" in {was and was.kind, now and now.kind}:
                    found[path] = self._store.read(was.digest) if was and was.kind == "f" else None
            return found

    def pending(self) -> Preimage | None:
        """The effect under way and the root to return to, as the disk has it."""
        with typed("looking for a step under way"):
            self._store.look()
            return self._under_way()

    def touched(self) -> list[str]:
        """Paths that are not as they were at `begin`, relative, in order of the walk."""
        if self._state == "done":
            return list(self._touched)
        base = self._must_be_open("touched")
        with self._held("looking for changes") as fd:
            return differences(base, self._scan(fd, keep=False).root)

    @property
    def step(self) -> tuple[Node, Node] | None:
        """The trees before and after a step that was committed; None where it changed nothing."""
        if self._state != "done" or not self._touched or self._base is None or self._left is None:
            return None
        return self._base, self._left

    def content(self, digest: str) -> bytes:
        """A content of either. Raises: RunError `workspace.object`."""
        return self._store.read(digest)

    def lock(self, cancel: Cancel | None = None) -> WorkspaceLock:
        """`with workspace.lock() as fd`: the inheritable descriptor to hand on to a tool.

        Raises, when it is entered: RunError `workspace.busy` when something else holds it past the deadline;
        LedgerError `ledger.lost_lease` when somebody with a newer lease was here (`take`); Cancelled.
        """
        with typed("taking the workspace lock"):
            self._prepare()
        self._lock.cancel = cancel
        return self._lock

    def take(self, fence: int) -> None:
        """Work under the lease of that number, and shut out whoever works here under an older one.

        Raises: RunError `workspace.busy` while one of them is in the middle of something; LedgerError
        `ledger.lost_lease` when a newer one was here.
        """
        self._lock.fence = fence
        with typed("taking the workspace lock"), self.lock():
            pass

    # ---- the transaction ---------------------------------------------------------------------------

    @contextmanager
    def transaction(self, effect: str, cancel: Cancel | None = None) -> Iterator[None]:
        """Around an effect that may write: what is not committed when it is left, or when anything is raised,
        is rolled back. Raises: Cancelled before the effect began, and what `begin` and `rollback` raise.
        """
        self.begin(effect, cancel)
        try:
            yield
        except BaseException:
            if self._state != "clean":
                self.rollback()
            raise
        if self._state == "open":
            self.rollback()

    def begin(self, effect: str, cancel: Cancel | None = None) -> str:
        """Before an effect that may write: make the way back durable. Gives the root to return to.

        Raises: Cancelled, and nothing was begun.
        """
        if self._state != "clean":
            raise BugError("bug.workspace", f"begin of {effect} while the step before is {self._state}")
        with self._held("beginning a step") as fd:
            under_way = self._under_way()
            if under_way is not None and under_way.effect != effect:
                raise RunError(
                    "workspace.pending",
                    "an earlier step was left half done in this workspace",
                    "`spak resume` recovers it first",
                )
            self._scanner.cancel = cancel
            try:
                tree = self._scanner.scan(fd, self._skip, keep=True, partly=True)
            finally:
                self._scanner.cancel = None
            if self._way_back[0] is not tree.root:
                self._way_back = tree.root, wal.encode(Preimage.of(effect, tree))
            self._store.begin(effect.encode() + b"\n" + self._way_back[1])
            self._base = tree.root
            most = self._bounds
            self.quota = Quota(most.size_bytes, most.entries, tree.size_bytes, tree.entries)
            self._state = "open"
            return tree.root.digest

    def watch(self, begin: bool = True) -> None:
        """From now on, or no longer, a step reads only folders in which something changed, where known."""
        self._scanner.watch(self.directory if begin else None)

    def commit(self, *, whole: bool = False) -> str:
        """After it: make what changed durable; gives the new root. The way back stays until `settle`.

        Sockets, pipes and devices that the effect left behind are removed: they have no content to keep. A
        file that it made or changed takes no rights of its owner along (setuid, setgid). `whole`: read all.
        """
        base = self._must_be_open("commit")
        with self._held("committing a step") as fd:
            tree = self._scan(fd, partly=not whole)
            if tree.root is not base and tree.takes_rights and finish.strip(self._disk, fd, base, tree.root):
                tree = self._scan(fd)
            self._touched, self._left = [], tree.root
            if tree.root is not base:
                finish.drop_specials(self._disk, fd, base, tree.root)
                self._touched = differences(base, tree.root)
                if len(self._touched) > SYNC_EACH or self._fresh.exists():
                    self._disk.sync_all(fd)
                    self._fresh.unlink(missing_ok=True)
                else:
                    finish.sync_changed(self._disk, fd, base, tree.root)
            self._state = "done"
            return tree.root.digest

    def rollback(self) -> list[str]:
        """Undo exactly what changed since `begin`: bytes, rights, links, folders; gives the paths.

        A folder that the effect made counts as one path here. May be called again after it was stopped.
        """
        if self._state == "clean":
            raise BugError("bug.workspace", "rollback without a step under way")
        with self._held("rolling a step back") as fd:
            under_way = self._under_way()
            if under_way is None:
                raise BugError("bug.workspace", "the record of the step under way is gone")
            return self._undo(fd, self._base or under_way.target(self._store))

    def settle(self) -> None:
        """The ledger has the outcome on disk: forget the way back of a committed step."""
        if self._state != "done":
            return
        with typed("settling a step"), self._lock:
            self._store.look(write=True)
            self._store.settle()
        self._base = None
        self._state = "clean"

    def keep_index(self) -> None:
        """See to it that a store of many steps is opened as fast as a new one; what cannot be is left."""
        if self._state == "clean":
            with suppress(OSError, UserError), self._lock:
                self._store.look(write=True)
                self._store.keep_index()

    def recover(self, pending_effect: str | None, root: str) -> list[str]:
        """After a crash: bring the folder back to before the effect that the ledger waits for.

        A record that names another effect belongs to a step whose outcome the ledger has: it is dropped.
        Where power was lost before the record was durable, contents may be lost too; the effect had not
        begun, so the folder still has them. A folder that is gone altogether is restored to `root`. Gives
        the paths changed.
        """
        self._prepared = False
        gone = not self.directory.exists()
        with self._held("recovering the workspace") as fd:
            under_way = self._under_way()
            if under_way is not None and under_way.effect == pending_effect:
                if self._store.lost:
                    self._scan(fd)
                return self._undo(fd, under_way.target(self._store))
            self._store.settle()
            self._base = None
            self._state = "clean"
            return self._bring_to(fd, root) if gone and root else []

    # ---- other places ------------------------------------------------------------------------------

    def restore(self, root: str, source: Path | None = None) -> list[str]:
        """Make the folder hold any root that the store knows, or that of `source`, another run's.

        Raises: RunError `workspace.object` when a content is in neither; BugError while a step is under way.
        """
        if self._state != "clean":
            raise BugError("bug.workspace", f"restore while a step is {self._state}")
        if source is not None:
            self.draw_from(source)
        with self._held("restoring the workspace") as fd:
            paths = self._bring_to(fd, root)
            self._store.settle()  # a store that was copied may hold a step of the run that it is from
            return paths

    def bring(self, other: Workspace) -> None:
        """Within a step: make the folder hold what a committed step of another workspace left there.

        Raises: RunError `workspace.*`; BugError where either has no such step."""
        base = self._must_be_open("bring")
        if other._left is None:
            raise BugError("bug.workspace", "bring without a committed step of the other workspace")
        sources = self._store.sources
        self._store.sources = (*sources, other._store)
        try:
            with self._held("taking changes over") as fd:
                applier = Applier(self._disk, self._store, self._scanner, exact=False)
                applier.apply(fd, other._left, self._skip, base if self._scanner.still else None)
        finally:
            self._store.sources = sources

    def hold(self, root: str) -> list[str]:
        """Within a step: make the folder hold a root that the store knows; gives the paths that change.

        Raises: RunError `workspace.object` where it does not."""
        base = self._must_be_open("hold")
        with self._held("taking changes back") as fd:
            wanted = load(self._store, root)
            Applier(self._disk, self._store, self._scanner, exact=False).apply(fd, wanted, self._skip)
            return differences(base, wanted)

    def draw_on(self, blobs: Blobs) -> None:
        """What the store lacks is read from there, where `push` of another host has put it."""
        self._store.sources = (*self._store.sources, Pushed(blobs))

    def draw_from(self, store: Path) -> None:
        """What the store lacks is read from that of another run, the one that this run was forked from."""
        self._store.sources = (*self._store.sources, Store(Path(store), self._disk))

    def push(self, root: str, blobs: Blobs) -> None:
        """Put what that root needs and `blobs` lack into them: with it, R3 can be made on another host.

        Raises: RunError `workspace.object`; LedgerError when the blobs cannot be written.
        """
        with typed("storing the workspace"):
            self._store.look()
            push(self._store, root, blobs)

    def copy_in(self, source: Path, wanted: Wanted = USUAL, runs: Path | None = None) -> Copied:
        """Copy what is wanted of a folder into this one, which must be empty; the original is only read. What
        is read is kept in the folder `runs` for the next copy.

        Raises: UsageError `workspace.source`; RunError `workspace.limit`, `workspace.not_empty`,
        `workspace.unreadable`, `workspace.changing`, `git.*`, with nothing left behind.
        """
        if not source.is_dir():
            raise copying.no_folder(source)
        with self._filling("copying the workspace") as fd:
            ours = (self.directory, self._store.folder)
            disk, bounds = self._disk, self._bounds
            copied, written = copying.copy(source, fd, wanted, self._store, disk, bounds, ours, runs)
            self._scanner.know(written)
            return copied

    def unpack_in(self, archive: BinaryIO, limits: Limits, root: str, folder: str = "") -> None:
        """Unpack a zip of which `look` gave that root and folder into this folder, which must be empty.

        Raises: UsageError `upload.*`; RunError `upload.changed`, `workspace.not_empty`, with nothing left.
        """
        written: list[tuple[os.stat_result, str, bool]] = []

        def wrote(file: int, path: str, digest: str, size: int, data: bytes | None) -> None:
            if data is not None:
                self._store.put(digest, data)
            elif not self._store.put_file(digest, file, size):
                raise OSError(errno.EIO, "a file that was just written reads differently")
            written.append((os.fstat(file), digest, holds_secret(file, path)))

        with self._filling("unpacking files"):
            if unpack(archive, self.directory, limits, folder, wrote).root != root:
                raise RunError(
                    "upload.changed",
                    "the stored files are not the ones that were brought",
                    "upload them again",
                )
            self._scanner.know(written)

    # ---- private -----------------------------------------------------------------------------------

    @contextmanager
    def _filling(self, doing: str) -> Iterator[int]:
        """The empty folder, held; emptied again when it is not filled to the end."""
        with self._held(doing, _ANEW) as fd:
            if any(self.directory.iterdir()):
                raise RunError(
                    "workspace.not_empty", f"{self.directory} is not empty", "start a new run for other files"
                )
            try:
                self._fresh.touch()
                yield fd
            except BaseException:
                for path in self.directory.iterdir():
                    self._disk.remove(path.name, fd)
                raise

    @contextmanager
    def _held(self, doing: str, hint: str = "") -> Iterator[int]:
        """The folder, open, with the lock held; what the system refuses inside becomes a typed error."""
        with typed(doing, hint):
            self._prepare()
            with self._lock:
                fd = self._open_root()
                try:
                    self._store.look(write=True)
                    yield fd
                finally:
                    os.close(fd)

    def _prepare(self) -> None:
        """Make the folders, once: one that is removed under a run is an error and is not made anew."""
        if self._prepared:
            return
        for folder in (self._store.folder, self.directory):
            if not os.access(folder, os.F_OK):
                folder.mkdir(parents=True, exist_ok=True)
        self._prepared = True

    def _open_root(self) -> int:
        """The folder, with its owner's rights: a tool may take them away, and the next one needs them."""
        found = self.directory.stat()
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o700 != 0o700:
            self.directory.chmod(mode | 0o700)
        if os.geteuid() == 0:
            self._disk.owner = (found.st_uid, found.st_gid)
        return self._disk.open_folder(self._place)

    def _scan(self, fd: int, *, keep: bool = True, partly: bool = False) -> Tree:
        tree = self._scanner.scan(fd, self._skip, keep=keep, partly=partly)
        self._store.write()
        return tree

    def _under_way(self) -> Preimage | None:
        record = self._store.begun()
        return None if record is None else wal.decode(record)

    def _must_be_open(self, what: str) -> Node:
        if self._state != "open" or self._base is None:
            raise BugError("bug.workspace", f"{what} without a step under way")
        return self._base

    def _undo(self, fd: int, target: Node) -> list[str]:
        paths = Applier(self._disk, self._store, self._scanner, exact=True).apply(fd, target, self._skip)
        self._store.settle()
        self._base = None
        self._state = "clean"
        return paths

    def _bring_to(self, fd: int, root: str) -> list[str]:
        target = load(self._store, root)
        return Applier(self._disk, self._store, self._scanner, exact=False).apply(fd, target, self._skip)
