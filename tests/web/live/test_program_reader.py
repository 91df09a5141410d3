"""The reader of docs/runs.md against a server that cuts the line wherever it likes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from programs_kit import block, reader

LINES = [json.dumps({"seq": seq, "text": "\u2028 data: \u00e9"}, ensure_ascii=False) for seq in range(12)]


def body(after: int) -> bytes:
    """What the stream says from there to the end."""
    events = [
        f"id: {seq}\nevent: record\ndata: {LINES[seq]}\n\n: beat\n\n" for seq in range(after + 1, len(LINES))
    ]
    return f"retry: 1000\n\n{''.join(events)}event: end\ndata: {{}}\n\n".encode()


@contextmanager
def serving(answer: Callable[[int, str], tuple[int, bytes, int]]) -> Iterator[tuple[str, list[str]]]:
    """`answer(asked, last)` gives the status, the body, and after how many bytes the line is cut."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            last = self.headers.get("Last-Event-ID", "")
            asked.append(last)
            status, whole, cut = (
                answer(len(asked), last) if self.headers["Authorization"] == "Bearer t" else (401, b"", 0)
            )
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(whole[:cut])

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[str]]:
    names = reader()
    monkeypatch.setattr(names["time"], "sleep", lambda seconds: None)
    monkeypatch.setenv("no_proxy", "*")
    found: Callable[..., Iterator[str]] = names["records"]
    return found


@pytest.mark.parametrize("step", [1, 61, 97, 250])
def test_it_loses_and_repeats_nothing(records: Callable[..., Iterator[str]], step: int) -> None:
    """Cut at any byte, refused for a while in between."""

    def answer(count: int, last: str) -> tuple[int, bytes, int]:
        if count % 3 == 2:
            return 503, b"", 0
        after = int(last or -1)
        return (204, b"", 0) if after == len(LINES) - 1 else (200, body(after), 150 + step * count % 200)

    with serving(answer) as (address, asked):
        assert list(records(address, "t")) == LINES
    assert len(asked) > 5 and asked == sorted(asked, key=lambda last: int(last or -1))


def test_it_goes_on_where_it_was(records: Callable[..., Iterator[str]]) -> None:
    with serving(lambda count, last: (200, body(int(last)), 10**6)) as (address, asked):
        assert list(records(address, "t", "8")) == LINES[9:]
    assert asked == ["8"]


def test_a_run_that_could_not_begin_has_an_end(records: Callable[..., Iterator[str]]) -> None:
    """It has no records, so there is no last one to come again with."""
    end = b"retry: 1000\n\nevent: state\ndata: {}\n\nevent: end\ndata: {}\n\n"
    with serving(lambda count, last: (200, end, len(end))) as (address, asked):
        assert list(records(address, "t")) == []
    assert asked == [""]


def test_it_says_why_it_is_turned_away(records: Callable[..., Iterator[str]]) -> None:
    with (
        serving(lambda count, last: (404, b"no such run", 11)) as (address, _),
        pytest.raises(SystemExit, match="no such run"),
    ):
        list(records(address, "t"))


def test_it_is_short() -> None:
    words = [line for line in block("python").splitlines() if line.strip()]
    assert len(words) <= 32
