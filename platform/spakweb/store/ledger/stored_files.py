"""Files in Django's storage that are there whole or not at all, and durable: written aside, synced, renamed.

Takes a name and the bytes in pieces. Where the storage is no disk it takes a file whole or not at all by
itself. `tidy` removes what a process left that was killed in between. It knows no run and no row.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from spak.ledger.private import open_file
from spak.ledger.scan import fsync_folder

ASIDE = "."
OLD_S = 86_400


def keep(name: str, pieces: Iterable[bytes]) -> None:
    """Write it, in the place of what has that name. Raises: OSError, and then nothing was changed."""
    try:
        path = Path(default_storage.path(name))
    except NotImplementedError:
        default_storage.delete(name)
        default_storage.save(name, ContentFile(b"".join(pieces)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{ASIDE}{path.name}.{secrets.token_hex(4)}")
    try:
        with open_file(aside, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    for folder in path.parents[:2]:
        fsync_folder(folder)


def tidy(folder: str) -> None:
    """Remove what was written aside there more than a day ago. Raises: OSError."""
    for path in _on_disk(folder):
        if path.name.startswith(ASIDE):
            path.unlink(missing_ok=True)


def old(folder: str) -> list[str]:
    """The names of whole files there that are more than a day old; none where the storage is no disk."""
    return [path.name for path in _on_disk(folder) if not path.name.startswith(ASIDE)]


def _on_disk(folder: str) -> Iterator[Path]:
    """What has been there for more than a day."""
    try:
        with os.scandir(default_storage.path(folder)) as entries:
            found = [Path(one.path) for one in entries if one.stat().st_mtime < time.time() - OLD_S]
    except (FileNotFoundError, NotImplementedError):
        return iter(())
    return iter(found)
