"""Django's storage in the database: one row for each file, for hosts that share no disk.

SPAK_WEB_STORAGE=database chooses it. Blobs are named by their content, so a name that is taken holds the same
bytes already; nothing is changed or deleted. Files are read and written whole.
"""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage

from spakweb.runs.models import StoredFile

ROOM = 1 << 20
"""Bytes that must be free in the data folder; with fewer runs cannot go on."""
FULL = "the disk of the server is full; it goes on by itself when there is room"


def no_room() -> bool:
    try:
        found = os.statvfs(settings.DATA_DIR)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < ROOM


class DatabaseStorage(Storage):
    def _open(self, name: str, mode: str = "rb") -> File:
        data = StoredFile.objects.filter(name=name).values_list("data", flat=True).first()
        if data is None:
            raise FileNotFoundError(name)
        return ContentFile(bytes(data), name)

    def _save(self, name: str, content: Any) -> str:
        StoredFile.objects.bulk_create([StoredFile(name=name, data=content.read())], ignore_conflicts=True)
        return name

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """The name itself: it says what is in the file."""
        return name

    def exists(self, name: str) -> bool:
        return StoredFile.objects.filter(name=name).exists()

    def size(self, name: str) -> int:
        return len(self._open(name).read())
