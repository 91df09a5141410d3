"""Django's SQLite; what it closes is kept for the next thread (spakweb.ground.database.engines.kept)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

from spakweb.ground.database.engines import kept


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread."""

    _opened = 0.0
    _file = ""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """One of the file that is there now, else a new one."""
        self._file = self._name()
        found = kept.shelf.take(self._file, lambda connection, ask: True)
        if found is None:
            self._opened = time.monotonic()
            made = super().get_new_connection(conn_params)
            self._file = self._name()  # it may have made the file
            return made
        self._opened = found.opened
        return found.connection

    def _close(self) -> None:
        if (
            self.connection is None
            or self.errors_occurred
            or self.in_atomic_block
            or self.connection.in_transaction
            or not self._file
            or not kept.shelf.give(self._file, self.connection, self._opened)
        ):
            super()._close()

    def _name(self) -> str:
        """The file and not its name, which a restore gives to another one; empty where there is no file."""
        try:
            found = Path(self.settings_dict["NAME"]).stat()
        except OSError:
            return ""
        return f"{found.st_dev}/{found.st_ino}"
