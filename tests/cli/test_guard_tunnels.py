"""`spak guard --policy F --allow-host A -- AGENT`: laws of a session, and tunnels to hosts that they name."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done
from guard_kit import AGENT, Model, tree

pytestmark = pytest.mark.sandbox

NEAR = "reachable_kind(/loopback).\n"
SETTINGS = '[policy]\nlaw = ["near.mg"]\n[network]\nrequests = ["public", "loopback"]\n'
CLIENT = r"""
import os, socket, urllib.parse
port = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"]).port
def tunnel(place, first=b""):
    line = socket.create_connection(("127.0.0.1", port), 60)
    line.sendall(b"CONNECT " + place.encode() + b" HTTP/1.1\r\nhost: x\r\n\r\n" + first)
    head = b""
    while b"\r\n\r\n" not in head and (data := line.recv(1)):
        head += data
    return line, head.split(b"\r\n")[0].decode()
def rest(line):
    found = b""
    while data := line.recv(65536):
        found += data
    return found
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project whose operator lets requests go to this machine."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "near.mg").write_text(NEAR)
    (folder / "spak.toml").write_text(SETTINGS)
    (folder / "cart.py").write_text("x = 1\n")
    shutil.copy(AGENT, folder / "agent.py")
    return folder


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that answers what it got, twice, when the other side has ended; its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                got = b""
                while data := line.recv(65536):
                    got += data
                line.sendall(got * 2)

    threading.Thread(target=serve, daemon=True).start()
    with server:
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def guard(cli: Cli, model: Model, shop: Path, *more: str) -> Done:
    line = ("guard", "--json", *more, "--", sys.executable, "agent.py", "mend the cart")
    return cli(*line, env=model.env, folder=shop)


def law(port: int) -> str:
    """A short name is odd to the shipped law, so a rule of one's own permits it."""
    permitted = f'permitted(A) :- tool(A, /tunnel), asks_url(A, _, "localhost", {port}).'
    return f'allowed_port("localhost", {port}).\n{permitted}\n'


def python(code: str) -> str:
    return f"python3 - <<'END'\n{CLIENT}\n{code}\nEND"


def permitted(cli: Cli, shop: Path, run: str) -> list[dict[str, Any]]:
    """The calls that were permitted, in order."""
    records = [json.loads(line) for line in cli("export", run, folder=shop).out.splitlines() if line]
    bodies = [record["body"] for record in records if record.get("kind") == "permit"]
    return [body for body in bodies if body["allow"] is True]


def test_a_tunnel_goes_where_the_law_says_and_its_size_is_recorded(cli: Cli, shop: Path, echo: int) -> None:
    (shop / "session.mg").write_text(law(echo))
    code = f"""
line, said = tunnel("localhost:{echo}", b"early ")
print(said)
line.sendall(b"x" * 100_000); line.shutdown(socket.SHUT_WR)
print("got", len(rest(line)))
for place in ("localhost:{echo + 1}", "127.0.0.1:{echo}", "example.org:443", "nonsense", "localhost:99999"):
    line, said = tunnel(place); print(place, said)
open_one, said = tunnel("localhost:{echo}")
"""
    with Model([python(code), "true"]).serving() as model:
        done = guard(cli, model, shop, "--policy", "session.mg")
    assert done.code == 0, done.err
    said = json.dumps(model.asked[1])
    assert "HTTP/1.1 200 Connection established" in said and "got 200012" in said
    for place in (f"localhost:{echo + 1}", f"127.0.0.1:{echo}", "example.org:443"):
        assert f"{place} HTTP/1.1 403 Forbidden: policy.forbidden; the host" in said, said
        assert f"No tunnel to {place}: policy.forbidden; the host" in said
        host = place.partition(":")[0]
        assert f"the host {host} is not allowed" in said, "a name that nobody allowed is not looked up"
    assert "nonsense HTTP/1.1 400" in said and "localhost:99999 HTTP/1.1 400" in said
    name = done.json["run"]
    calls = permitted(cli, shop, name)
    ended = [one["args"] for one in calls if one.get("name") == "tunnel_closed"]
    assert [(one["sent"], one["received"]) for one in ended] == [(100_006, 200_012), (0, 0)]
    assert len([one for one in calls if one.get("name") == "tunnel"]) == 2
    for line in (("ledger", "verify", name), ("replay", name)):
        assert cli(*line, folder=shop).code == 0


