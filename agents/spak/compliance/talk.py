"""One process of a runtime, and what it says: a line of JSON at a time, within limits.

Takes a command line; gives messages, or a Fault whose text says why there is none: the process ended, said
nothing for too long, wrote a line too long, or one that is no message. Whatever a runtime does, the kit goes
on: it waits no longer than `wait_s`, holds a bounded part of what is written, and ends with the process all
that belongs to its group. It understands no message.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

WAIT_S = 60.0
MOST_LINE = 8 << 20
TAIL = 2_000
"""Seconds for the next line, bytes of it, and of what a process wrote to its standard error."""
POLL_S = 0.01
ENDED = os.WEXITED | os.WNOWAIT | os.WNOHANG
"""A process is reaped when it is closed: until then nobody else gets its id, which is also its group's."""


class Fault(Exception):
    """What a runtime did that is no answer."""


class Runtime:
    """One process. Close it."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, wait_s: float = WAIT_S
    ) -> None:
        """Raises: Fault where it cannot be started."""
        self.wait_s = wait_s
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise Fault(f"{argv[0]} cannot be started: {error.strerror}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._read = b""
        self._errors = b""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line. Raises: Fault where the process does not take it."""
        left = json.dumps(message).encode() + b"\n"
        ends = time.monotonic() + self.wait_s
        try:
            while left:
                self._ready(self._in, selectors.EVENT_WRITE, ends, "reads nothing")
                left = left[os.write(self._in, left) :]
        except BrokenPipeError:
            raise self._gone() from None

    def receive(self) -> dict[str, Any]:
        """The next message. Raises: Fault."""
        ends = time.monotonic() + self.wait_s
        while b"\n" not in self._read:
            self._ready(self._out, selectors.EVENT_READ, ends, "says nothing")
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise self._gone()
            self._read += chunk
            if len(self._read) > MOST_LINE:
                raise Fault(f"writes a line of more than {MOST_LINE} bytes")
        line, _, self._read = self._read.partition(b"\n")
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Fault(f"writes a line that is no JSON object: {shown(line)}")
        return found

    def kill(self) -> None:
        """SIGKILL to the runtime itself, as a crash; what it started is left to itself."""
        os.kill(self._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def end(self) -> None:
        """End the process and its group; whoever waits for it hears so."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and free what it held; idempotent."""
        self.end()
        self._process.wait()
        self._listener.join(1)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None and (stream is not self._process.stderr or not self._listener.is_alive()):
                stream.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, fd: int, event: int, ends: float, what: str) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, event)
            if not selector.select(max(ends - time.monotonic(), 0)):
                raise Fault(f"{what} for {self.wait_s:g} seconds")

    def _gone(self) -> Fault:
        ends = time.monotonic() + self.wait_s
        while (ended := os.waitid(os.P_PID, self._process.pid, ENDED)) is None:
            if time.monotonic() > ends:
                return Fault("closes its output and does not end")
            time.sleep(POLL_S)
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._listener.join(1)
        tail = self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return Fault(f"ends with {code}" + (f": {shown(tail.encode())}" if tail else ""))

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with suppress(OSError, ValueError):
            while chunk := os.read(self._process.stderr.fileno(), 1 << 16):
                self._errors = (self._errors + chunk)[-TAIL:]


def shown(data: bytes) -> str:
    """The beginning of what somebody wrote, for a report."""
    return ascii(data[:120].decode("utf-8", "replace"))[1:-1]
