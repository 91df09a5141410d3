"""`spak mcp`: our tools for a client of MCP on standard input and output, or on a port, as one run.

The client (an editor, an agent) starts it and ends it with its input; on a port Ctrl+C ends it. Each call is
a proposal of a run of specs/guard/guest.spak, which works in a copy of the folder; `spak apply` brings home
what it changed.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from spak.cli import common
from spak.errors import UnavailableError, UsageError

WAIT_S = 20.0


def serve(folder: Path, wait: float, port: int | None, runs_dir: Path | None) -> int:
    """Serve until the input ends, or Ctrl+C; gives the exit code. Raises: UserError."""
    from spak import __version__, data
    from spak.cli import session
    from spak.cli.guard import SPEC
    from spak.guard.control import listening
    from spak.guard.offers import Tools
    from spak.guard.orders import answers
    from spak.guard.session import Served, advancing
    from spak.mcp.sdk_server import on_port, on_streams

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name the project's folder")
    held = session.begin(
        data.path(SPEC), common.runs_dir(runs_dir), mode="full_auto", workspace=folder,
        labels={"agent": "mcp"},
    )  # fmt: skip
    name = held.run.ledger.run
    made = Served(held.run)
    made.patience = wait
    failed: list[BaseException] = []

    def served() -> None:
        try:
            if port is None:
                on_streams("spak", __version__, Tools(made))
            else:
                on_port("spak", __version__, Tools(made), port, lambda url: common.say(f"spak: {url}"))
        except BaseException as error:
            failed.append(error)
        finally:
            made.end()

    try:
        common.say(f"spak: run {name}; each call is judged, and a transaction")
        with listening(held.folder, partial(answers, made)), advancing(made):
            threading.Thread(target=served, daemon=True).start()
            held.advance()
            while made.decide():
                held.advance()
        held.run.cancel()
        seen = held.save()
    finally:
        held.close()
    if failed and isinstance(failed[0], OSError):
        what = f"port {port} of this machine: {failed[0].strerror}"
        raise UnavailableError("mcp.port", what, "--port 0 takes a free one")
    if failed:
        raise failed[0]
    common.say(f"next: spak apply {name}")
    return common.EXIT[seen.state]
