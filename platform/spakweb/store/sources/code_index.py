"""Models of code as it was read at one time: of a source at a commit, of a run's workspace at a root.

    index.sqlite   facts and edges (`spak.world`)
    files.zip      the source files that were parsed, without files of secrets

They are in a folder that one reading has to itself, and never change: `DATA_DIR/code/KEY` for a source,
`code/ROOT` in the folder of a run. No page opens a file of a repository: a text is an entry of the archive,
by the path that the index has. All of it is a cache: where it is gone, the code is read again. Where hosts
share no disk, a copy travels through Django's storage; that of a run is one of its blobs.
"""

from __future__ import annotations

import io
import secrets
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage

from spak.errors import LedgerError
from spak.world.ask import Model
from spak.world.store import Store
from spakweb.store.ledger import stored_files
from spakweb.store.ledger.blobs import StoredBlobs, unleased
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Source

FOLDER, INDEX, FILES = "code", "index.sqlite", "files.zip"
MADE = ".made-"
"""What the name of a folder begins with that is not whole yet."""
OLD_S = 86_400
DAMAGE = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
"""What opening or reading a damaged archive raises."""
Make = Callable[[Path], None]
"""Writes an index and texts into an empty folder."""


# of a source


def keep(make: Make) -> str:
    """Keep a reading of a source, whole or not at all; gives its key. Raises: OSError, what `make` raises."""
    key = secrets.token_hex(16)
    _make(_of_key(key), make)
    if _travels():
        stored_files.keep(_stored(key), [_packed(_of_key(key))])
    return key


def remove(key: str) -> None:
    """Remove a reading of a source. Idempotent."""
    if key:
        shutil.rmtree(_of_key(key), ignore_errors=True)
        if _travels():
            default_storage.delete(_stored(key))


def of_source(source: Source) -> Path | None:
    """The folder of what was last read of a source, on this host; None where there is none."""
    if not source.code:
        return None

    def brought() -> bytes | None:
        try:
            with default_storage.open(_stored(source.code)) as file:
                data: bytes = file.read()
        except FileNotFoundError:
            return None
        return data

    return _here(_of_key(source.code), brought)


def tidy() -> None:
    """Remove readings over a day old that no source has: what dead processes and other hosts left."""
    kept = set(Source.objects.exclude(code="").values_list("code", flat=True))
    for path in (Path(settings.DATA_DIR) / FOLDER).glob("*"):
        if path.name not in kept and path.stat().st_mtime < time.time() - OLD_S:
            shutil.rmtree(path, ignore_errors=True)


# of a run


def keep_of_run(run: Run, root: str, make: Make) -> str:
    """Keep a reading of a run's files at a root in the place of earlier ones; gives the blob of its copy,
    empty where hosts share a disk. Raises: OSError, LedgerError, and what `make` raises."""
    folder = folder_of(run.key) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    _make(folder / root, make)
    return unleased(run.pk).put(_packed(folder / root)) if _travels() else ""


def of_run(run: Run, root: str, blob: str) -> Path | None:
    """The folder of a reading of a run on this host; None where there is none."""
    if not root:
        return None

    def brought() -> bytes | None:
        try:
            return StoredBlobs(run.pk).get(blob)
        except LedgerError:
            return None

    return _here(folder_of(run.key) / FOLDER / root, brought)


# of both


@contextmanager
def opened(folder: Path | None, stale: int = 0) -> Iterator[Model | None]:
    """The model of a reading; None where it is gone, or of another version. `stale`: how many files have
    changed since. Raises: UsageError `world.*`."""
    if folder is None:
        yield None
        return
    store = Store(folder / INDEX)
    try:
        trees = store.rows("SELECT root FROM tree")
        yield Model(store, Path(trees[0][0]), stale=stale) if trees else None
    finally:
        store.close()


def text(folder: Path, path: str) -> str | None:
    """The text of a file; None where it has none that may be shown, or is damaged."""
    try:
        with zipfile.ZipFile(folder / FILES) as archive:
            return archive.read(path).decode("utf-8", "replace")
    except (*DAMAGE, KeyError):
        return None


def has_texts(folder: Path) -> bool:
    """Whether every text is there and undamaged."""
    try:
        with zipfile.ZipFile(folder / FILES) as archive:
            return archive.testzip() is None
    except DAMAGE:
        return False


def _here(folder: Path, brought: Callable[[], bytes | None]) -> Path | None:
    """A folder, brought from where another host has put it if it is not on this one."""
    if folder.is_dir():
        return folder
    data = brought() if _travels() else None
    if data is None:
        return None

    def lay_out(made: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in (INDEX, FILES):
                (made / name).write_bytes(archive.read(name))

    _make(folder, lay_out)
    return folder


def _make(folder: Path, make: Make) -> None:
    """Make a folder whole or not at all; where another process was faster its own stays."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=MADE) as place:
        whole = Path(place) / "whole"
        whole.mkdir(mode=0o700)
        make(whole)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _packed(folder: Path) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (INDEX, FILES):
            archive.write(folder / name, name)
    return held.getvalue()


def _travels() -> bool:
    return bool(settings.STORAGE == "database")


def _of_key(key: str) -> Path:
    return Path(settings.DATA_DIR) / FOLDER / key


def _stored(key: str) -> str:
    return f"{FOLDER}/{key}.zip"
