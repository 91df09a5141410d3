"""The ledger of the command line: one folder per run, one line per record.

    <root>/<run>/trace.jsonl    the ledger, and the only truth
    <root>/<run>/blobs/         bodies too large for a line
    <root>/<run>/snapshot       a cache of the run's state (spak.ledger.snapshots)
    <root>/<run>/pack.json      what may be stated of a run that ended (spak.ledger.pack)
    <root>/<run>/lock           the lease

Takes records, gives them back with their exact lines. A run exists with its genesis or not at all: the first
line is written aside, fsynced, renamed, and the folder fsynced. `append` is one write of whole lines at a
known offset; when it fails, the file is cut back and count and head stay at what is on disk. `flush` is one
fdatasync, after the blobs, and only when something was written. Opening checks the whole chain while
streaming (what a snapshot knows of it is compared as a whole) and cuts a last line that was never finished.
Memory is O(1) in the length of the run. It keeps no clock, judges no record, and knows no workspace.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from spak import canon
from spak.errors import LedgerError
from spak.kernel.snapshot import Snapshot
from spak.ledger import pack, snapshots
from spak.ledger.blobs import FileBlobs, no_lease
from spak.ledger.chain import check_run_id, follow, read_lines, tampered
from spak.ledger.faults import typed
from spak.ledger.intake import FileIntake
from spak.ledger.lease import Lease
from spak.ledger.private import make_folder, open_file
from spak.ledger.scan import START, TRACE, Scan, fsync_folder, offset_of, scan_file
from spak.ports import Blobs
from spak.records import HASH_FIELD, Record, chain_hash, decode, place

_CHUNK = 1 << 20
CARRIED = 1000
"""Lines that are carried over in one write."""


class FileLedger:
    """One run's ledger; made by `FileLedgers`. `healed` counts the bytes of a torn line that were cut."""

    keeps_ended = True

    def __init__(
        self,
        run: str,
        folder: Path,
        scan: Scan,
        fd: int = -1,
        lease: Lease | None = None,
        opened: snapshots.Opened | None = None,
    ) -> None:
        self.run = run
        self.fence = 0
        self.count = scan.count
        self.head = scan.head
        self.healed = 0
        self.fsyncs = 0
        self.folder = folder
        self.blobs: Blobs = FileBlobs(folder / "blobs", writable=lease is not None)
        self._path = folder / TRACE
        self._size = scan.size
        self._synced = 0
        self._fd = fd
        self._lease = lease
        self._hashing = hashlib.sha256() if opened is None else opened.hashing
        self._known = START if opened is None else opened.known
        self._opened = opened
        self._ragged = False
        self._dirty = lease is not None  # whoever wrote the lines found may have died before its flush
        self._suspect = False

    def read(self, start: int = 0) -> Iterator[tuple[Record, bytes]]:
        """Records with their exact lines from `start` up to the count of now, streamed."""
        for line in self.lines(start, self.count):
            yield decode(line), line

    def lines(self, start: int, end: int) -> Iterator[bytes]:
        """The exact lines from record `start` on, without `end`, streamed."""
        start = max(start, 0)
        places = ((0, 0), (self._known.count, self._known.size), (self.count, self._size))
        try:
            with self._path.open("rb") as file:
                file.seek(offset_of(file, start, places))
                for _, line in zip(range(start, end), read_lines(file), strict=False):
                    yield line
        except OSError as error:
            raise typed(error, "reading the ledger", self._path) from error

    def carry(self, lines: Iterable[bytes]) -> None:
        """Append lines of another run that follow its record of our last number, unchanged but for the chain;
        durable after `flush`. Raises: as `append`."""
        self._must_hold()
        head, moved = self.head, list[bytes]()
        for line in lines:
            head = chain_hash(line, head)
            moved.append(b'{"#":"' + head.encode() + line[HASH_FIELD - 2 :])
            if len(moved) == CARRIED:
                self._extend(moved, head)
                moved = []
        self._extend(moved, head)

    def append(self, records: Sequence[Record]) -> list[Record]:
        """Write the records in one go; they come back with seq and hash and are durable after `flush`.

        Raises: LedgerError `ledger.full`, `ledger.io`, `ledger.readonly` with nothing written;
        `ledger.no_lease` on a reader or after `close`; UserError `canon.value` for a body that is not JSON.
        """
        self._must_hold()
        head, placed, lines = self.head, [], []
        for seq, given in enumerate(records, self.count):
            record, line = place(given, seq, head)
            head = record.hash
            placed.append(record)
            lines.append(line)
        self._extend(lines, head)
        return placed

    def flush(self) -> None:
        """Make everything appended durable. Raises: LedgerError `ledger.full`, `ledger.io`; try again."""
        self._must_hold()
        self.blobs.flush()
        if not self._dirty:
            return
        try:
            if self._suspect:
                self._rewrite_unsynced()
            self._suspect = True
            os.fdatasync(self._fd)
        except OSError as error:
            raise typed(error, "flushing the ledger", self._path) from error
        self.fsyncs += 1
        self._suspect = self._dirty = False
        self._synced = self._size

    def confirm(self) -> None:
        """The lease is a lock of this process: it cannot be lost."""

    def kept(self) -> Snapshot | None:
        """The snapshot that the file was opened with; for a reader the one that is there now, unchecked.

        Raises: LedgerError `ledger.snapshot_discarded`.
        """
        if self._opened is None:
            return snapshots.found(self.folder, self.run)
        if self._opened.trouble is not None:
            raise self._opened.trouble
        return self._opened.snapshot

    def keep(self, snapshot: Snapshot | None) -> None:
        """Keep it beside the records, or none; what cannot be written is left out."""
        self._must_hold()
        if snapshot is None:
            snapshots.drop(self.folder)
        elif snapshots.write(self.folder, snapshot, self._size, self._hashing):
            self._known = Scan(snapshot.count, snapshot.head, self._size, 0)

    def conclude(self) -> None:
        """Write the statement of the run, which has ended, if there is none yet and the lease is held."""
        if self._lease is not None:
            pack.keep(self, self.folder)

    def close(self) -> None:
        """Flush and give the lease back, also when the flush fails; idempotent."""
        if self._lease is None:
            return
        try:
            self.flush()
        finally:
            os.close(self._fd)
            self._fd = -1
            self._lease.release()
            self._lease = None

    def __enter__(self) -> FileLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _must_hold(self) -> None:
        if self._lease is None:
            raise no_lease()

    def _extend(self, lines: Sequence[bytes], head: str) -> None:
        """Write lines that follow; the last one has the hash `head`."""
        if lines:
            data = b"".join(lines)
            self._write(data)
            self._hashing.update(data)
            self._size += len(data)
            self.count += len(lines)
            self.head = head

    def _write(self, data: bytes) -> None:
        view, done = memoryview(data), 0
        try:
            self._cut_ragged()
            self._ragged = self._dirty = True
            while done < len(data):
                done += os.pwrite(self._fd, view[done:], self._size + done)
            self._ragged = False
        except OSError as error:
            self._try_cut()
            raise typed(error, "appending to the ledger", self._path) from error

    def _cut_ragged(self) -> None:
        """Cut what a failed append left behind the last whole record."""
        if self._ragged:
            os.ftruncate(self._fd, self._size)
            self._ragged = False

    def _try_cut(self) -> None:
        try:
            self._cut_ragged()
        except OSError:
            pass  # the next append tries again, and opening heals a torn line in any case

    def _rewrite_unsynced(self) -> None:
        """After a failed sync the system may call pages clean that never reached the disk."""
        at = self._synced
        while at < self._size:
            at += os.pwrite(self._fd, os.pread(self._fd, min(_CHUNK, self._size - at), at), at)


