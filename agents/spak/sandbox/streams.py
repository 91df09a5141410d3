"""What is kept of a stream that may be endless: the head, the tail, the size and the hash of all of it."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode

from spak.ports import Heard, Stream


class Collector:
    """Feed it chunks; it holds at most about the limit and half of it again, however much comes. Who hears
    them too gets the number of the stream with each."""

    def __init__(self, limit_bytes: int, number: int = 1, heard: Heard | None = None) -> None:
        self._number, self._heard = number, heard
        self._head_max = limit_bytes - limit_bytes // 2
        self._tail_max = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._hash = hashlib.sha256()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if self._heard is not None and chunk:
            self._heard(self._number, chunk)
        self._size += len(chunk)
        self._hash.update(chunk)
        room = self._head_max - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk[max(0, len(chunk) - self._tail_max) :]
            if len(self._tail) > 2 * self._tail_max:
                del self._tail[: len(self._tail) - self._tail_max]

    def head(self, size: int) -> bytes:
        """The first bytes of what was kept."""
        return bytes(self._head[:size])

    def stream(self) -> Stream:
        """What was collected: beginning and end, size and hash of all."""
        tail = self._tail[max(0, len(self._tail) - self._tail_max) :]
        data = bytes(self._head) + bytes(tail)
        digest = urlsafe_b64encode(self._hash.digest())[:43].decode()
        return Stream(data, self._size, digest, truncated=self._size > len(data))
