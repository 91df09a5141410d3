"""A backup of all that counts, made while the platform works, and the way back.

    DEST/database.sqlite3 or database.dump   the database: SQLite's online backup, or `pg_dump -Fc`
    DEST/data/...                            the data folder: blobs, files of runs, keys
    DEST/files.jsonl                         a line for each file of it: path, size, SHA-256
    DEST/manifest.json                       written last: without it a backup is half and is refused

The database comes first, so that no record names a file which was not copied; a newer file than the database
knows does no harm. Every ledger is verified, in the copy where the copy can be read (SQLite). `restore` looks
at every file before it touches anything, fills an empty place, and puts aside what is there if it is told to.
Killed, it leaves the place as it was, or a marker with which nothing starts (restoring.py); the same
command begins anew then.
The folder of secrets and the settings in the environment are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import connection

from spak import canon, integrity
from spak.errors import LedgerError
from spak.inputs import open_input, read_text
from spak.ledger.blobs import no_lease
from spak.ledger.scan import fsync_folder
from spak.ledger.verify import Walk
from spakweb.ground.database import restoring
from spakweb.ground.errors import Refused
from spakweb.store.ledger import salvage
from spakweb.store.ledger.blobs import name_of
from spakweb.work.operate import postgres_dump
from spakweb.work.operate.up import only_one
from spakweb.work.worker import retention

VERSION = 1
MANIFEST, FILES, DATA = "manifest.json", "files.jsonl", "data"
SQLITE, DUMP = "database.sqlite3", "database.dump"
ASIDE, COMING = "before-restore-", ".restoring"
PASSING = frozenset(
    {"queue", "tmp", "static", "code", "up.lock", "worker.lock", "erase.lock", COMING}
    | {restoring.NAME, f".{restoring.NAME}"}
)
"""Names in the data folder that a backup leaves out: they are made again."""
NEW_PLACE = PASSING | {"secret_key"}
"""What a data folder holds that was never used: the settings make a key."""
CHUNK = 1 << 20
CHECK_S = 24 * 3600.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds, with the hashes of its parts."""

    made_at: str
    database: str
    sha256: str
    files_sha256: str
    files: int
    runs: int
    damaged: tuple[str, ...]
    """Ledgers that were damaged when the backup was made."""


def make(dest: Path) -> Manifest:
    """Raises: Refused `web.backup`, with nothing left in DEST."""
    dest, data = dest.absolute(), Path(settings.DATA_DIR).resolve()
    if dest.exists():
        raise _no_backup(f"{dest} is there already", "name a new folder")
    if dest.resolve().is_relative_to(data):
        raise _no_backup(f"{dest} lies in the data folder", "name a place elsewhere, on another disk")
    try:
        dest.mkdir(mode=0o700, parents=True)
        try:
            with retention.withheld():
                return _made(dest, data)
        except BaseException:
            shutil.rmtree(dest)
            raise
    except (OSError, sqlite3.Error) as error:
        raise _no_backup(f"it could not be written: {error}", "make room, or name another place") from error


def check(source: Path) -> Manifest:
    """Look at every file of a backup. Raises: Refused `web.backup` when it is not whole."""
    try:
        found = json.loads(read_text(source / MANIFEST))
        if found.pop("version") != VERSION:
            raise _no_backup(f"{source} is of another version", "restore it with the version that made it")
        manifest = Manifest(**{**found, "damaged": tuple(found["damaged"])})
        for name, expected in ((manifest.database, manifest.sha256), (FILES, manifest.files_sha256)):
            if _digest(source / name) != expected:
                raise _half(source, f"{name} is not what was written")
        for path, size, expected in _listed(source):
            file = source / DATA / path
            if not _is_file(file) or file.stat().st_size != size or _digest(file) != expected:
                raise _half(source, f"{DATA}/{path} is missing or is not what was written")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _half(source, f"{type(error).__name__}: {error}") from error
    return manifest


