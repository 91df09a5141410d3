"""The embedded broker: Celery messages as files in one folder, for processes of one machine.

    QUEUE_DIR/<queue>/<time>_<id>.msg     one message; names sort by the time it was put there
    QUEUE_DIR/new/                        messages that are being written
    QUEUE_DIR/unreadable/                 files that hold no message, moved here with a warning

A message is written in `new` and renamed into its queue: a reader sees all of it or nothing, and a writer
that dies leaves nothing in the queue. Nothing is synced: messages may be lost; the sweep of runs sends
others. A reader owns a message once it has removed the file. A file that holds no message is never given
to the consumer, which would end. Bindings of queues are kept in memory: every process declares its own.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import deque
from pathlib import Path
from queue import Empty
from typing import Any
from urllib.parse import quote

from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

from spak.files.faults import is_fault
from spak.inputs import open_input

SCHEME = "spakfiles"
SUFFIX = ".msg"
NEW, UNREADABLE = "new", "unreadable"
LEFT_S = 3600.0
"""A file in `new` that is older was left by a writer that died."""

log = logging.getLogger(__name__)


class Channel(virtual.Channel):
    """The queues of one connection, as folders of messages."""

    def __init__(self, connection: Any, **named: Any) -> None:
        super().__init__(connection, **named)
        self.folder = Path(connection.client.transport_options["folder"])
        self._listed: dict[str, deque[str]] = {}
        """Names of messages that the last look at a queue's folder found, oldest first."""
        for name in (NEW, UNREADABLE):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clean_up()

    def _put(self, queue: str, message: Any, **named: Any) -> None:
        """Raises: OSError, with nothing left in the queue."""
        text = dumps(message).encode()
        place = self._place(queue)
        name = f"{time.monotonic_ns():020}_{uuid.uuid4().hex}{SUFFIX}"
        aside = self.folder / NEW / name
        try:
            aside.write_bytes(text)
            try:
                aside.rename(place / name)
            except FileNotFoundError:
                place.mkdir(exist_ok=True, mode=0o700)
                aside.rename(place / name)
        except OSError:
            aside.unlink(missing_ok=True)
            raise

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest message that nobody else takes. Raises: queue.Empty."""
        place = self._place(queue)
        names = self._listed.setdefault(queue, deque())
        if not names:
            names.extend(_names(place))
        while names:
            name = names.popleft()
            message = self._take(place / name)
            if message is not None:
                return message
        raise Empty

    def _take(self, file: Path) -> Any:
        """What the file holds, which is removed; None when somebody else has it or it holds no message."""
        try:
            with open_input(file) as opened:
                text = opened.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            if not is_fault(error):
                self._set_aside(file, error.strerror or str(error))
            return None  # else it stays, and is read when the fault has passed
        try:
            message = loads(text)
            hash(self.Message(message, channel=self).delivery_tag)  # a consumer keeps messages by it
        except Exception as error:  # whatever is wrong with it, the worker must not die of it
            self._set_aside(file, type(error).__name__)
            return None
        try:
            file.unlink()
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("message %s cannot be taken: %s", file.name, error.strerror)
            return None
        return message

    def _set_aside(self, file: Path, why: str) -> None:
        try:
            file.rename(self.folder / UNREADABLE / file.name)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("file %s in the queue cannot be moved: %s", file.name, error.strerror)
            return
        log.warning("file %s in the queue held no message (%s); it is kept in %s", file.name, why, UNREADABLE)

    def _size(self, queue: str) -> int:
        return len(_names(self._place(queue)))

    def _purge(self, queue: str) -> int:
        purged = 0
        for name in _names(self._place(queue)):
            try:
                (self._place(queue) / name).unlink()
                purged += 1
            except FileNotFoundError:
                continue
        return purged

    def _place(self, queue: str) -> Path:
        """The queue's folder; its name is never one of ours, nor one that leads elsewhere."""
        return self.folder / f"q-{quote(queue, safe='')}"

    def _clean_up(self) -> None:
        """Remove what writers that died have left."""
        old = time.time() - LEFT_S
        for file in (self.folder / NEW).iterdir():
            try:
                if file.stat().st_mtime < old:
                    file.unlink()
            except OSError:
                continue


class Transport(virtual.Transport):
    """Celery's transport over files, for one machine without Redis."""

    Channel = Channel
    global_state = virtual.BrokerState()
    default_port = 0
    driver_type = SCHEME
    driver_name = SCHEME

    def __init__(self, client: Any, **named: Any) -> None:
        super().__init__(client, **named)
        self.state = self.global_state
        self.polling_interval = client.transport_options.get("polling_interval", 1.0)

    def driver_version(self) -> str:
        """The version of the files' format."""
        return "1"


def register() -> None:
    """Let addresses `spakfiles://` mean this broker."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"


def _names(place: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(place) if name.endswith(SUFFIX))  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:  # a worker outlives it
        if not is_fault(error):
            raise
        log.warning("queue %s cannot be read: %s", place.name, error.strerror)
        return []
