"""A repository over http on loopback: git's own server program behind Python's."""

from __future__ import annotations

import os
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CLEAN = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    """What git says in the folder, without settings of the machine."""
    done = subprocess.run(["git", *words], cwd=folder, env=CLEAN, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Handler(BaseHTTPRequestHandler):
    """One request as a CGI program's. The server's `answer`, where it is set, comes instead."""

    server: Any

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _serve(self, body: bytes) -> None:
        self.server.seen.append((self.command, self.path, self.headers, body))
        if self.server.answer is not None:
            self._send(*self.server.answer)
            return
        if self.server.password and self._password() != self.server.password:
            self._send(401, {}, b"")
            return
        path, _, query = self.path.partition("?")
        env = {
            **CLEAN, "GIT_PROJECT_ROOT": str(self.server.folder), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "someone",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=True)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self._send(int(fields.pop("Status", "200").split()[0]), fields, data)

    def _password(self) -> str:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        return b64decode(value).decode() if kind == "Basic" else ""

    def _send(self, status: int, fields: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def serving(folder: Path) -> Iterator[Any]:
    """A server of a new bare repository: `seen` has its requests, `bare` is its path."""
    bare = folder / "app.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare", "-b", "main")
    git(bare, "config", "http.receivepack", "true")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found: Any = server
        found.seen, found.answer, found.password, found.folder, found.bare = [], None, "", folder, bare
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()
