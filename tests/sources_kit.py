"""Git repositories of tests, and a server of them on loopback that speaks what hosts of repositories speak.

`Repository` is a bare one that commits are put into; `Host` serves those of a folder over HTTP by
`git http-backend`, behind a password if it has one, and misbehaves as it is told.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

NAME = "git.test.example"
"""What the host is called; it leads to loopback where a test says so."""
WHO = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@t.example", "GIT_COMMITTER_NAME": "T"}
PLAIN = {
    **WHO, "GIT_COMMITTER_EMAIL": "t@t.example", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": os.environ["PATH"], "LC_ALL": "C",
}  # fmt: skip
BACKEND = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-http-backend"


def git(folder: Path, *words: str, given: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**PLAIN, "HOME": str(folder)}, input=given, capture_output=True
    )
    assert done.returncode == 0, (words, done.stderr.decode())
    return done.stdout.decode().strip()


class Repository:
    """A bare repository, filled without a work tree: any name and mode can be put into a commit."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        git(folder, "config", "http.receivepack", "true")

    def head(self, ref: str = "refs/heads/main") -> str:
        return git(self.folder, "rev-parse", ref)

    def blob(self, data: bytes) -> str:
        return git(self.folder, "hash-object", "-w", "--stdin", given=data)

    def tree(self, files: Mapping[str, bytes | tuple[str, str]]) -> str:
        """Of flat names: bytes, or a mode and a digest."""
        lines = []
        for name, content in files.items():
            mode, digest = content if isinstance(content, tuple) else ("100644", self.blob(content))
            kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
            lines.append(f"{mode} {kind} {digest}\t{name}\0".encode("utf-8", "surrogateescape"))
        return git(self.folder, "mktree", "-z", "--missing", given=b"".join(lines))

    def commit(
        self, files: Mapping[str, bytes | tuple[str, str]], ref: str = "refs/heads/main", parent: str = ""
    ) -> str:
        upon = ("-p", parent) if parent else ()
        found = git(self.folder, "commit-tree", *upon, "-m", "change", self.tree(files))
        git(self.folder, "update-ref", ref, found)
        return found


class Host:
    """Serves the repositories of a folder."""

    def __init__(self, root: Path, password: str = "") -> None:
        self.root, self.password = root, password
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Each request: its path, and its headers by their small names."""
        self.instead: Callable[[str], int | None] = lambda path: None
        """A status to answer a path with."""
        self.hang_s = 0.0
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kept.answer(self)

            do_POST = do_GET

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://{NAME}:{self.port}/{name}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        self.asked.append((asked.path, headers))
        body = asked.rfile.read(int(headers.get("content-length", 0)))
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks(asked)
        if self.hang_s:
            time.sleep(self.hang_s)
        status = self.instead(asked.path)
        kind, _, given = headers.get("authorization", "").partition(" ")
        if self.password and (kind != "Basic" or b64decode(given).decode() != self.password):
            status = status or 401
        if status:
            asked.send_response(status)
            asked.send_header("Location", f"http://{NAME}:{self.port}/elsewhere{asked.path}")
            asked.send_header("WWW-Authenticate", 'Basic realm="git"')
            asked.send_header("Content-Length", "0")
            asked.end_headers()
            return
        path, _, query = asked.path.partition("?")
        env = {
            **PLAIN, "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": asked.command, "REMOTE_USER": "t",
            "CONTENT_TYPE": headers.get("content-type", ""), "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""), "HOME": str(self.root),
        }  # fmt: skip
        done = subprocess.run([str(BACKEND)], env=env, input=body, capture_output=True)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(": ") for line in head.decode().split("\r\n") if line]
        found = {name: value for name, _, value in lines}
        asked.send_response(int(found.pop("Status", "200").split()[0]))
        for name, value in found.items():
            asked.send_header(name, value)
        asked.send_header("Content-Length", str(len(rest)))
        asked.end_headers()
        asked.wfile.write(rest)

    @staticmethod
    def _chunks(asked: BaseHTTPRequestHandler) -> bytes:
        found = b""
        while size := int(asked.rfile.readline().strip(), 16):
            found += asked.rfile.read(size)
            asked.rfile.readline()
        asked.rfile.readline()
        return found


class Forge:
    """The endpoints of GitHub's and GitLab's API for pull requests, as their documentation has them, behind a
    token; what was opened is in `pulls`, what was asked in `asked`."""

    TOKEN = "api-token-1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """Each request: method, path with query, headers by their small names."""
        self.pulls: list[dict[str, Any]] = []
        """Of each what was sent, what is `shown` of it, and whether it is `open`."""
        self.instead: tuple[int, bytes] | None = None
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                kept.asked.append((self.command, self.path, headers))
                body = self.rfile.read(int(headers.get("content-length", 0)))
                status, data = kept.instead or kept.answer(self.command, self.path, headers, body)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_PATCH = do_PUT = do_GET

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://api.test.example:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        place, _, query = path.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        kind = "/pulls" if place.startswith("/repos/") else "/merge_requests"
        place, _, number = place.partition(f"{kind}/")
        place += kind if number else ""
        next_one = len(self.pulls) + 1
        if place == "/repos/shop/app/pulls":
            if headers.get("authorization") != f"Bearer {self.TOKEN}":
                return 401, b'{"message": "Bad credentials"}'
            assert headers["accept"] == "application/vnd.github+json" and headers["user-agent"]
            head, base, wanted = "head", "base", asked.get("head", "").removeprefix("shop:")
            shown = {"html_url": f"{self.url}/shop/app/pull/{next_one}", "number": next_one}
            taken = (422, b'{"message": "Validation Failed", "errors": [{"message": "it exists"}]}')
        elif place == "/projects":
            assert asked["search"] == "app" and asked["membership"] == "true"
            listed = {6: "group/other/app", 7: "group/sub/app", 8: "group/sub/app2"}
            known = headers.get("private-token") == self.TOKEN
            found = [{"id": key, "path_with_namespace": name} for key, name in listed.items()]
            return (200, json.dumps(found).encode()) if known else (401, b'{"message": "401 Unauthorized"}')
        elif place == "/projects/7/merge_requests":
            if headers.get("private-token") != self.TOKEN:
                return 401, b'{"message": "401 Unauthorized"}'
            head, base, wanted = "source_branch", "target_branch", asked.get("source_branch", "")
            web = f"{self.url}/group/sub/app/-/merge_requests/{next_one}"
            shown = {"web_url": web, "iid": next_one, "id": 900 + next_one}
            taken = (409, b'{"message": ["Another open merge request already exists"]}')
        else:
            return 404, b'{"message": "Not Found"}'
        if method == "GET":
            found = [one | one["shown"] for one in self.pulls if one[head] == wanted and one["open"]]
            return 200, json.dumps(found).encode()
        given = json.loads(body)
        if number:
            assert method == ("PATCH" if head == "head" else "PUT")
            assert {*given} == {"title", "body" if head == "head" else "description"}
            self.pulls[int(number) - 1] |= given
            return 200, b"{}"
        if any(one[head] == given[head] and one["open"] for one in self.pulls):
            return taken
        assert given["title"] and given[base]
        self.pulls.append({**given, "shown": shown, "open": True})
        return 201, json.dumps({**shown, "filler": "x" * 20_000}).encode()