OWN = """
import http.client
for host in ("127.0.0.1", "localhost"):
    line = http.client.HTTPConnection("127.0.0.1", port)
    line.set_tunnel(f"{host}:{port}")
    line.request("GET", "/elsewhere")
    answer = line.getresponse()
    print(answer.status, bool(answer.read()))
    line.request("GET", f"http://{host}:{port}/elsewhere")
    print(json.loads(line.getresponse().read())["error"]["message"])
print(tunnel(f"127.0.0.1:{port + 1}")[1])
"""


def test_an_agent_that_asks_the_guard_by_way_of_its_proxy_is_heard(cli: Cli, shop: Path) -> None:
    """Some agents send all that they ask to the proxy of their environment, whatever NO_PROXY says."""
    with Model([python("import json\n" + OWN)]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    said = json.dumps(model.asked[1])
    assert said.count("404 True") == said.count("the guard sends to models only, not to /elsewhere\\n") == 2
    assert "HTTP/1.1 403 Forbidden" in said
    assert not [one for one in permitted(cli, shop, done.json["run"]) if one.get("name") == "tunnel"]


def test_one_that_is_open_when_the_agent_ends_is_closed_and_recorded(cli: Cli, shop: Path, echo: int) -> None:
    (shop / "session.mg").write_text(law(echo))
    stay = f"""
out, back = os.pipe()
if os.fork():
    print(os.read(out, 100).decode())
else:
    none = os.open(os.devnull, os.O_RDWR)
    os.dup2(none, 1), os.dup2(none, 2), os.setsid()
    line, said = tunnel("localhost:{echo}", b"abc")
    os.write(back, said.encode())
    rest(line)
"""
    with Model([python(stay)]).serving() as model:
        done = guard(cli, model, shop, "--policy", "session.mg")
    assert "200 Connection" in model.said(1)
    assert done.code == 0, done.err
    ended = [one for one in permitted(cli, shop, done.json["run"]) if one.get("name") == "tunnel_closed"]
    (about,) = [one["args"] for one in ended]
    assert about["sent"] == 3 and about["received"] in (0, 6)


def test_a_session_may_not_lift_what_the_operator_forbids(cli: Cli, shop: Path) -> None:
    """The law of the session permits more; an address that nobody may reach stays out of reach."""
    (shop / "near.mg").write_text("")
    (shop / "session.mg").write_text(law(9))
    with Model([python('print(tunnel("localhost:9")[1])')]).serving() as model:
        done = guard(cli, model, shop, "--policy", "session.mg")
    assert done.code == 0, done.err
    assert "403 Forbidden" in json.dumps(model.asked[1]) and "reachable_kind(/loopback)" in model.said(1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("forbidden(A) :- )\n", "team/bad.mg:"),
        ("reachable_kind(/loopback).\n", "[policy.closed]"),
    ],
    ids=["no law", "closed"],
)
def test_a_law_that_does_not_load_is_refused_with_its_place(
    cli: Cli, shop: Path, text: str, said: str
) -> None:
    (shop / "bad.mg").write_text(text)
    with Model([]).serving() as model:
        done = guard(cli, model, shop, "--policy", "bad.mg")
    assert done.code in (2, 3) and said in done.err and "bad.mg:1:" in done.err, done.err
    assert not model.asked


def test_hosts_are_full_names_and_a_missing_file_is_named(cli: Cli, shop: Path) -> None:
    with Model([]).serving() as model:
        for item in ("localhost", "10.0.0.1", "a.example:99999", "https://a.example", "a b"):
            done = guard(cli, model, shop, "--allow-host", item)
            assert done.code == 2 and "--allow-host" in done.err, item
        assert "usage.file" in guard(cli, model, shop, "--policy", "none.mg").err


def test_a_law_of_the_session_forbids_changes(cli: Cli, shop: Path) -> None:
    (shop / "session.mg").write_text('forbidden(A) :- changed(A, "cart.py", _).\n')
    before = tree(shop)
    with Model(["rm cart.py", "cat cart.py"]).serving() as model:
        done = guard(cli, model, shop, "--policy", "session.mg", "--allow-host", "b.example,a.example:8443")
    assert done.code == 0, done.err
    assert "were taken back" in model.said(1) and "x = 1" in model.said(2)
    assert tree(shop) == before