def restore(source: Path, replace: bool, report: Report) -> Manifest:
    """Nothing was changed, or the marker stays, after: Refused `web.backup`, `web.restore`, `web.running`."""
    manifest = check(source)
    report(f"{manifest.files} files and the database are as they were written, {manifest.made_at}")
    data, vendor = Path(settings.DATA_DIR), connection.vendor
    if (manifest.database == SQLITE) != (vendor == "sqlite"):
        raise _no_restore(f"the backup is of another kind of database than {vendor}", "set the address")
    with only_one(data, "restoring a backup"):
        file = Path(str(connection.settings_dict["NAME"])) if vendor == "sqlite" else None
        before = restoring.find(data)
        if before is None and not replace and _in_use(data, file):
            raise _no_restore(f"{data} or its database is in use", "--replace moves it aside")
        try:
            shutil.rmtree(data / COMING, ignore_errors=True)
            _copied_back(source / DATA, data / COMING)
            marker = before or restoring.Marker(f"{ASIDE}{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
            restoring.write(data, marker)
            if file is None:
                try:
                    postgres_dump.load(source / DUMP, replace or before is not None)
                except Refused:
                    if before is None:
                        restoring.remove(data)  # all of the dump or nothing: nothing was changed
                    raise
            connection.close()
            _out_of_the_way(data, file, marker, report)
            _put_in_place(source, data, file)
            restoring.remove(data)
        except OSError as error:
            raise _no_restore(f"it could not be written: {error}", "make room; then again") from error
    return manifest


# ---- private: making


def _made(dest: Path, data: Path) -> Manifest:
    damaged: list[str] = []
    if connection.vendor == "sqlite":
        database = SQLITE
        _copy_sqlite(Path(str(connection.settings_dict["NAME"])), dest / SQLITE)
    else:
        database = DUMP
        postgres_dump.dump(dest / DUMP)
    files = 0
    with (dest / FILES).open("w") as listing:
        (dest / DATA).mkdir(mode=0o700)
        for path, size, digest in _copied(data, dest / DATA):
            listing.write(json.dumps([path, size, digest]) + "\n")
            files += 1
        listing.flush()
        os.fsync(listing.fileno())
    found = _ledgers_of_copy(dest) if database == SQLITE else _ledgers_of_database()
    runs = 0
    for key, problem in found:
        runs += 1
        damaged += [f"{key}: {problem}"] if problem else []
    manifest = Manifest(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", database, _digest(dest / database),
        _digest(dest / FILES), files, runs, tuple(damaged),
    )  # fmt: skip
    body = {"version": VERSION, **{name: getattr(manifest, name) for name in Manifest.__slots__}}
    aside = dest / f".{MANIFEST}"
    with aside.open("w") as file:
        json.dump(body, file, indent=2)
        file.flush()
        os.sync()
    aside.rename(dest / MANIFEST)
    return manifest


def _copy_sqlite(file: Path, to: Path) -> None:
    """SQLite's own online backup: one moment of the database, while others write."""
    address = f"{file.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as old, closing(sqlite3.connect(to)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")
    to.chmod(0o600)
    found = integrity.check(to, CHECK_S)
    if found.problems:
        raise _no_backup(
            f"the database is damaged: {found.problems[0]}", "manage.py check_store; docs/deploy.md, Damage"
        )


def _ledgers_of_copy(dest: Path) -> Iterator[tuple[str, str]]:
    """Each run of the copied database with what is wrong with its ledger."""
    address = f"{(dest / SQLITE).resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as opened:
        blobs = _CopiedBlobs(opened, dest / DATA / "media")
        runs = opened.execute(
            "SELECT id, key, count, head FROM runs_run WHERE count > 0 AND deleted_at IS NULL ORDER BY id"
        ).fetchall()
        for pk, key, count, head in runs:
            walk = Walk(exported=False, blobs=blobs)
            lines = opened.execute("SELECT line FROM runs_runrecord WHERE run_id = ? ORDER BY seq", [pk])
            for (line,) in lines:
                walk.feed(bytes(line))
            report = walk.report()
            whole = report.ok and (report.records, report.head) == (count, head)
            first = report.problems[0].message if report.problems else "its records are not all there"
            yield key, "" if whole else first


def _ledgers_of_database() -> Iterator[tuple[str, str]]:
    for row in salvage.every_run():
        if isinstance(row, salvage.Unreadable):
            yield f"row {row.pk}", "cannot be read"
        else:
            found = salvage.problems(row)
            yield row.key, found[0] if found else ""


class _CopiedBlobs:
    """The blobs of a backup, from its files or from its database."""

    def __init__(self, opened: sqlite3.Connection, media: Path) -> None:
        self._opened, self._media = opened, media

    def get(self, digest: str) -> bytes:
        if settings.STORAGE == "database":
            query = "SELECT data FROM runs_storedfile WHERE name = ?"
            row = self._opened.execute(query, [name_of(digest)]).fetchone()
            data = None if row is None else bytes(row[0])
        else:
            file = self._media / name_of(digest)
            data = file.read_bytes() if file.is_file() else None
        if data is None or canon.digest(data) != digest:
            raise LedgerError("ledger.blob", f"blob {digest} is missing or damaged", "")
        return data

    def has(self, digest: str) -> bool:
        try:
            self.get(digest)
        except LedgerError:
            return False
        return True

    def put(self, data: bytes) -> str:
        raise no_lease()

    def flush(self) -> None:
        return

    def names(self) -> Iterator[str]:
        return iter(())


# ---- private: files


