"""Whether a worker works: said by the worker itself, once every few seconds, in a file of the data folder.

`short(what)` is entered around work that takes seconds at most (a sweep, the choice of a run, a commit). A
thread of the worker looks every BEAT_S whether some of it has been under way for more than STUCK_S, writes
that or `ok` into `alive/HOST.PID`, and sets the file's time. `troubles()` reads the files of this host: a
worker that was stopped writes none, one whose pool is stuck says so. `manage.py check_worker` prints it and
is the health check of a worker's container. It asks no database: that may be what everybody waits for.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

BEAT_S = 5.0
SILENT_S = 30.0
STUCK_S = 90.0
"""More than a statement may take."""

log = logging.getLogger(__name__)

_under_way: dict[int, tuple[str, float]] = {}


@contextmanager
def short(what: str) -> Iterator[None]:
    """One at a time in each thread; an inner one counts as part of the outer one."""
    me = threading.get_ident()
    outer = me in _under_way
    if not outer:
        _under_way[me] = what, time.monotonic()
    try:
        yield
    finally:
        if not outer:
            _under_way.pop(me, None)


def stuck(now: float | None = None) -> list[str]:
    """What has been under way for too long in this process."""
    seen = time.monotonic() if now is None else now
    taken = [(what, int(seen - since)) for what, since in list(_under_way.values())]
    return [f"{what} for {seconds} s" for what, seconds in sorted(taken) if seconds > STUCK_S]


def folder() -> Path:
    """Where workers say that they live."""
    return Path(settings.DATA_DIR) / "alive"


def write(file: Path) -> None:
    """The file is written when what it says changes, else only its time: a full disk changes nothing."""
    text = "\n".join(stuck()) or "ok"
    if file.exists() and file.read_text() == text:
        os.utime(file)
        return
    aside = file.with_suffix(".new")
    aside.write_text(text)
    aside.replace(file)


def say_so(stop: threading.Event) -> None:
    """A thread that says how this process is, until `stop`; files of processes that died are removed."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in _files():
        if not _lives(file):
            file.unlink(missing_ok=True)
    threading.Thread(
        target=_say, args=(place / _name(os.getpid()), stop), name="worker-alive", daemon=True
    ).start()


def troubles(now: float | None = None) -> list[str]:
    """What is wrong with the workers of this host; empty when all is well."""
    files = [file for file in _files() if _lives(file)]
    if not files:
        return ["no worker of this data folder runs here"]
    found = []
    for file in files:
        silent = abs((time.time() if now is None else now) - file.stat().st_mtime)  # clocks are set back
        state = file.read_text()
        if silent > SILENT_S:
            found.append(f"worker {file.name}: not heard of for {int(silent)} s")
        elif state != "ok":
            found.append(f"worker {file.name}: {state}")
    return found


def _say(file: Path, stop: threading.Event) -> None:
    logged = ""
    while True:
        try:
            write(file)
            logged = ""
        except OSError as error:
            if str(error) != logged:
                log.warning("the worker cannot say how it is: %s", error)
            logged = str(error)
        if stop.wait(BEAT_S):
            file.unlink(missing_ok=True)
            return


def _name(pid: int) -> str:
    return f"{os.uname().nodename}.{pid}"


def _files() -> list[Path]:
    """Those of this host."""
    host = os.uname().nodename
    found = folder().glob(f"{host}.*")
    return sorted(file for file in found if file.name[len(host) + 1 :].isdigit())


def _lives(file: Path) -> bool:
    return Path("/proc", file.name.rpartition(".")[2]).exists()
