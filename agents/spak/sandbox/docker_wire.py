"""What goes to the guest of a container and what comes back (sandbox/base/guest.c): bytes only, no engine.

`pack` is one job as the guest reads it; `Frames` takes the engine's stream of both outputs apart; `Held`
keeps back the guest's last words, which the job cannot forge, and `report` reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spak.ports import Limits
from spak.sandbox.streams import Collector

TRAILER = 64
_KINDS = frozenset("xstce")


@dataclass(frozen=True, slots=True)
class Report:
    """How the guest saw the job end; `kind` is one of the letters in the guest's source."""

    kind: str
    number: int
    cpu_ms: int
    left: bool
    """Something of the job outlives it: the container is not used again."""


def pack(
    argv: Sequence[str],
    env: Mapping[str, str],
    limits: Limits,
    processes: int,
    nonce: str,
    filters: Iterable[bytes],
    emptied: Iterable[str],
    folder: str = "/ws",
) -> bytes:
    """One job, with the length in front; the nonce has 32 characters."""
    lists = (
        list(filters),
        [_bytes(word) for word in argv],
        [_bytes(f"{name}={value}") for name, value in env.items()],
        [_bytes(path) for path in emptied],
        [_bytes(folder)],
    )
    wall_ms = min(int(1000 * limits.wall_s), 0xFFFFFFFF)
    head = (wall_ms, limits.cpu_s, processes, limits.open_files, limits.file_bytes)
    body = nonce.encode() + struct.pack("<IIIIQ", *head) + b"".join(map(_list, lists))
    return struct.pack("<I", len(body)) + body


def report(text: bytes, nonce: str) -> Report | None:
    """The guest's last words, None when they are not its own."""
    words = text.decode("ascii", "replace").split()
    if len(text) != TRAILER or len(words) != 5 or words[0] != nonce or words[1] not in _KINDS:
        return None
    return Report(words[1], int(words[2]), int(words[3]), words[4] != "0")


class Frames:
    """The engine's stream: a head of eight bytes (which output, length) before each piece."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._rest = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Pieces with the number of their output, as far as they are there."""
        at = 0
        while at < len(data):
            if not self._rest:
                part = data[at : at + 8 - len(self._head)]
                self._head += part
                at += len(part)
                if len(self._head) == 8:
                    self._rest = int.from_bytes(self._head[4:], "big")
                    if not self._rest:
                        self._head.clear()
                continue
            piece = data[at : at + self._rest]
            at += len(piece)
            self._rest -= len(piece)
            yield self._head[0], piece
            if not self._rest:
                self._head.clear()


class Held:
    """Passes everything on to a collector but the last bytes, which are the guest's."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.last = b""

    def feed(self, chunk: bytes) -> None:
        """Take bytes and hand on all but the last, which may be the trailer."""
        held = self.last + chunk
        if len(held) > TRAILER:
            self._collector.feed(held[:-TRAILER])
        self.last = held[-TRAILER:]

    def let_go(self) -> None:
        """They were the job's own: the guest said nothing."""
        self._collector.feed(self.last)
        self.last = b""


def _list(items: list[bytes]) -> bytes:
    return struct.pack("<I", len(items)) + b"".join(struct.pack("<I", len(item)) + item for item in items)


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogateescape")
