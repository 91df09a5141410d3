"""The model of a source's code at one commit: an index (`spak.world`) and the texts of its files.

    DATA_DIR/code/KEY/index.sqlite   facts and edges
    DATA_DIR/code/KEY/files.zip      the source files that were parsed, without files of secrets

Takes and gives a key, which one reading has to itself: what it names never changes. No page opens a file of
a repository: a text is an entry of the archive, by the path that the index has. Both are a cache: where they
are gone, the code is read again. Where hosts share no disk, a copy travels through Django's storage.
"""

from __future__ import annotations

import io
import secrets
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage

from spak.errors import UsageError
from spak.world.ask import Model
from spak.world.store import Store
from spakweb.store.ledger import stored_files
from spakweb.store.sources.models import Source

FOLDER, INDEX, FILES = "code", "index.sqlite", "files.zip"
MADE = ".made-"
"""What the name of a folder begins with that is not whole yet."""
OLD_S = 86_400


def keep(make: Callable[[Path], None]) -> str:
    """Keep what `make` writes into an empty folder, whole or not at all; gives its key. Raises: OSError, and
    what `make` raises."""
    key = secrets.token_hex(16)
    with _making() as folder:
        make(folder)
        if settings.STORAGE == "database":
            stored_files.keep(_stored(key), [_packed(folder)])
        folder.rename(_folder(key))
    return key


def remove(key: str) -> None:
    """Idempotent."""
    if key:
        shutil.rmtree(_folder(key), ignore_errors=True)
        if settings.STORAGE == "database":
            default_storage.delete(_stored(key))


def tidy() -> None:
    """Remove what is over a day old and belongs to no source: what dead processes and other hosts left."""
    kept = set(Source.objects.exclude(code="").values_list("code", flat=True))
    for path in _top().iterdir():
        if path.name not in kept and path.stat().st_mtime < time.time() - OLD_S:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def opened(key: str) -> Iterator[Model | None]:
    """The model of a reading; None where it is gone, or of another version. Raises: UsageError `world.*`."""
    folder = _here(key)
    if folder is None:
        yield None
        return
    store = Store(folder / INDEX)
    try:
        trees = store.rows("SELECT root FROM tree")
        yield Model(store, Path(trees[0][0]), frozen=True) if trees else None
    finally:
        store.close()


def text(key: str, path: str) -> str | None:
    """The text of a file; None where it has none that may be shown."""
    folder = _here(key)
    if folder is None:
        return None
    try:
        with zipfile.ZipFile(folder / FILES) as archive:
            return archive.read(path).decode("utf-8", "replace")
    except (FileNotFoundError, KeyError, zipfile.BadZipFile):
        return None


def _here(key: str) -> Path | None:
    """The folder of a reading on this host, brought from where another host has put it."""
    if not key:
        return None
    folder = _folder(key)
    if folder.is_dir():
        return folder
    if settings.STORAGE != "database":
        return None
    try:
        with default_storage.open(_stored(key)) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    with _making() as made, zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in (INDEX, FILES):
            (made / name).write_bytes(archive.read(name))
        try:
            made.rename(folder)
        except OSError as error:  # another request was faster
            if not folder.is_dir():
                raise UsageError("world.store", f"{folder}: {error.strerror}", "make room") from error
    return folder


@contextmanager
def _making() -> Iterator[Path]:
    top = _top()
    with tempfile.TemporaryDirectory(dir=top, prefix=MADE) as place:
        folder = Path(place) / "whole"
        folder.mkdir(mode=0o700)
        yield folder


def _packed(folder: Path) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (INDEX, FILES):
            archive.write(folder / name, name)
    return held.getvalue()


def _top() -> Path:
    top = Path(settings.DATA_DIR) / FOLDER
    top.mkdir(parents=True, exist_ok=True, mode=0o700)
    return top


def _folder(key: str) -> Path:
    return _top() / key


def _stored(key: str) -> str:
    return f"{FOLDER}/{key}.zip"
