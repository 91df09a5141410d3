"""Django's storage in the database: one row for each file, for hosts that share no disk.

SPAK_WEB_STORAGE=database chooses it. Blobs are named by their content, so a name that is taken holds the same
bytes already; nothing is changed. Files are read and written whole.
"""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage
from django.db import DatabaseError, OperationalError, connection

from spakweb.ground.database.lock_wait import passing
from spakweb.store.runs.models import StoredFile

ROOM = 1 << 20
"""Bytes that must be free in the data folder; with fewer runs cannot go on."""
FULL = "the disk of the server is full; the run continues when there is room"


def no_room() -> bool:
    """Whether the data folder's disk has less than ROOM bytes left."""
    try:
        found = os.statvfs(settings.DATA_DIR)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < ROOM


def is_full(error: DatabaseError) -> bool:
    """Whether the database had no room. SQLite says `disk I/O error` where a mapped file cannot grow."""
    if not isinstance(error, OperationalError):
        return False
    message = str(error)
    of_postgres = getattr(error.__cause__, "sqlstate", "") == "53100"
    return of_postgres or "is full" in message or ("disk I/O error" in message and no_room())


class DatabaseStorage(Storage):
    """Files in rows of the database, where hosts share no disk."""

    def _open(self, name: str, mode: str = "rb") -> File:
        data = StoredFile.objects.filter(name=name).values_list("data", flat=True).first()
        if data is None:
            raise FileNotFoundError(name)
        return ContentFile(bytes(data), name)

    def _save(self, name: str, content: Any) -> str:
        file = StoredFile(name=name, data=content.read())
        for last in (False, True):  # a stopped process may be about to store the same bytes
            try:
                StoredFile.objects.bulk_create([file], ignore_conflicts=True)
                break
            except DatabaseError as error:
                if last or connection.in_atomic_block or not passing(error):
                    raise
                connection.close()
        return name

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """The name itself: it says what is in the file."""
        return name

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        StoredFile.objects.filter(name=name).delete()

    def exists(self, name: str) -> bool:
        """Whether a file exists."""
        return StoredFile.objects.filter(name=name).exists()

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return len(self._open(name).read())
