"""A process that a supervisor started, and that ends when the supervisor does."""

from __future__ import annotations

import os
import signal
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
