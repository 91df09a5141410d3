"""The web part as a process: `python -m spakweb.home.serve PIPE SOCKET`, started by the supervisor.

Serves the ASGI application with uvicorn on the socket that it inherits, and ends when the pipe closes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading


def end_with_parent(pipe: int) -> None:
    """Ask this process to stop once the other end of the pipe is gone."""

    def wait() -> None:
        while True:
            try:
                if not os.read(pipe, 1):
                    break
            except OSError:
                break
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def main(pipe: int, listening: int) -> None:
    import uvicorn

    end_with_parent(pipe)
    config = uvicorn.Config(
        "spakweb.asgi:application",
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws_max_size=1024 * 1024,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listening)])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
