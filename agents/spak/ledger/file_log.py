"""The log of a folder of runs: `spak.ledger.log` kept beside the runs.

    <root>/.log/leaves.jsonl    the leaves, a line each: the only truth
    <root>/.log/nodes           the hashes of all perfect subtrees, 32 bytes each: a cache
    <root>/.log/checkpoint      the last checkpoint that was signed
    <root>/.log/lock            whoever writes holds it

Takes the folder; gives leaves, hashes and the last leaf of a run. A last line that was never finished is not
a leaf, and the next append cuts it. The cache saves a proof from hashing all leaves; it is only used where
somebody asks for it (`cached`), who checks what is made with it. `update` looks at the runs of the folder and
adds the leaves that are due.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spak.errors import LedgerError
from spak.ledger import merkle
from spak.ledger.chain import read_lines
from spak.ledger.faults import typed
from spak.ledger.files import FileLedgers
from spak.ledger.lease import Lease
from spak.ledger.log import holds, inclusion, leaf_of
from spak.ledger.note import Note, read
from spak.ledger.private import keep_folder, open_file
from spak.ledger.proofs import Leaf, read_leaf
from spak.ledger.scan import TRACE, fsync_folder, head_at

FOLDER = ".log"
_HASH = 32


class FileLog:
    """The log of the runs in one folder, as it was when it was opened; `append` adds to it."""

    def __init__(self, root: Path, *, cached: bool = False) -> None:
        self.folder = root / FOLDER
        self._path = self.folder / "leaves.jsonl"
        self._data = self._whole()
        self._tree: merkle.Tree | None = None
        self._nodes = self._cache() if cached else b""

    @property
    def size(self) -> int:
        """The number of leaves."""
        return self._data.count(b"\n")

    def node(self, level: int, index: int) -> bytes:
        """The hash of a perfect subtree."""
        if self._nodes:
            at = merkle.position(level, index) * _HASH
            return self._nodes[at : at + _HASH]
        return self.tree().node(level, index)

    def tree(self) -> merkle.Tree:
        """The whole tree, of the leaves themselves."""
        if self._tree is None:
            self._tree = merkle.Tree(self._lines())
        return self._tree

    def _lines(self) -> list[bytes]:
        """The leaves' texts. Only a newline ends one, as in `size` and `find`."""
        return self._data.split(b"\n")[:-1]

    def leaves(self, size: int | None = None) -> Iterator[Leaf]:
        """The first leaves, all of them by default. Raises: LedgerError `ledger.log` for a damaged one."""
        for index, line in enumerate(self._lines()):
            if size is not None and index >= size:
                return
            try:
                yield read_leaf(line)
            except LedgerError as error:
                raise LedgerError(
                    "ledger.log", f"line {index + 1} of {self._path} is no leaf of a log", "restore the file"
                ) from error

    def last(self, size: int | None = None) -> dict[str, Leaf]:
        """The last leaf of each run among the first `size`. Raises: as `leaves`."""
        return {leaf.run: leaf for leaf in self.leaves(size)}

    def find(self, run: str, size: int) -> tuple[int, Leaf] | None:
        """The last leaf of a run among the first `size`, with its index. Raises: as `leaves`."""
        return next(self.of(run, size), None)

    def of(self, run: str, size: int) -> Iterator[tuple[int, Leaf]]:
        """The leaves of a run among the first `size`, the last one first. Raises: as `leaves`."""
        end, wanted = len(self._data), b'"run":"%s"}\n' % run.encode()
        while (end := self._data.rfind(wanted, 0, end)) >= 0:
            index = self._data.count(b"\n", 0, end)
            if index < size:
                start = self._data.rfind(b"\n", 0, end) + 1
                yield index, read_leaf(self._data[start : end + len(wanted) - 1])

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts no other process appends. Raises: LedgerError `ledger.busy`, `ledger.readonly`."""
        try:
            keep_folder(self.folder)
        except OSError as error:
            raise typed(error, "making the log's folder", self.folder) from error
        lease = Lease.take(self.folder / "lock", "log")
        try:
            self._data, self._tree = self._whole(), None
            yield
        finally:
            lease.release()

    def append(self, leaves: Sequence[Leaf]) -> None:
        """Add leaves at the end; they are durable when it returns. Raises: LedgerError `ledger.full`, ..."""
        tree, size = self.tree(), len(self._data)
        texts = [leaf.text() for leaf in leaves]
        added = b"".join(text + b"\n" for text in texts)
        try:
            with open_file(self._path, "ab") as file:
                file.truncate(size)
                file.write(added)
                file.flush()
                os.fsync(file.fileno())
            fsync_folder(self.folder)
        except OSError as error:
            raise typed(error, "writing the log", self._path) from error
        self._data += added
        for text in texts:
            tree.append(text)
        self._write("nodes", b"".join(tree.nodes))

    def signed(self) -> Note | None:
        """The last checkpoint, unverified. Raises: LedgerError `ledger.checkpoint` for a damaged one."""
        try:
            return read((self.folder / "checkpoint").read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise typed(error, "reading the last checkpoint", self.folder / "checkpoint") from error

    def keep(self, note: Note) -> None:
        """Keep the last checkpoint. Raises: LedgerError `ledger.full`, `ledger.readonly`, `ledger.io`."""
        self._write("checkpoint", note.text().encode())

    def update(self, ledgers: FileLedgers, erased: Sequence[str] = ()) -> list[str]:
        """Add a leaf for each run that has changed, and a tombstone for those `erased` on purpose; gives what
        is wrong with other runs, which get none. Call it within `held`.

        Raises: LedgerError `ledger.log`, `ledger.full`, `ledger.readonly`; `ledger.exists` for an erased run
        that is there; `ledger.tombstone` for one in the log that no checkpoint covers and nobody names.
        """
        self._refuse_tombstones(erased)
        before, found, wrong = self.last(), [], []
        names = ledgers.runs()
        for run in names:
            try:
                leaf = _changed(ledgers.root / run / TRACE, run, before.get(run))
            except LedgerError as error:
                wrong.append(error.message)
            else:
                found += [] if leaf is None else [leaf]
        there = frozenset(names)
        for run in erased:
            if run in there:
                raise LedgerError(
                    "ledger.exists", f"run {run} is in the folder", "remove it first, then say so"
                )
        for run, last in before.items():
            if run not in there and last.root is not None:
                if run in erased:
                    found.append(Leaf(run, last.count, last.head, None))
                else:
                    wrong.append(gone(run, last))
        if found:
            self.append(found)
        return wrong

    def _refuse_tombstones(self, erased: Sequence[str]) -> None:
        """One that was not signed yet is of this command, when it was killed, or somebody else's."""
        note = self.signed()
        size = 0 if note is None else note.head().size
        for index, leaf in enumerate(self.leaves()):
            if index >= size and leaf.root is None and leaf.run not in erased:
                raise LedgerError(
                    "ledger.tombstone",
                    f"the log says that run {leaf.run} was erased, and no checkpoint covers that",
                    f"if you removed it, say --erased {leaf.run}; otherwise restore the log and the run",
                )

    def _whole(self) -> bytes:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise typed(error, "reading the log", self._path) from error
        return data[: data.rfind(b"\n") + 1]

    def _cache(self) -> bytes:
        """The hashes of the subtrees, where they are as many as the leaves ask for."""
        try:
            data = (self.folder / "nodes").read_bytes()
        except OSError:
            return b""
        return data if len(data) == _HASH * merkle.position(0, self.size) else b""

    def _write(self, name: str, data: bytes) -> None:
        aside = self.folder / f".{name}.new"
        try:
            with open_file(aside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(self.folder / name)
        except OSError as error:
            raise typed(error, f"writing {name}", self.folder / name) from error


def prove(root: Path, run: str, seq: int | None = None) -> str:
    """The proof (`spak.ledger.proofs`) of a run of this folder, or of one of its records, in the last
    checkpoint.

    Raises: LedgerError `ledger.not_covered` where the checkpoint does not have it, `ledger.rewritten`,
    `ledger.forked` where run or log are not what was signed.
    """
    log = FileLog(root, cached=True)
    note = log.signed()
    found = None if note is None else log.find(run, note.head().size)
    if note is None or found is None:
        raise LedgerError(
            "ledger.not_covered", f"no checkpoint covers {run}", "write one: spak ledger checkpoint"
        )
    index, leaf = found
    if not holds(log, index, leaf, note.head()):
        log = FileLog(root)  # without the cache, which may be damaged
        if not holds(log, index, leaf, note.head()):
            raise LedgerError(
                "ledger.forked",
                "the log is not the one that its last checkpoint names",
                "spak ledger verify --all --checkpoint FILE lists all that differs",
            )
    try:
        with (root / run / TRACE).open("rb") as file:
            return inclusion(log, index, leaf, note, read_lines(file), seq)
    except OSError as error:
        raise typed(error, "reading the ledger", root / run / TRACE) from error


def gone(run: str, last: Leaf) -> str:
    """What is said of a run that is in the log and not in the store."""
    return f"run {run}, of {last.count} records, is gone without a tombstone"


def _changed(path: Path, run: str, before: Leaf | None) -> Leaf | None:
    """The leaf of a run whose last leaf is no longer what it has. Raises: LedgerError `ledger.rewritten`."""
    last = before if before is not None and before.root is not None else None
    try:
        if last is not None and head_at(path, path.stat().st_size) == last.head:
            return None
        with path.open("rb") as file:
            leaf = leaf_of(run, read_lines(file), last)
    except OSError as error:
        raise typed(error, "reading the ledger", path) from error
    return None if leaf == last or not leaf.count else leaf
