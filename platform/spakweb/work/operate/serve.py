"""The web part as a process: `python -m spakweb.work.operate.serve PIPE SOCKET`, started by the supervisor.

Serves the ASGI application with uvicorn on the socket that it inherits, and ends when the pipe closes.
`manage.py serve` serves it likewise, without a supervisor.
"""

from __future__ import annotations

import gc
import socket
import sys

from spakweb.ground.child import end_with_parent

RARELY = (50_000, 20, 20)
"""When Python looks for circles of garbage. By its defaults that is a third of the time of an answer about a
long text: thousands of small objects, hardly a circle among them."""


def serve(listening: socket.socket) -> None:
    """Until SIGTERM. Streams that are open then end within a second; no address is written to a log, since
    some are secret."""
    import uvicorn

    config = uvicorn.Config(
        "spakweb.asgi:application",
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws_max_size=1024 * 1024,
        ws_per_message_deflate=False,  # of short messages it takes two fifths of the time of a socket
    )
    config.load()  # what stays is made before it is set aside
    gc.set_threshold(*RARELY)
    gc.freeze()
    uvicorn.Server(config).run(sockets=[listening])


def main(pipe: int, listening: int) -> None:
    """Serve on a listening socket until the parent process ends."""
    end_with_parent(pipe)
    serve(socket.socket(fileno=listening))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
