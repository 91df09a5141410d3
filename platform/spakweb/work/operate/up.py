"""The supervisor behind `manage.py up`: one process that starts the parts of the platform and ends with them.

It takes a lock in the data folder (two on one folder would be two workers on one queue), binds the address
before anything starts, so that a taken port is told at once and a restarted part loses no caller, and then
watches its children: one that dies is started again, one that keeps dying ends the whole. A child holds the
reading end of a pipe of which the supervisor has the only writing end: however the supervisor dies, the pipe
closes and the child stops by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

from spak.ledger.private import FILE, keep_folder
from spakweb.ground.database.settings import DATABASE
from spakweb.ground.errors import Refused

STOP_S = 5.0
"""How long a child may take to stop before it is killed, and then to be gone: one that the system holds, over
a disk that does not answer, dies later, and is not waited for."""
MOST_STARTS, WITHIN_S = 5, 60.0
"""A child that was started so often within so many seconds is not started again."""


LOOK_S = 0.1
"""Between two looks at the children."""
MOST_PAUSE_S = 10.0
"""The longest pause before a child that keeps dying is started again."""


class Stopped(Exception):
    """Someone asked the supervisor to stop."""


@dataclass(slots=True)
class Child:
    """A part: its name and what starts it. PIPE and SOCKET in `argv` stand for the numbers of both."""

    name: str
    argv: tuple[str, ...]
    essential: bool = True
    """Without it nothing works: when it keeps dying, the whole ends."""
    process: subprocess.Popen[bytes] | None = None
    due: float = 0.0
    """When it is to be started again, while it is down."""
    starts: list[float] = field(default_factory=list)


def close_database(data: Path) -> None:
    """SQLite's files are ours alone, also in a folder that somebody else made. What SQLite makes beside the
    database gets its mode. Raises: OSError."""
    for name in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(data / f"{DATABASE}{name}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fchmod(fd, FILE)
            finally:
                os.close(fd)


@contextlib.contextmanager
def only_one(data: Path, address: str) -> Iterator[None]:
    """Holds the folder's lock. Raises: Refused `web.running`, `web.data`."""
    try:
        keep_folder(data)
        close_database(data)
        opened = (data / "up.lock").open("a+")
    except OSError as error:
        raise no_place(data, error) from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise Refused(
                "web.running",
                f"The platform is running already on {data}: {file.read().strip() or 'starting'}.",
                "Use that one, stop it with Ctrl+C, or name another folder in SPAK_WEB_DATA.",
            ) from error
        try:
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), f"process {os.getpid()}, {address}\n".encode())
        except OSError as error:
            raise no_place(data, error) from error
        yield


def no_place(data: Path, error: OSError) -> Refused:
    """The refusal of a data folder that cannot be written."""
    return Refused(
        "web.data",
        f"Nothing can be written to {data}: {error.strerror or error}.",
        "Make room there, or give its owner the right to write, or name another folder in SPAK_WEB_DATA.",
    )


def listen(host: str, port: int) -> socket.socket:
    """The bound socket. Raises: Refused `web.port`."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # connections inherit it; asyncio sets it only on its own: answers in two parts took 40 ms more
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            found.bind(where)
            found.listen(512)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise Refused(
            "web.port",
            f"{host} port {port} cannot be used: {error.strerror or error}.",
            f"Stop what uses it, or choose another port: SPAK_WEB_PORT, or manage.py up --port"
            f" {port + 1 if port < 65535 else 8000}.",
        ) from error
    return found


class Supervisor:
    """Starts children and keeps them until it is asked to stop."""

    def __init__(self, children: list[Child], listening: socket.socket, err: IO[str] | None = None) -> None:
        self.children = children
        self.listening = listening
        self.err = err or sys.stderr
        self.asked = ""
        """The signal that asked it to stop, which `look` tells: an exception out of a handler could come
        between any two steps of a library, and leave a lock held for good."""
        self.reading, self.writing = os.pipe()

    def __enter__(self) -> Supervisor:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has SIGHUP: it stays ignored
                signal.signal(number, self._stop)
        for child in self.children:
            self._start(child)
        return self

    def __exit__(self, *ignored: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        running = [child.process for child in self.children if child.process and child.process.poll() is None]
        for process in running:
            process.terminate()
        ends = time.monotonic() + STOP_S
        for process in running:
            try:
                process.wait(max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_S)
        os.close(self.writing)
        os.close(self.reading)

    def watch(self) -> NoReturn:
        """Until a Stopped, or a child that keeps dying. Raises: Refused `web.child`."""
        while True:
            self.look()
            time.sleep(LOOK_S)

    def look(self) -> None:
        """Start again whatever has ended. Raises: Stopped, Refused `web.child`."""
        if self.asked:
            raise Stopped(self.asked)
        for child in self.children:
            assert child.process is not None
            code = child.process.poll()
            if code is None:
                continue
            now = time.monotonic()
            if child.due:
                if now >= child.due:
                    child.due = 0.0
                    self._start(child)
                continue
            recent = [at for at in child.starts if now - at < WITHIN_S]
            if child.essential and len(recent) >= MOST_STARTS:
                raise Refused(
                    "web.child",
                    f"{child.name} ended {len(recent)} times in {WITHIN_S:.0f} seconds, last with {code}.",
                    "Its own words are above.",
                )
            print(f"up: {child.name} ended with {code}; starting it again", file=self.err, flush=True)
            child.due = now + min(MOST_PAUSE_S, 0.2 * len(recent) ** 2)

    def _start(self, child: Child) -> None:
        words = {"PIPE": str(self.reading), "SOCKET": str(self.listening.fileno())}
        child.starts.append(time.monotonic())
        child.process = subprocess.Popen(
            [words.get(word, word) for word in child.argv],
            stdin=subprocess.DEVNULL,
            pass_fds=(self.reading, self.listening.fileno()),
            start_new_session=True,  # Ctrl+C reaches the supervisor alone, which stops the children in order
        )

    def _stop(self, number: int, frame: object) -> None:
        self.asked = signal.Signals(number).name
