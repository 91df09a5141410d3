"""Whether the database of this platform is damaged: what `/readyz` says and error pages go by.

SQLite is checked in a thread, at the first question and then every CHECK_EVERY_S; a request that meets
damage tells of it at once. PostgreSQL looks after itself. `manage.py check_store` looks at everything.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from django.db import DatabaseError, connection

from spak import integrity

CHECK_EVERY_S = 600.0
CHECK_S = 60.0
"""How long a check may take."""
WAIT_S = 2.0
"""How long the first question waits for the first check."""
_WORDS = ("malformed", "not a database", "index corrupted", "invalid page in block")

log = logging.getLogger(__name__)


def file() -> Path | None:
    """The file of the database, if it has one."""
    name = str(connection.settings_dict["NAME"])
    return Path(name) if connection.vendor == "sqlite" and Path(name).is_file() else None


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the database's files are damaged."""
    return isinstance(error, DatabaseError) and any(word in str(error) for word in _WORDS)


class Health:
    """Whether the database is damaged, as far as queries have shown."""

    def __init__(self) -> None:
        self.problems: tuple[str, ...] = ()
        self._checked: float | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self) -> tuple[str, ...]:
        """What is known to be wrong; a check that is due goes on meanwhile."""
        where = file()
        if where is None:
            return self.problems
        with self._lock:
            due = self._checked is None or time.monotonic() - self._checked > CHECK_EVERY_S
            if due and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._check, args=(where,), name="damage", daemon=True)
                self._thread.start()
            thread = self._thread
        if self._checked is None and thread is not None:
            thread.join(WAIT_S)
        return self.problems

    def report(self, error: BaseException) -> None:
        """A request has met damage. It stays known until a check finds nothing."""
        self.problems = self.problems or (str(error),)

    def _check(self, where: Path) -> None:
        found = integrity.check(where, CHECK_S)
        if found.problems:
            log.error("the database is damaged: %s", found.problems[0])
        if found.problems or found.complete:
            self.problems = found.problems
        self._checked = time.monotonic()


health = Health()
