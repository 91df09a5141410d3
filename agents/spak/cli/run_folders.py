"""The folder of a run before its first record, and what killed processes left of such folders.

`making(folder)` holds a lock in it until the run is there or the folder is removed; `unfinished(root)`
names the folders without a first record that no process holds, and `remove` takes one away. A run of an older
version made its folder without that lock: it counts as held for a minute. `delete` takes away a run that
ended: its folder is renamed first, so that no half of a run is ever listed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spak.cli.recording import FILE as ANSWERS
from spak.errors import LedgerError, UsageError
from spak.files.disk import Disk
from spak.ledger.faults import typed
from spak.ledger.lease import Lease
from spak.ledger.private import make_folder
from spak.program.semantics import require_known
from spak.records import Authority, Kind, decode
from spak.workspace.copied import FILE as COPIED

STORE = "store"
LOCK = f"{STORE}/begin.lock"
"""In the one folder that is never copied into a workspace."""
TRACE = "trace.jsonl"
YOUNG_S = 60.0
GONE = ".deleted-"
"""What the name of a folder begins with that is being deleted."""
_TAIL = 1 << 20


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Makes the folder. What goes wrong inside removes it with all that is in it.

    Raises: LedgerError `ledger.readonly`, `ledger.full`, `ledger.io`.
    """
    try:
        fd = _make(folder)
    except OSError as error:
        raise typed(error, "making the run folder", folder) from error
    try:
        try:
            yield
        except BaseException:
            _remove(folder)
            raise
        (folder / LOCK).unlink(missing_ok=True)
    finally:
        os.close(fd)


def unfinished(root: Path) -> list[Path]:
    """Folders of runs that never began and that nobody makes any more. Raises: LedgerError."""
    try:
        below = sorted(root.iterdir()) if root.is_dir() else []
        gone = [path for path in below if path.name.startswith(GONE)]
        return gone + [path for path in below if path.name[0] != "." and _is_left(path)]
    except OSError as error:
        raise typed(error, "listing runs", root) from error


def remove(folder: Path) -> bool:
    """Remove one of them; False when a process holds it by now. Raises: LedgerError."""
    try:
        if folder.name.startswith(GONE):
            _remove(folder)
            return True
        with _held(folder) as held:
            if held and not (folder / TRACE).exists():
                _remove(folder)
                return True
            return False
    except OSError as error:
        raise typed(error, "removing an unfinished run", folder) from error


def delete(root: Path, run: str) -> None:
    """Delete a run that ended, whose end cannot be read, or that another kernel made.

    Raises: UsageError `usage.not_ended`; LedgerError `ledger.busy`, `ledger.readonly`, `ledger.io`.
    """
    folder = root / run
    lease = Lease.take(folder / "lock", run)
    try:
        if not _has_ended(folder / TRACE) and _is_ours(folder / TRACE):
            raise UsageError(
                "usage.not_ended", f"run {run} has not ended", f"end it first: spak cancel {run}"
            )
        gone = root / f"{GONE}{run}"
        folder.rename(gone)
        _remove(gone)
    except OSError as error:
        raise typed(error, "deleting a run", folder) from error
    finally:
        lease.release()


def _has_ended(trace: Path) -> bool:
    """Whether the last decision is an end; also when no decision can be read."""
    with trace.open("rb") as file:
        file.seek(max(trace.stat().st_size - _TAIL, 0))
        lines = file.read().splitlines(keepends=True)
    for line in reversed(lines):
        try:
            record = decode(line)
        except LedgerError:
            continue
        if record.authority != Authority.HOST:
            return record.kind == Kind.END
    return True


def _is_ours(trace: Path) -> bool:
    """Whether this kernel can end the run."""
    with trace.open("rb") as file:
        first = file.readline()
    try:
        require_known(decode(first).body["rules"])
    except (LedgerError, KeyError, TypeError):
        return False
    return True


def _make(folder: Path) -> int:
    """The lock of a new folder; again where somebody who cleaned up was quicker than the lock."""
    while True:
        make_folder(folder)
        try:
            (folder / STORE).mkdir()
            fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)


def _is_left(folder: Path) -> bool:
    if not folder.is_dir() or folder.is_symlink() or (folder / TRACE).exists():
        return False
    ours = {ANSWERS, COPIED, STORE, "lock", "workspace", "blobs", f".{TRACE}.new"}
    if any(path.name not in ours for path in folder.iterdir()):
        return False  # no folder of a run
    with _held(folder) as held:
        return held


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Whether nobody makes the folder; nobody does while this lasts."""
    try:
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield folder.exists() and abs(time.time() - folder.stat().st_mtime) > YOUNG_S
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)


def _remove(folder: Path) -> None:
    """With whatever rights its folders have; the lock goes last."""
    disk = Disk()
    with disk.folder(str(folder)) as at:
        for path in sorted(folder.iterdir(), key=lambda path: path.name == STORE):
            disk.remove(path.name, at)
    folder.rmdir()
