"""A run that sends a request: judged with its address, sent to that address, replayed without the network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from judged_host_kit import HOST, REACH, at_home, neighbour, rebinding

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


BARE = """reachable_kind(/loopback).
allowed_host("HOST").
permitted(A) :- tool(A, /http_request), asks_url(A, "http", "HOST", PORT), asks_method(A, "GET").
"""
"""What an operator says of one service on this machine."""


def to_bare(
    tmp_path: Path, host: str, port: int, law: str = BARE, reach: str = '["public", "loopback"]'
) -> str:
    path = spec(tmp_path, port, law=law.replace("HOST", host.strip("[]")).replace("PORT", str(port)))
    Path(path).write_text(
        Path(path).read_text().replace('["API.example"]', '["other.example"]').replace(HOST, host)
    )
    with (tmp_path / "spak.toml").open("a") as file:
        file.write(f"[network]\nrequests = {reach}\n")
    return path


@pytest.mark.findings("S5.2")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "api"])
def test_an_operator_permits_an_address_and_a_short_name(
    cli: Cli, server: Any, tmp_path: Path, host: str
) -> None:
    port = server.server_port
    path = to_bare(tmp_path, host, port)
    assert "lang.denied" not in cli("check", path, "--json").out
    done = cli("run", path, "--json", before=neighbour)
    assert done.code == 0, done.out
    assert server.seen == [f"{host}:{port}"]
    replayed = cli("replay", done.json["run"], "--json")
    assert replayed.code == 0 and len(server.seen) == 1


@pytest.mark.findings("S5.2")
def test_an_operator_permits_an_address_of_ipv6(cli: Cli, tmp_path: Path) -> None:
    class Six(ThreadingHTTPServer):
        address_family = socket.AF_INET6

    with Six(("::1", 0), Handler) as found:
        found.seen = []  # type: ignore[attr-defined]
        threading.Thread(target=found.serve_forever, daemon=True).start()
        done = cli("run", to_bare(tmp_path, "[::1]", found.server_port), "--json")
        found.shutdown()
        assert done.code == 0, done.out
        assert found.seen == [f"[::1]:{found.server_port}"]  # type: ignore[attr-defined]


@pytest.mark.findings("S5.2")
@pytest.mark.parametrize(
    ("law", "reach"),
    [
        (BARE.replace("reachable_kind(/loopback).", ""), '["public", "loopback"]'),
        (BARE.replace('allowed_host("HOST").', ""), '["public", "loopback"]'),
        (BARE.replace("PORT", "1"), '["public", "loopback"]'),
        ("reachable_kind(/loopback).\n", '["public", "loopback"]'),
        (BARE, '["public"]'),
    ],
    ids=["kind", "host", "port", "rule", "network"],
)
def test_each_part_of_it_is_needed(cli: Cli, server: Any, tmp_path: Path, law: str, reach: str) -> None:
    done = cli("run", to_bare(tmp_path, "127.0.0.1", server.server_port, law, reach), "--json")
    assert done.code != 0 and server.seen == []


@pytest.mark.findings("S5.2")
def test_a_spec_that_names_an_address_opens_nothing(cli: Cli, server: Any, tmp_path: Path) -> None:
    """Not even where the operator lets requests reach this machine."""
    path = to_bare(tmp_path, "127.0.0.1", server.server_port, "reachable_kind(/loopback).\n")
    text = Path(path).read_text().replace("other.example", "127.0.0.1")
    for url in (f"http://127.0.0.1:{server.server_port}", "https://127.0.0.1"):
        Path(path).write_text(text.replace(f"http://127.0.0.1:{server.server_port}", url))
        assert "lang.denied" in cli("check", path, "--json").out
        done = cli("run", path, "--json")
        assert done.code == 5 and server.seen == []
