"""A server of HTTP as a tool: at the address that was judged, with its token, and lost when its answer is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcp_kit import DEFINITIONS, approved, call
from mcp_server import answered
from spak import config
from spak.datalog.values import Name
from spak.mcp import sdk_client
from spak.mcp.pins import Server
from spak.own import starting
from spak.policy.actions import Action
from spak.policy.facts import facts
from spak.policy.history.trace import BLIND
from spak.tools import served
from spak.tools.served import Servers

HOST = "mcp.example"


@dataclass
class Endpoint:
    """What an endpoint saw, and how it answers a method otherwise."""

    port: int = 0
    seen: list[dict[str, str]] = field(default_factory=list)
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/mcp"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    made = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            made.seen.append({name.lower(): value for name, value in self.headers.items()})
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method = asked.get("method", "")
            how = made.how.get(method, "")
            if how == "redirect":
                self.reply(307, b"", location="http://elsewhere.example/mcp")
            elif how == "cut":
                self.close_connection = True
            elif "id" not in asked:
                self.reply(202, b"")
            elif method == "tools/list":
                self.say(asked["id"], {"tools": [*DEFINITIONS]})
            elif (result := answered(method, asked.get("params") or {}, 1)) is None:
                self.reply(400, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {
                    "code": -32601, "message": "no such method"}}).encode())  # fmt: skip
            else:
                self.say(asked["id"], result)

        def do_GET(self) -> None:
            self.reply(405, b"")

        do_DELETE = do_GET

        def say(self, number: Any, result: Any) -> None:
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())

        def reply(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(served, "resolve", lambda host: ("127.0.0.1",) if host == HOST else ())
    yield made
    server.shutdown()
    server.server_close()


@contextmanager
def reached(url: str, *reach: str, **members: Any) -> Iterator[Servers]:
    server: Server = replace(approved(), argv=(), files={}, url=url, **members)
    start = starting(replace(config.Settings(), reach=("public", *reach)), Path())
    made = Servers({"small": server}, replace(start, bearer=lambda name: f"value of {name}"))
    try:
        yield made
    finally:
        made.close()


def at(address: str, **args: Any) -> Any:
    """A call whose host was judged at this address."""
    return replace(
        call("small__say", **args), observed={"hosts": [[HOST, [address]]]}, reach=("public", "loopback")
    )


def test_a_server_is_reached_at_the_judged_address_with_its_token(endpoint: Endpoint) -> None:
    with reached(endpoint.url, "loopback", token="KEY") as made:
        assert made.listed("small")[-1][2] == Name("/listed")
        found = made.tools()["small__say"].run(at("127.0.0.1", text="hi"))
    assert found.output == b"say 1: hi"
    assert found.requests == 1
    assert found.request_bytes > 0
    assert {seen["host"] for seen in endpoint.seen} == {f"{HOST}:{endpoint.port}"}
    assert {seen["authorization"] for seen in endpoint.seen} == {"Bearer value of KEY"}


def test_an_address_that_the_operator_does_not_let_is_not_connected_to(endpoint: Endpoint) -> None:
    with reached(endpoint.url) as made:
        assert "[http_request.reach]" in str(made.listed("small")[0][3])
    with reached("http://nowhere.example/mcp") as made:
        assert "[mcp.closed]" in str(made.listed("small")[0][3])
    assert endpoint.seen == []


def test_a_call_without_a_judged_address_is_refused(endpoint: Endpoint) -> None:
    with reached(endpoint.url, "loopback") as made:
        found = made.tools()["small__say"].run(call("small__say"))
        other = made.tools()["small__say"].run(replace(at("169.254.169.254"), reach=("public",)))
    assert (found.key["codes"], other.key["codes"]) == (["http_request.address"], ["http_request.reach"])
    assert endpoint.seen == []


@pytest.mark.parametrize(("how", "code"), [("redirect", "mcp.refused"), ("cut", "mcp.lost")])
def test_an_answer_that_breaks_off_is_lost_and_one_that_sends_on_is_refused(
    endpoint: Endpoint, how: str, code: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with reached(endpoint.url, "loopback") as made:
        tool = made.tools()["small__say"]
        assert tool.run(at("127.0.0.1")).exit == 0
        endpoint.how["tools/call"] = how
        assert tool.run(at("127.0.0.1")).key["codes"] == [code]
        endpoint.how.clear()
        assert tool.run(at("127.0.0.1")).exit == 0
    assert capfd.readouterr().err == "", "what a server sends is not logged to a terminal"


def test_an_answer_without_end_is_cut(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with reached(endpoint.url, "loopback") as made:
        tool = made.tools()["small__say"]
        assert tool.run(at("127.0.0.1")).exit == 0
        monkeypatch.setattr(sdk_client, "MAX_LINE", 1000)
        assert tool.run(at("127.0.0.1", text="x" * 2000)).key["codes"] == ["mcp.lost"]


def test_the_law_sees_the_host_of_a_call(endpoint: Endpoint) -> None:
    with reached(endpoint.url, "loopback") as made:
        entry = made.tools()["small__say"].entry
    world = replace(BLIND, declared={entry.name: entry.arguments}, resolve=lambda host: ("10.0.0.1",))
    names = dict(facts(Action(entry.name, {"text": "x"}), world))
    assert names["asks_url"][1:] == ("http", HOST, endpoint.port)
    assert names["host_address"][1:] == ("10.0.0.1", Name("/private"))
    assert names["mcp_server"][:2] == ("small", Name("/http"))
