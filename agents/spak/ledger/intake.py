"""A ledger put together aside, which becomes a run as a whole or leaves nothing behind.

Takes exact lines and blobs that its caller has checked; `keep` makes them a run folder by one rename, `drop`
forgets them. What a killed process left aside is swept up by the next one: it holds no lock any more.
"""

from __future__ import annotations

import os
from pathlib import Path

from spak.errors import LedgerError
from spak.ledger.blobs import FileBlobs
from spak.ledger.chain import check_run_id
from spak.ledger.faults import typed
from spak.ledger.lease import Lease
from spak.ledger.private import keep_folder, open_file
from spak.ledger.scan import TRACE, fsync_folder, scan_file

_ASIDE = ".import-"
IMPORTED = "imported"
"""An empty file in the folder of a run that was imported."""


class FileIntake:
    """A run folder in the making under `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        from tempfile import mkdtemp

        try:
            keep_folder(root)
            _sweep(root)
            self._folder = Path(mkdtemp(prefix=_ASIDE, dir=root))
            self._lease = Lease.take(self._folder / "lock", "being imported")
            self._file = open_file(self._folder / TRACE, "wb")
            open_file(self._folder / IMPORTED, "wb").close()
        except OSError as error:
            raise typed(error, "importing", root) from error
        self._blobs = FileBlobs(self._folder / "blobs")

    def line(self, line: bytes) -> None:
        """Write the next line. Raises: LedgerError where the disk does not take it."""
        try:
            self._file.write(line)
        except OSError as error:
            raise typed(error, "importing", self._folder) from error

    def blob(self, data: bytes) -> None:
        """Write a blob."""
        self._blobs.put(data)

    def keep(self, run: str, count: int, head: str) -> None:
        """Make it the run `run`. A run with the same lines is there already: fine, and nothing changes.

        Raises: LedgerError `ledger.exists` when that id belongs to something else.
        """
        path = self._root / check_run_id(run)
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._blobs.flush()
            fsync_folder(self._folder)
            if not path.exists():
                self._folder.rename(path)
                fsync_folder(self._root)
                self._close()
                return
        except OSError as error:
            raise typed(error, "importing", path) from error
        self.drop()
        if not (path / TRACE).is_file():
            raise _taken(run, "a folder of that name that is no run")
        there = scan_file(path / TRACE, run)
        if (there.count, there.head) != (count, head):
            raise _taken(run, f"{there.count} records with another head")

    def drop(self) -> None:
        """Leave nothing behind; idempotent."""
        self._close()
        _remove(self._folder)

    def _close(self) -> None:
        try:
            self._file.close()
        except OSError:
            pass  # unwritten bytes of a file that is dropped
        self._lease.release()


def _taken(run: str, what: str) -> LedgerError:
    return LedgerError(
        "ledger.exists",
        f"run {run} already exists with different content ({what})",
        "import it into another folder with --runs-dir",
    )


def _sweep(root: Path) -> None:
    for path in root.glob(f"{_ASIDE}*"):
        try:
            lease = Lease.take(path / "lock", path.name)
        except LedgerError:
            continue  # somebody is importing it right now, or it is not ours to touch
        _remove(path)
        lease.release()


def _remove(folder: Path) -> None:
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)
