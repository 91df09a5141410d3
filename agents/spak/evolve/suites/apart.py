"""Runs the work for a sealed check in another sandbox, where no sealed file is in reach.

Takes how to start a command there, and gives the check a program, SPAK_WORK: `$SPAK_WORK python3 solution.py`
in the check runs `python3 solution.py` in a sandbox of its own: a copy of the work,
another user, no process in common. The check's standard input goes in; output and exit code come back over a
socket. All of it ends with the check.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spak import data
from spak.cancel import Cancelled, Token
from spak.ports import Outcome

Start = Callable[[tuple[str, ...], bytes, Token], Outcome]
"""Runs a command with this input in a sandbox of the work, until the token is set."""
MAX_BYTES = 8 << 20
"""Of a call: its words and its input."""
MAX_CALLS = 4
"""At the same time; more wait."""


@contextlib.contextmanager
def offered(folder: Path, python: str, start: Start) -> Iterator[Path]:
    """The program that a check finds under SPAK_WORK, in `folder`, which its sandbox has to show it."""
    program = folder / "work"
    guest = data.path("sandbox/guest/work_guest.py").read_text(encoding="utf-8")
    program.write_text(f"#!{python} -I\n{guest}", encoding="utf-8")
    program.chmod(0o755)
    folder.chmod(0o755)
    over, turns = Token(), threading.BoundedSemaphore(MAX_CALLS)

    class Call(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            try:
                asked = json.loads(self.rfile.readline(MAX_BYTES))
                words, given = tuple(map(str, asked["cmd"])), str(asked["stdin"]).encode("latin-1")
            except (ValueError, KeyError, TypeError):
                return
            with turns, contextlib.suppress(Cancelled, OSError):
                self.wfile.write(json.dumps(_answer(start(words, given, over))).encode() + b"\n")

    class Server(socketserver.ThreadingUnixStreamServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A check that went away hears nothing."""

    with Server(str(folder / "socket"), Call) as server:
        (folder / "socket").chmod(0o666)
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), name="spak-work", daemon=True)
        serving.start()
        try:
            yield program
        finally:
            over.set()
            server.shutdown()


def _answer(outcome: Outcome) -> dict[str, Any]:
    """What the program puts out; a command that did not end by itself exits with 125 and says why."""
    ended = outcome.status in ("exited", "crash")
    said = outcome.stderr.data.decode("latin-1") + ("" if ended else f"{outcome.status}: {outcome.detail}\n")
    return {"out": outcome.stdout.data.decode("latin-1"), "err": said, "exit": outcome.exit if ended else 125}
