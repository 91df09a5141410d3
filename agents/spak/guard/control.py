"""What a person says to a guarded session from elsewhere: a Unix socket in the folder of its run.

The sandbox does not see that folder, so no agent speaks here. One line of JSON is asked, one is answered.
`asks` gives what waits for a person; an approval is signed by the person's command, the kernel verifies it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spak.errors import RunError, UserError

NAME = "guard-socket"
PATIENCE_S, LONGEST_S = 30.0, 900.0
"""Seconds for a line; and for what is done when the answer of a model that is under way has ended."""
LONGEST, LONGEST_ANSWER = 1 << 20, 1 << 30
"""Bytes of a request; and of an answer, which has the arguments of all that waits."""
Answers = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def ask(folder: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the session of that run's folder answers; None where no session runs.

    Raises: the session's own refusal, as RunError."""
    with _reachable(folder) as path, socket.socket(socket.AF_UNIX) as made:
        made.settimeout(LONGEST_S)
        try:
            made.connect(path)
        except OSError:
            return None
        try:
            made.sendall(json.dumps(request).encode() + b"\n")
            found = json.loads(_line(made, LONGEST_ANSWER))
        except (OSError, ValueError) as error:
            raise RunError(
                "guard.silent", "the session did not answer", "spak show says how it is"
            ) from error
    if "error" in found:
        raise RunError(*found["error"])
    return dict(found)


@contextmanager
def listening(folder: Path, answers: Answers) -> Iterator[None]:
    """While entered, requests are answered, each in a thread of its own."""
    listener = socket.socket(socket.AF_UNIX)
    (folder / NAME).unlink(missing_ok=True)
    with _reachable(folder) as path:
        listener.bind(path)
        (folder / NAME).chmod(0o600)
    listener.listen()
    threading.Thread(target=_accept, args=(listener, answers), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        (folder / NAME).unlink(missing_ok=True)


def _accept(listener: socket.socket, answers: Answers) -> None:
    while True:
        try:
            made, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(made, answers), daemon=True).start()


def _answer(made: socket.socket, answers: Answers) -> None:
    with made, suppress(OSError):
        made.settimeout(PATIENCE_S)
        try:
            request = json.loads(_line(made))
            if not isinstance(request, dict):
                raise ValueError("no object")
            made.settimeout(None)
            found = answers(request)
        except UserError as error:
            found = {"error": [error.code, error.message, error.hint]}
        except (ValueError, RecursionError):
            found = {"error": ["guard.request", "the request is not one line of JSON", ""]}
        made.sendall(json.dumps(found).encode() + b"\n")


def _line(made: socket.socket, longest: int = LONGEST) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n") and len(data) < longest:
        more = made.recv(1 << 16)
        if not more:
            break
        data += more
    return bytes(data)


@contextmanager
def _reachable(folder: Path) -> Iterator[str]:
    """A path of the socket that fits into an address, however long that of the folder is (unix(7): 108)."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/{NAME}"
    finally:
        os.close(fd)
