"""Registering runners and hearing from them.

A worker calls `heartbeat` every BEAT_S seconds; `Beating` is a thread that does. A runner on another host is
registered first (`manage.py runner add`), which gives its token once; a name that is not registered is taken
without one only where the installation is one's own (not in production).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from spakweb.ground import clock
from spakweb.ground.errors import Refused
from spakweb.store.fleet.models import SILENT, Runner
from spakweb.store.ledger.store import leases
from spakweb.work.fleet import devices as nvml

BEAT_S = 10.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}")

log = logging.getLogger(__name__)


def register(name: str, queues: Sequence[str], labels: Sequence[str] = ()) -> tuple[Runner, str]:
    """A runner of that name and its token, which is told this once; an older token ends.

    Raises: Refused `web.runner`.
    """
    token = secrets.token_urlsafe(32)
    values = {"queues": _words(queues), "labels": _words(labels), "token_hash": _hash(token)}
    made, _ = Runner.objects.update_or_create(name=_name(name), defaults=values)
    return made, token


def withdraw(name: str) -> bool:
    """Forget a runner; its token ends with it. False when there was none."""
    return bool(Runner.objects.filter(name=name).delete()[0])


def heartbeat(
    name: str,
    *,
    process: str,
    queues: Sequence[str],
    slots: int = 1,
    labels: Sequence[str] = (),
    token: str = "",
    devices: Sequence[dict[str, Any]] | None = None,
) -> Runner:
    """The runner lives; `process` is what its leases are held by, `devices` are read here if not given.

    Raises: Refused `web.runner` (403): no such runner, or a token that is not its own.
    """
    known = Runner.objects.filter(name=_name(name)).first()
    if known is None and settings.PRODUCTION:
        raise Refused("web.runner", f"No runner {name!r} is registered.", "manage.py runner add", 403)
    if known is not None and known.token_hash and not hmac.compare_digest(known.token_hash, _hash(token)):
        raise Refused("web.runner", f"This is not the token of {name!r}.", "manage.py runner add", 403)
    values = {
        "queues": _words(queues),
        "seen_at": clock.now(),
        "process": process[:80],
        "slots": max(1, slots),
        "devices": list(nvml.readings() if devices is None else devices),
    }
    if labels or known is None:
        values["labels"] = _words(labels)
    if known is None:
        return Runner.objects.update_or_create(name=name, defaults=values)[0]
    if not Runner.objects.filter(pk=known.pk, token_hash=known.token_hash).update(**values):
        raise Refused("web.runner", f"The runner {name!r} was removed.", "manage.py runner add", 403)
    return Runner.objects.get(pk=known.pk)


def leave(process: str) -> None:
    """The runner of that process ends in good order: nobody is to think that it is free."""
    gone = clock.now() - SILENT
    Runner.objects.filter(process=process).update(process="", seen_at=gone)


def beat_here(stop: threading.Event, queues: Sequence[str], slots: int) -> Beating:
    """Heartbeats of this process as SPAK_WEB_RUNNER, until `stop` is set."""
    row = {"process": leases.process, "queues": list(queues), "slots": slots}
    thread = Beating(stop, settings.RUNNER_NAME, token=settings.RUNNER_TOKEN, **row)
    thread.start()
    return thread


class Beating(threading.Thread):
    """Heartbeats of one runner until `stop` is set. What goes wrong is said once and tried again."""

    def __init__(self, stop: threading.Event, name: str, **row: Any) -> None:
        super().__init__(name="fleet-heartbeat", daemon=True)
        self._stop_asked, self._name, self._row = stop, name, row

    def run(self) -> None:
        """Send heartbeats until the process ends; a failure is logged once."""
        logged = ""
        while True:
            try:
                heartbeat(self._name, **self._row)
                logged = ""
            except (Refused, DatabaseError) as error:
                if str(error) != logged:
                    log.warning("no heartbeat: %s", error)
                logged = str(error)
            finally:
                close_old_connections()
            if self._stop_asked.wait(BEAT_S):
                return


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise Refused(
            "web.runner", f"{name[:40]!r} is not a name of a runner.", "Letters, digits and . _ : - only."
        )
    return name


def _words(words: Sequence[str]) -> list[str]:
    return sorted({_name(word) for word in words})


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