class FileLedgers:
    """The runs of one folder. `wait_s` is how long `open` and `create` wait for a lease held by another."""

    def __init__(self, root: Path, wait_s: float = 0.0) -> None:
        self.root = Path(root)
        self.wait_s = wait_s

    def create(self, run: str, genesis: Record) -> FileLedger:
        """A new run, its lease held. The folder may be there already (with a workspace), the run may not.

        Raises: LedgerError `ledger.exists`, `ledger.run_id`, `ledger.busy`, `ledger.full`, `ledger.readonly`.
        """
        folder = self.root / check_run_id(run)
        record, line = place(genesis, 0, canon.ZERO)
        made = _make_folder(folder)
        try:
            lease = Lease.take(folder / "lock", run, self.wait_s)
            try:
                fsyncs = _write_genesis(folder, run, line)
                ledger = self._hold(run, folder, lease, Scan(1, record.hash, len(line), 0))
                ledger._hashing.update(line)
            except BaseException:
                lease.release()
                raise
        except BaseException:
            if made:
                _unmake_folder(folder)
            raise
        ledger.fsyncs = fsyncs
        ledger._dirty = False
        ledger._synced = len(line)
        return ledger

    def open(self, run: str, wait_s: float | None = None) -> FileLedger:
        """The run with its lease, every line checked, of what a snapshot knows the bytes; a torn last line is
        cut (`healed` says how much).

        Raises: LedgerError `ledger.unknown_run`, `ledger.busy`, `ledger.tampered`, `ledger.readonly`.
        """
        folder = self._known(run)
        lease = Lease.take(folder / "lock", run, self.wait_s if wait_s is None else wait_s)
        try:
            opened = snapshots.opened(folder, run)
            ledger = self._hold(run, folder, lease, opened.scan, opened)
            if opened.scan.torn:
                ledger.healed = opened.scan.torn
                ledger._ragged = True
                ledger._cut_ragged()
            return ledger
        except OSError as error:
            lease.release()
            raise typed(error, "opening the ledger", folder / TRACE) from error
        except BaseException:
            lease.release()
            raise

    def genesis(self, run: str) -> Record:
        """The first record of a run, checked; none of the others. Raises: LedgerError as `reader`."""
        path = self._known(run) / TRACE
        try:
            with path.open("rb") as file:
                lines = (line for line in read_lines(file) if line.endswith(b"\n"))
                found = next(follow(lines, run), None)
        except OSError as error:
            raise typed(error, "reading the ledger", path) from error
        if found is None:
            raise tampered(run, 0, "there is no genesis")
        return found[0]

    def reader(self, run: str) -> FileLedger:
        """The run as it stands now, every line checked, without a lease; a torn tail is not shown."""
        folder = self._known(run)
        return FileLedger(run, folder, scan_file(folder / TRACE, run))

    def viewer(self, run: str) -> FileLedger:
        """The same, of what a snapshot knows only the bytes checked, as `open` does."""
        folder = self._known(run)
        opened = snapshots.opened(folder, run)
        return FileLedger(run, folder, opened.scan, opened=opened)

    def runs(self) -> list[str]:
        """Run ids that have a genesis, in order of their names (which begin with their time)."""
        if not self.root.is_dir():
            return []
        try:
            return sorted(
                path.name for path in self.root.iterdir() if path.name[0] != "." and (path / TRACE).is_file()
            )
        except OSError as error:
            raise typed(error, "listing runs", self.root) from error

    def intake(self) -> FileIntake:
        """A place to put a whole ledger together before it becomes a run (`spak.ledger.export.import_`)."""
        return FileIntake(self.root)

    def _known(self, run: str) -> Path:
        folder = self.root / check_run_id(run)
        if not (folder / TRACE).is_file():
            raise LedgerError("ledger.unknown_run", f"no run {run} in {self.root}", "`spak runs` lists them")
        return folder

    @staticmethod
    def _hold(
        run: str, folder: Path, lease: Lease, scan: Scan, opened: snapshots.Opened | None = None
    ) -> FileLedger:
        path = folder / TRACE
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise typed(error, "opening the ledger", path) from error
        return FileLedger(run, folder, scan, fd, lease, opened)


def _make_folder(folder: Path) -> bool:
    """True when the folder is ours and new."""
    try:
        make_folder(folder)
    except FileExistsError:
        return False
    except OSError as error:
        raise typed(error, "making the run folder", folder) from error
    return True


def _unmake_folder(folder: Path) -> None:
    """Take back a folder in which no run came to be."""
    try:
        (folder / "lock").unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        pass  # something of another is in it by now


def _write_genesis(folder: Path, run: str, line: bytes) -> int:
    """The first line: aside, fsync, rename, fsync of the folder and of its parent. Gives the fsyncs taken."""
    path, aside = folder / TRACE, folder / f".{TRACE}.new"
    if path.exists():
        raise LedgerError("ledger.exists", f"run {run} exists already", "`spak resume` continues it")
    try:
        try:
            with open_file(aside, "wb") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)
            fsync_folder(folder)
            fsync_folder(folder.parent)
        except BaseException:
            aside.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise typed(error, "writing the genesis", path) from error
    return 3
