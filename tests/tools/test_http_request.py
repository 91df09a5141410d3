"""`http_request` against servers on loopback: the judged address, redirects told, limits of time and size."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spak import data
from spak.datalog import load
from spak.policy.actions import Action, World
from spak.policy.judge import judge
from spak.ports import Call, ToolResult
from spak.tools import TOOLS
from spak.tools.observe.paths import Observer, resolve

HOST = "api.example"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, dict(self.headers), self._body()))  # type: ignore[attr-defined]
        answer = {
            "/moved": (302, {"Location": "/elsewhere"}, b""),
            "/out": (301, {"Location": "https://evil.example/x"}, b""),
            "/missing": (404, {}, b"no"),
            "/big": (200, {}, b"x" * 100_000),
            "/zip": (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"),
        }.get(self.path, (200, {"Content-Type": "text/plain"}, b"hello"))
        status, headers, body = answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()


def ask(tmp_path: Path, port: int, path: str = "/", judged: Any = ("127.0.0.1",), **args: Any) -> ToolResult:
    scheme = args.pop("scheme", "http")
    observed = {"hosts": [[HOST, list(judged)]]} if judged is not None else {}
    reach = args.pop("reach", ("public", "loopback"))
    call = Call(
        "1",
        "http_request",
        {"url": f"{scheme}://{HOST}:{port}{path}", **args},
        tmp_path,
        None,
        observed=observed,
        reach=reach,
    )
    return TOOLS["http_request"].run(call)


def codes(result: ToolResult) -> list[str]:
    return [item["code"] for item in result.diagnostics]


def test_it_connects_to_the_judged_address_under_the_name(server: Any, tmp_path: Path) -> None:
    port = server.server_port
    result = ask(tmp_path, port, "/a?q=1", headers={"Accept": "text/plain"})
    assert (result.status, result.exit, result.output) == ("exited", 0, b"200 text/plain\n\nhello")
    [(method, path, headers, _)] = server.seen
    assert (method, path, headers["host"]) == ("GET", "/a?q=1", f"{HOST}:{port}")
    assert headers["accept-encoding"] == "identity" and headers["accept"] == "text/plain"


def test_methods_and_bodies_are_sent(server: Any, tmp_path: Path) -> None:
    assert ask(tmp_path, server.server_port, method="POST", body="a=1").exit == 0
    assert ask(tmp_path, server.server_port, method="HEAD").output == b"200 text/plain\n\n"
    assert [item[0] for item in server.seen] == ["POST", "HEAD"] and server.seen[0][3] == b"a=1"


def test_a_request_that_changes_something_has_a_key_that_a_repetition_has_too(
    server: Any, tmp_path: Path
) -> None:
    for path, more in [("/", {}), ("/", {}), ("/b", {}), ("/", {"headers": {"Idempotency-Key": "mine"}})]:
        ask(tmp_path, server.server_port, path, method="POST", body="a=1", **more)
    ask(tmp_path, server.server_port)
    keys = [headers.get("idempotency-key") for _, _, headers, _ in server.seen]
    assert keys[0] == keys[1] != keys[2] and len(keys[0]) == 43
    assert keys[3:] == ["mine", None]


def test_a_request_and_its_bytes_are_counted_and_one_that_was_not_sent_is_not(
    server: Any, tmp_path: Path
) -> None:
    small = ask(tmp_path, server.server_port, "/")
    large = ask(tmp_path, server.server_port, "/", method="POST", body="x" * 500)
    unsent = ask(tmp_path, server.server_port, "/", headers={"host": "elsewhere"})
    assert (small.requests, large.requests, unsent.requests) == (1, 1, 0)
    assert small.request_bytes > 60 and small.request_bytes + 500 <= large.request_bytes < 1000


@pytest.mark.parametrize(
    ("path", "target"), [("/moved", f"http://{HOST}:PORT/elsewhere"), ("/out", "https://evil.example/x")]
)
def test_a_redirect_is_told_and_not_followed(server: Any, path: str, target: str, tmp_path: Path) -> None:
    result = ask(tmp_path, server.server_port, path)
    told = f"redirect: {target}\n".replace("PORT", str(server.server_port)).encode()
    assert result.exit == 1 and told in result.output and codes(result) == ["http_request.redirect"]
    assert len(server.seen) == 1


def test_a_status_that_is_no_success_is_exit_1(server: Any, tmp_path: Path) -> None:
    result = ask(tmp_path, server.server_port, "/missing")
    assert (result.exit, result.key["status"], result.output) == (1, 404, b"404\n\nno")


def test_size_is_bounded_and_nothing_is_unpacked(server: Any, tmp_path: Path) -> None:
    result = ask(tmp_path, server.server_port, "/big", max_bytes=1000)
    assert result.truncated and result.output == b"200\n\n" + b"x" * 1000
    coded = ask(tmp_path, server.server_port, "/zip")
    assert codes(coded) == ["http_request.coded"] and coded.output.endswith(b"\x1f\x8b")


def test_the_environment_names_no_proxy(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / "netrc").write_text(f"machine {HOST} login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert ask(tmp_path, server.server_port).exit == 0
    assert "authorization" not in {name.lower() for name in server.seen[0][2]}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"judged": None}, "http_request.address"),
        ({"judged": ()}, "http_request.address"),
        ({"headers": {"Host": "evil.example"}}, "http_request.header"),
        ({"headers": {"Proxy-Authorization": "x"}}, "http_request.header"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "http_request.header"),
        ({"headers": {"X A": "a"}}, "http_request.header"),
        ({"path": "/a b"}, "http_request.url"),
        ({"scheme": "ftp"}, "http_request.url"),
    ],
    ids=str,
)
def test_what_is_refused_is_not_sent(server: Any, args: dict[str, Any], code: str, tmp_path: Path) -> None:
    result = ask(tmp_path, server.server_port, **args)
    assert (result.exit, codes(result)) == (1, [code]) and server.seen == []


def slow(serve: Any) -> tuple[socket.socket, int]:
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        try:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                serve(peer)
        except OSError:
            return

    threading.Thread(target=run, daemon=True).start()
    return listener, listener.getsockname()[1]


def drip_head(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        peer.sendall(b"a")
        time.sleep(0.05)


def drip_body(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        peer.sendall(b"a")
        time.sleep(0.05)


@pytest.mark.parametrize(
    "serve", [drip_head, drip_body, lambda peer: peer.recv(1)], ids=["head", "body", "none"]
)
def test_a_slow_reply_ends_in_time(serve: Any, tmp_path: Path) -> None:
    listener, port = slow(serve)
    with listener:
        result = ask(tmp_path, port, timeout_s=0.4)
    assert (result.exit, codes(result)) == (2, ["http_request.timeout"])


@pytest.mark.parametrize("reply", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
def test_a_broken_reply_is_a_failure(reply: bytes, tmp_path: Path) -> None:
    listener, port = slow(lambda peer: peer.sendall(reply))
    with listener:
        result = ask(tmp_path, port)
    assert (result.exit, codes(result)) == (2, ["http_request.failed"])


def test_nobody_at_the_address_is_a_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert codes(ask(tmp_path, port)) == ["http_request.failed"]


def test_tls_asks_for_the_name_and_checks_it(tmp_path: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    day = datetime.datetime(2024, 1, 1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, day, day.replace(year=2124))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "both.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.sni_callback = lambda sock, asked, ctx: names.append(asked)

    def serve(listener: socket.socket) -> None:
        try:
            with context.wrap_socket(listener.accept()[0], server_side=True):
                pass
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        result = ask(tmp_path, listener.getsockname()[1], scheme="https")
    assert names == [HOST]
    assert codes(result) == ["http_request.failed"] and b"CERTIFICATE_VERIFY_FAILED" in result.output


# ---- the same request before the gate


def judged(tmp_path: Path, addresses: tuple[str, ...], own: str = "", **args: Any) -> Any:
    texts = {file.name: file.read_text() for file in data.path("specs/policy").glob("*.mg")}
    eyes = Observer(tmp_path)
    world = World(eyes.look, eyes.spread, None, frozenset({HOST}), lambda host: addresses)
    action = Action("http_request", {"url": f"https://{HOST}/x", **args})
    return judge(load({**texts, "own.mg": own}), action, world)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:7f00:1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:db8::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "127.1",
        "nonsense",
        "",
    ],
)
def test_an_address_that_is_not_public_is_denied(address: str, tmp_path: Path) -> None:
    decision = judged(tmp_path, (address,))
    assert (decision.decision, decision.code) == ("deny", "policy.forbidden")
    both = judged(tmp_path, ("93.184.215.14", address))
    assert both.decision == "deny"


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is_permitted(address: str, tmp_path: Path) -> None:
    assert judged(tmp_path, (address,)).decision == "allow"


def test_a_name_without_an_address_is_denied(tmp_path: Path) -> None:
    assert judged(tmp_path, ()).decision == "deny"


def test_a_policy_may_open_loopback_and_methods(tmp_path: Path) -> None:
    assert judged(tmp_path, ("127.0.0.1",), "reachable_kind(/loopback).\n").decision == "allow"
    assert judged(tmp_path, ("1.1.1.1",), method="DELETE").decision == "deny"
    assert judged(tmp_path, ("1.1.1.1",), 'reading_method("DELETE").\n', method="DELETE").decision == "allow"
    assert judged(tmp_path, ("1.1.1.1",), body="x", method="GET").decision == "deny"


def test_names_are_resolved_to_addresses() -> None:
    assert "127.0.0.1" in resolve("localhost") or "::1" in resolve("localhost")
    assert resolve("no-such-host.invalid") == () and resolve("a" * 300) == ()


@pytest.mark.parametrize(
    "judged", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::1"]]
)
def test_it_reaches_what_its_operator_lets_it_whatever_was_permitted(
    server: Any, tmp_path: Path, judged: list[str]
) -> None:
    found = ask(tmp_path, server.server_port, judged=judged, reach=("public", "private", "link_local"))
    assert codes(found) == ["http_request.reach"] and found.exit == 1 and server.seen == []


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        ("169.254.169.254", ("public", "private", "loopback", "link_local")),
        ("::ffff:169.254.169.254", ("public", "link_local")),
        ("fd00:ec2::254", ("public", "private")),
        ("100.100.100.200", ("public", "private")),
        ("168.63.129.16", ("public",)),
        ("10.0.0.1", ("public", "loopback")),
        ("0.0.0.0", ("public", "private", "loopback")),
    ],
)
def test_what_hands_out_keys_is_reached_only_by_its_own_name(
    tmp_path: Path, address: str, reach: tuple[str, ...]
) -> None:
    assert codes(ask(tmp_path, 1, judged=[address], reach=reach)) == ["http_request.reach"]