def _copied(data: Path, to: Path) -> Iterator[tuple[str, int, str]]:
    """Copy the data folder; what goes away meanwhile is left out. Gives path, size and hash of each file."""
    database = Path(str(connection.settings_dict["NAME"])).name if connection.vendor == "sqlite" else ""
    for folder, names, files in os.walk(data):
        here = Path(folder)
        inside = here.relative_to(data)
        if here == data:
            names[:] = [name for name in names if name not in PASSING and not name.startswith(ASIDE)]
            files = [name for name in files if name not in PASSING]
            files = [name for name in files if not database or not name.startswith(database)]
        for name in list(names):
            if (here / name).is_symlink():
                names.remove(name)
                files.append(name)
        for name in sorted(files):
            try:
                found = _copy(here / name, to / inside / name)
            except FileNotFoundError:
                continue
            if found is not None:
                yield str(inside / name), *found
        for name in names:
            _same_folder(here / name, to / inside / name)


def _copied_back(source: Path, to: Path) -> None:
    to.mkdir(mode=0o700)
    for folder, names, files in os.walk(source):
        here = Path(folder)
        inside = here.relative_to(source)
        for name in list(names):
            if (here / name).is_symlink():
                names.remove(name)
                files.append(name)
            else:
                _same_folder(here / name, to / inside / name)
        for name in files:
            _copy(here / name, to / inside / name)
        fsync_folder(to / inside)


def _same_folder(old: Path, new: Path) -> None:
    try:
        found = old.stat()
    except FileNotFoundError:
        return
    new.mkdir(exist_ok=True)
    _own(new, found)
    new.chmod(stat.S_IMODE(found.st_mode) | 0o700)


def _copy(old: Path, new: Path) -> tuple[int, str] | None:
    """Copy a file or a link with its owner, rights and times; gives size and hash of a file."""
    found = old.lstat()
    if stat.S_ISLNK(found.st_mode):
        new.symlink_to(old.readlink())
        _own(new, found)
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    hashing, size = hashlib.sha256(), 0
    with old.open("rb") as source, new.open("wb") as sink:
        while piece := source.read(CHUNK):
            hashing.update(piece)
            size += len(piece)
            sink.write(piece)
        sink.flush()
        os.fsync(sink.fileno())
    _own(new, found)
    new.chmod(stat.S_IMODE(found.st_mode))
    os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
    return size, hashing.hexdigest()


def _own(path: Path, found: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(path, found.st_uid, found.st_gid, follow_symlinks=False)


def _in_use(data: Path, file: Path | None) -> bool:
    if any(path.name not in NEW_PLACE and not _old(path) for path in data.iterdir()):
        return True
    return bool(postgres_dump.tables()) if file is None else file.exists()


def _out_of_the_way(data: Path, file: Path | None, marker: restoring.Marker, report: Report) -> None:
    """What was there goes into a folder of its own: it may hold what nobody else has. What a restore that was
    broken off had put in its place is removed."""
    used = [path for path in data.iterdir() if path.name not in PASSING and not _old(path)]
    if file is not None:
        used += [path for path in file.parent.glob(f"{file.name}*") if path not in used]
    if marker.moved:
        for path in used:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return
    for path in used:
        aside = path.parent / marker.aside
        aside.mkdir(mode=0o700, exist_ok=True)
        path.rename(_free(aside / path.name))
    for folder in {path.parent for path in used}:
        fsync_folder(folder / marker.aside)
        fsync_folder(folder)
        report(f"what was there is in {folder / marker.aside}")
    restoring.write(data, replaced(marker, moved=True))


def _free(path: Path) -> Path:
    """That name, or one with a number: nothing that was put aside is ever written over."""
    found, number = path, 1
    while os.path.lexists(found):
        found, number = path.with_name(f"{path.name}.{number}"), number + 1
    return found


def _put_in_place(source: Path, data: Path, file: Path | None) -> None:
    coming = data / COMING
    for path in sorted(coming.iterdir()):
        path.rename(data / path.name)
    coming.rmdir()
    fsync_folder(data)
    if file is not None:
        _copy(source / SQLITE, file)
        fsync_folder(file.parent)


def _old(path: Path) -> bool:
    return path.name.startswith(ASIDE)


def _listed(source: Path) -> Iterator[tuple[str, int, str]]:
    with (source / FILES).open() as lines:
        for line in lines:
            path, size, digest = json.loads(line)
            if Path(path).is_absolute() or ".." in Path(path).parts:
                raise ValueError(path)
            yield path, size, digest


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _digest(path: Path) -> str:
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _half(source: Path, why: str) -> Refused:
    return _no_backup(f"{source} is not a whole backup ({why})", "name another; nothing was changed")


def _no_backup(why: str, hint: str) -> Refused:
    return Refused("web.backup", why, hint)


def _no_restore(why: str, hint: str) -> Refused:
    return Refused("web.restore", why, hint)
