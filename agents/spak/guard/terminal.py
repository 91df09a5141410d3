"""The terminal of a person and that of a guarded agent, joined: what is typed goes in, what it writes comes
out.

Takes the master of the agent's terminal; ends when nothing writes there any more. Sequences that do more
than draw (title, clipboard, links, and all other strings that a terminal obeys) do not come out. Where the
agent suspends itself, so does this process, and a shell's `fg` brings both back.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

_CHUNK, _LAST_S, _LOOK_S = 1 << 16, 5.0, 0.25
_STRINGS = (b"]", b"P", b"X", b"^", b"_")
"""After ESC: a string for the terminal itself (OSC, DCS, SOS, PM, APC). Source: ECMA-48, 8.3."""
_C1 = (b"\xc2\x90", b"\xc2\x98", b"\xc2\x9d", b"\xc2\x9e", b"\xc2\x9f")
"""The same as single characters, in UTF-8."""

_ANSWER = re.compile(rb"\x1bP[^\x1b]*\x1b\\|\x1b\[[?>][\d;]*[a-z]")
"""A terminal's answer about its name and its parts (DCS, DA). Source: xterm's control sequences."""


class Drawing:
    """What an agent writes, without strings for the terminal; a sequence may come in pieces.

    A terminal draws control characters that it finds within a sequence and goes on with it. So one that has
    begun is held until it is known which it is: what is taken out never joins what is left."""

    def __init__(self) -> None:
        self._inside, self._held = False, b""

    def feed(self, data: bytes) -> bytes:
        """What of it may be drawn."""
        made = bytearray()
        for value in data:
            one, held = bytes((value,)), self._held
            two = held + one
            if one in (b"\x1b", b"\xc2"):
                self._held = one
            elif self._inside:
                self._held = b""
                self._inside = not (two in (b"\x1b\\", b"\xc2\x9c") or one in (b"\x07", b"\x18", b"\x1a"))
            elif (held == b"\x1b" and one in _STRINGS) or two in _C1:
                self._held, self._inside = b"", True
            elif held == b"\x1b" and (value < 0x20 or value == 0x7F):
                made += one
                self._held = b"" if one in (b"\x18", b"\x1a") else held
            else:
                self._held = b""
                made += two
        return bytes(made)


class Suspends(Protocol):
    """What an agent is asked."""

    def suspended(self) -> bool:
        """Whether it has suspended itself."""

    def go_on(self) -> None:
        """Wake it."""


def fitted(master: int) -> None:
    """Give the agent's terminal the size of the person's."""
    with suppress(OSError):
        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)


@contextmanager
def joined(master: int, agent: Suspends) -> Iterator[None]:
    """While entered both are one; for the main thread, as signals are."""
    with _raw() as before, _resized(master) as fit:

        def suspend() -> None:
            with _cooked(before):
                print("spak: suspended with its agent; fg brings both back", file=sys.stderr, flush=True)
                # this thread stops before it goes on; without a shell above us the kernel drops the signal
                signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
            agent.go_on()
            fit()

        def carry() -> None:
            _carry(master, agent, suspend)

        thread = threading.Thread(target=carry, daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join(_LAST_S)


def _carry(master: int, agent: Suspends, suspend: Callable[[], None]) -> None:
    """Both ways until the agent's side is closed. An agent that does not read holds up what is typed, and
    never what it draws."""
    drawing, person, typed = Drawing(), [sys.stdin.fileno()], b""
    os.set_blocking(master, False)
    while True:
        heard = [master, *([] if typed else person)]
        ready, free, _ = select.select(heard, [master] if typed else [], [], _LOOK_S)
        if not ready and agent.suspended():
            suspend()
        if free:
            with suppress(BlockingIOError):
                typed = typed[os.write(master, typed) :]
        if master in ready:
            try:
                data = os.read(master, _CHUNK)
            except OSError:  # EIO: the last process let go of it
                return
            if not data:
                return
            os.write(sys.stdout.fileno(), drawing.feed(data))
        elif ready:
            data = os.read(sys.stdin.fileno(), _CHUNK)
            typed = _typed(master, data)
            if not data:
                person = []


def _typed(master: int, data: bytes) -> bytes:
    """What a person typed: without the answers of a terminal that come when the program that asked for them
    reads lines again, as one does that suspends itself."""
    lines = termios.tcgetattr(master)[3] & termios.ICANON
    return _ANSWER.sub(b"", data) if lines else data


@contextmanager
def _cooked(before: list[Any]) -> Iterator[None]:
    """The person's terminal is as it was."""
    number = sys.stdin.fileno()
    raw = termios.tcgetattr(number)
    termios.tcsetattr(number, termios.TCSADRAIN, before)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, raw)


@contextmanager
def _raw() -> Iterator[list[Any]]:
    """The person's terminal hands on every key, and is as before, which it gives, afterwards."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setraw(number)
    try:
        yield before
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


@contextmanager
def _resized(master: int) -> Iterator[Callable[[], None]]:
    """The agent's terminal has the size of the person's; gives what sees to it."""

    def fit(*_: object) -> None:
        fitted(master)

    before = signal.signal(signal.SIGWINCH, fit)
    fit()
    try:
        yield fit
    finally:
        signal.signal(signal.SIGWINCH, before)
