"""Servers that answer without end: what they can make a client read, hold and unpack is bounded."""

from __future__ import annotations

import gzip
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from process_kit import WAIT_S
from spak.errors import UnavailableError
from spak.llm.anthropic_ import Anthropic
from spak.llm.ollama import Ollama
from spak.llm.openai_compatible import OpenAICompatible
from spak.llm.settings import Choice
from spak.ports import Prompt
from spak.secrets.secret import Secret

KINDS: dict[str, Any] = {
    "openai_compatible": OpenAICompatible,
    "ollama": Ollama,
    "anthropic": Anthropic,
}
MOST_READ = 32 << 20
"""Far above a limit of ours and what the sockets of this machine hold; far below what is offered."""
OFFERED = 256 << 20

ENDLESS: dict[str, tuple[bytes, bytes, str]] = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"y" * 1000 + b"\r\n", "llm.cut"),
    "one header": (b"HTTP/1.1 200 OK\r\nX-A: ", b"y" * 65_536, "llm.cut"),
    "error": (b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\n\r\n", b"a" * 65_536, "llm.server"),
    "refusal": (b"HTTP/1.1 400 X\r\nContent-Type: text/plain\r\n\r\n", b"a" * 65_536, "llm.rejected"),
}
"""What a reply begins with, what follows again and again, and the code that it ends with."""


@contextmanager
def served(head: bytes, again: bytes, offered: int) -> Iterator[tuple[str, queue.SimpleQueue[int]]]:
    """A server that answers each request so; its address, and the bytes that each client took."""
    taken: queue.SimpleQueue[int] = queue.SimpleQueue()

    def answer(client: socket.socket) -> None:
        sent = 0
        with client:
            client.settimeout(10)
            try:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += client.recv(65_536)
                client.sendall(head)
                while again and sent < offered:
                    client.sendall(again)
                    sent += len(again)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65_536):
                    pass  # to close on what was not read would be a reset, and the reply be lost
            except OSError:
                pass
            finally:
                taken.put(sent)

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", taken
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def refused(kind: str, url: str) -> UnavailableError:
    base = url + ("/v1" if kind == "openai_compatible" else "")
    limits: dict[str, Any] = {"timeout_s": 20.0, "silence_s": 10.0, "retries": 0}
    choice = Choice(mode=kind, model="m", base_url=base, secret=Secret("topsecret-0123456789"), **limits)
    prompt = Prompt("p", ({"role": "user", "name": "prompt", "text": "hello"},), max_tokens=5)
    with pytest.raises(UnavailableError) as caught:
        KINDS[kind](choice).answer(prompt)
    return caught.value


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_without_end_is_read_up_to_a_limit(kind: str, name: str) -> None:
    head, again, code = ENDLESS[name]
    with served(head, again, OFFERED) as (url, taken):
        assert refused(kind, url).code == code
        assert taken.get(timeout=WAIT_S) < MOST_READ


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_not_unpacked(kind: str) -> None:
    head = b"HTTP/1.1 400 X\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
    with served(head + gzip.compress(b"unpacked " * 100_000), b"", 0) as (url, _):
        error = refused(kind, url)
    assert error.code == "llm.rejected" and "unpacked" not in error.message
