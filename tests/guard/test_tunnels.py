"""Tunnels of a guarded agent: what a pipe carries, counts and ends by, without a sandbox."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from spak.guard import tunnels
from spak.guard.tunnels import _Pipe

Ends = tuple[socket.socket, socket.socket, _Pipe, list[BaseException]]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket, _Pipe]]:
    """The agent's end, the host's end, and the pipe between them."""
    agent, near = socket.socketpair()
    far, host = socket.socketpair()
    near.setblocking(False)
    with agent, near, far, host:
        yield agent, host, _Pipe(near, far)


def carrying(pipe: _Pipe, first: bytes = b"") -> threading.Thread:
    def carry() -> None:
        try:
            pipe.carry(first)
        except OSError:
            pass

    made = threading.Thread(target=carry, daemon=True)
    made.start()
    return made


def read_all(end: socket.socket) -> bytes:
    found = b""
    while data := end.recv(1 << 16):
        found += data
    return found


def test_it_carries_both_ways_and_counts_what_arrived(
    ends: tuple[socket.socket, socket.socket, _Pipe],
) -> None:
    agent, host, pipe = ends
    thread = carrying(pipe, b"early ")
    big = bytes(range(256)) * 20_000
    sender = threading.Thread(target=lambda: (host.sendall(big), host.shutdown(socket.SHUT_WR)))
    sender.start()
    agent.sendall(b"hello")
    agent.shutdown(socket.SHUT_WR)
    assert read_all(host) == b"early hello"
    assert read_all(agent) == big
    sender.join()
    thread.join()
    assert (pipe.sent, pipe.received, pipe.why) == (11, len(big), "closed")


def test_an_end_that_says_no_more_still_gets_the_rest(
    ends: tuple[socket.socket, socket.socket, _Pipe],
) -> None:
    agent, host, pipe = ends
    thread = carrying(pipe)
    agent.shutdown(socket.SHUT_WR)
    assert read_all(host) == b""
    host.sendall(b"the answer")
    host.shutdown(socket.SHUT_WR)
    assert read_all(agent) == b"the answer"
    thread.join()
    assert (pipe.sent, pipe.received) == (0, 10)


def test_silence_and_the_session_end_it(
    ends: tuple[socket.socket, socket.socket, _Pipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, host, pipe = ends
    monkeypatch.setattr(tunnels, "IDLE_S", 0.0)
    pipe.carry(b"")
    assert pipe.why == "idle"
    monkeypatch.setattr(tunnels, "IDLE_S", 600.0)
    thread = carrying(pipe)
    pipe.end("session")
    thread.join()
    assert pipe.why == "session"
    assert agent.recv(10) == b"" and host.recv(10) == b""
