"""A model endpoint on loopback that says what a guarded agent does, and keeps what it was asked."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

AGENT = Path(__file__).with_name("scripted_agent.py")
KEY = "sk-a-real-key-of-a-person"


def closing(raw: bytes) -> bytes:
    """An answer after which its connection is closed, as it says: a client sends nothing more on it."""
    return raw.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)


class Model:
    """Answers the n-th request with the n-th text, then with `stop`."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.asked, self.keys = list(texts), list[dict[str, Any]](), list[str]()
        self.headers: list[dict[str, str]] = []
        """Of each request, their names in small letters."""
        self.raw: dict[int, bytes] = {}
        """Answers by their number as they go over the line; its connection is closed after each."""
        self.before: dict[int, Callable[[], object]] = {}
        """What is done before the answer of that number."""

    @property
    def env(self) -> dict[str, str]:
        """What the person's environment has."""
        return {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}", "ANTHROPIC_API_KEY": KEY}

    def said(self, number: int) -> str:
        """The last message of a request, as one text."""
        content = self.asked[number]["messages"][-1]["content"]
        return content if isinstance(content, str) else "\n".join(block["text"] for block in content)

    @contextmanager
    def serving(self) -> Iterator[Model]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                number = len(model.asked)
                model.asked.append(asked)
                model.before.get(number, lambda: None)()
                model.keys.append(self.headers.get("x-api-key", ""))
                model.headers.append({name.lower(): value for name, value in self.headers.items()})
                if number in model.raw:
                    self.wfile.write(model.raw[number])
                    return
                text = model.texts[number] if number < len(model.texts) else "stop"
                usage = {"input_tokens": 100, "output_tokens": 10}
                answer = {
                    "model": asked["model"],
                    "content": [{"type": "text", "text": text}],
                    "usage": usage,
                }
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Quiet."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.port = server.server_port
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()


def left_of(project: Path) -> list[str]:
    """Processes whose folder is the agent's copy of this project."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (
                str(project) in str((place / "root").readlink())
                or str(project) in (place / "cmdline").read_text()
            ):
                found.append(place.name)
        except OSError:
            continue
    return [pid for pid in found if int(pid) != os.getpid()]


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All of a folder but the runs in it: by path the mode, and what a file holds or where a link leads."""

    def held(path: Path) -> bytes:
        if path.is_symlink():
            return str(path.readlink()).encode()
        return path.read_bytes() if path.is_file() else b""

    paths = sorted(path for path in folder.rglob("*") if ".spak" not in path.parts)
    return {str(path.relative_to(folder)): (path.lstat().st_mode, held(path)) for path in paths}
