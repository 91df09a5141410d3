"""Django's PostgreSQL; what it closes is kept for the next thread (spakweb.ground.database.engines.kept)."""

from __future__ import annotations

import select
import time
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from spakweb.ground.database.engines import kept


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread."""

    _opened = 0.0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """One that was kept, else a new one."""
        found = kept.shelf.take(self._name(), lives)
        if found is None:
            self._opened = time.monotonic()
            return super().get_new_connection(conn_params)
        self.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._opened = found.opened
        return found.connection

    def _close(self) -> None:
        if (
            self.connection is None
            or self.errors_occurred
            or self.in_atomic_block
            or self.connection.info.transaction_status != TransactionStatus.IDLE
            or not kept.shelf.give(self._name(), self.connection, self._opened)
        ):
            super()._close()

    def _name(self) -> str:
        found = self.settings_dict
        return f"{found['HOST']}:{found['PORT']}/{found['NAME']}"


def lives(connection: Any, ask: bool) -> bool:
    """Whether the server still is at the other end. One that ends a session sends something first."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        return False
    if ask:
        try:
            connection.execute("SELECT 1")
        except psycopg.Error:
            return False
    return True
