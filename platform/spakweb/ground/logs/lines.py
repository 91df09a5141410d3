"""Lines of the log as JSON, with what they belong to: the run that is advanced, the request that is answered.

`of_run` is entered around the work of a run; requests have their id from ground/audit/middleware.py, the one
that `X-Request-Id` answers with. One object a line: `at`, `level`, `logger`, `message`, and where there is
one `run`, `request` and `error`, a traceback. Tokens are taken out as from plain lines.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from spakweb.ground.logs.redact import without_tokens

_run: ContextVar[str] = ContextVar("run", default="")


@contextmanager
def of_run(key: str) -> Iterator[None]:
    """What is logged meanwhile, in this thread, belongs to that run."""
    token = _run.set(key)
    try:
        yield
    finally:
        _run.reset(token)


class Ids(logging.Filter):
    """Gives each line the run and the request that it belongs to."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always lets it through."""
        from spakweb.ground.audit.middleware import current

        answered = getattr(record, "request", None)  # Django says so of what it logs when all is answered
        record.run_id = _run.get()
        record.request_id = getattr(answered, "spak_id", "") or current().request
        return True


class Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without tokens."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "run": getattr(record, "run_id", ""),
            "request": getattr(record, "request_id", ""),
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return without_tokens(json.dumps({name: value for name, value in found.items() if value}))
