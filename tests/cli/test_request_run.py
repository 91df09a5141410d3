"""A run that sends a request: judged with its address, sent to that address, replayed without the network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from judged_host_kit import HOST, REACH, at_home, rebinding

SPEC = """
AGENT Ask LEVEL 2 {
  CONFIG { SANDBOX RESTRICTED, HOSTS ["API.example"] }
  POLICY "rules.mg"
  START -> t
  TASK t {
    TOOLS [http_request, write_file]
    step page: tool.http_request { url: "http://api.example:PORT/x" }
    step keep: tool.write_file { path: "page.txt", content: "{{last_tool_output}}" }
  }
}
"""
OPEN = (
    'permitted(A) :- tool(A, /http_request), asks_url(A, "http", Host, _), allowed_host(Host),\n'
    'asks_method(A, "GET").\n'
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.headers["Host"])  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the page")

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen = []  # type: ignore[attr-defined]
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def spec(tmp_path: Path, port: int, rules: str = "# nothing more\n", law: str = "") -> str:
    """A spec with a POLICY, and the operator's law beside it."""
    path = tmp_path / "ask.spak"
    path.write_text(SPEC.replace("PORT", str(port)))
    (tmp_path / "rules.mg").write_text(rules)
    if law:
        (tmp_path / "law.mg").write_text(law)
        (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    return str(path)


def test_it_is_sent_to_the_address_that_was_judged(cli: Cli, server: Any, tmp_path: Path) -> None:
    port = server.server_port
    done = cli("run", spec(tmp_path, port, law=OPEN + REACH), "--json", before=at_home)
    assert done.code == 0, done.out
    assert server.seen == [f"{HOST}:{port}"]
    assert b"the page" in next(tmp_path.rglob("page.txt")).read_bytes()
    (tmp_path / "spak.toml").unlink()
    replayed = cli("replay", done.json["run"], "--json")
    assert replayed.code == 0 and len(server.seen) == 1, "the law is in the first record"


def test_without_the_law_nothing_is_sent(cli: Cli, server: Any, tmp_path: Path) -> None:
    for law in ("", OPEN):
        done = cli("run", spec(tmp_path, server.server_port, law=law), "--json", before=at_home)
        assert done.code != 0 and "policy.forbidden" in done.out and server.seen == []


@pytest.mark.parametrize("rules", [OPEN, REACH, OPEN + REACH])
def test_a_spec_cannot_open_the_way_to_this_machine(
    cli: Cli, server: Any, tmp_path: Path, rules: str
) -> None:
    """An outsider's finding: such a row let a spec read any port of the worker's loopback."""
    for law in ("", OPEN, REACH):
        done = cli("run", spec(tmp_path, server.server_port, rules, law), "--json", before=at_home)
        assert done.code == 3 and "policy.closed" in done.out and server.seen == []


def test_a_law_alone_does_not_open_the_way_to_this_machine(cli: Cli, server: Any, tmp_path: Path) -> None:
    """The tool looks at the address too, by the operator's settings."""
    path = spec(tmp_path, server.server_port, law=OPEN + REACH)
    done = cli("run", path, "--json", before=rebinding)
    assert done.code != 0 and server.seen == []
    assert "http_request.reach" in cli("show", done.json["run"], "--json").out
