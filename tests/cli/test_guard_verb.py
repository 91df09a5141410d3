"""`spak guard -- AGENT`: an agent that is not ours in the sandbox, its changes as transactions of one run."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from cli_calls import Cli, Done
from guard_kit import AGENT, KEY, Model, closing, tree

pytestmark = pytest.mark.sandbox

CART = "def total(prices):\n    return sum(prices[1:])\n"
LAW = 'forbidden(A) :- changed(A, "test_cart.py", _).\n'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with a fault, a test, a file of secrets and the agent."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text(CART)
    (folder / "test_cart.py").write_text("from cart import total\nassert total([1, 2]) == 3\n")
    (folder / ".env").write_text("API_TOKEN=abcdef123456secretvalue\n")
    (folder / "empty").mkdir()
    shutil.copy(AGENT, folder / "agent.py")
    return folder


def guard(cli: Cli, model: Model, shop: Path, *more: str) -> Done:
    line = ("guard", "--json", *more, "--", sys.executable, "agent.py", "mend the cart")
    return cli(*line, env=model.env, folder=shop)


def test_a_session_is_a_run_and_its_changes_come_home_by_apply(cli: Cli, shop: Path) -> None:
    before = tree(shop)
    mend = "sed -i 's/\\[1:\\]//' cart.py"
    with Model([mend, "cat .env; python3 test_cart.py && echo green"]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    assert (done.json["state"], done.json["agent_exit"]) == ("succeeded", 0)
    assert "the agent is done" in done.err
    assert tree(shop) == before, "the folder is only read"
    assert model.keys == [KEY] * 3, "the guard puts the key in"
    assert "green" in model.said(2) and "abcdef123456" not in model.said(2)
    name = done.json["run"]
    for line in (("ledger", "verify", name), ("replay", name)):
        assert cli(*line, folder=shop).code == 0
    exported = cli("export", name, folder=shop).out
    assert KEY not in exported and "abcdef123456" not in exported
    assert done.json["metrics"]["tokens"] == 330
    applied = cli("apply", name, folder=shop)
    assert applied.code == 0, applied.err
    assert (shop / "cart.py").read_text() == CART.replace("[1:]", "")


def test_a_key_of_the_secrets_is_put_in_too(cli: Cli, shop: Path) -> None:
    (shop / "spak.toml").write_text('[secrets]\nANTHROPIC_API_KEY = {file = "key"}\n')
    (shop / "key").write_text("sk-a-key-from-a-file")
    (shop / "key").chmod(0o600)
    with Model(["ls -a; cat key"]).serving() as model:
        env = {**model.env, "ANTHROPIC_API_KEY": ""}
        done = cli("guard", "--json", "--", sys.executable, "agent.py", "x", env=env, folder=shop)
    assert done.code == 0, done.err
    assert model.keys == ["sk-a-key-from-a-file"] * 2
    assert "sk-a-key-from-a-file" not in model.said(1)


def test_what_the_law_forbids_is_taken_back_byte_for_byte_and_the_agent_learns_why(
    cli: Cli, shop: Path
) -> None:
    """Deleted, moved, by a program, through a link, with an empty folder and a mode: each in its own turn."""
    (shop / "law.mg").write_text(LAW)
    (shop / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    ways = [
        "rm test_cart.py",
        "find . -name test_cart.py -delete",
        "mv test_cart.py away.py",
        ": > test_cart.py",
        "python3 -c 'import os; os.remove(\"test_cart.py\")'",
        "ln -s test_cart.py t && echo x >> t",
        "rmdir empty; mkdir -p deep/er; chmod +x cart.py; rm test_cart.py",
        "git clean -fdxq; git rm -qf test_cart.py",
        "(rm test_cart.py) & wait",
    ]
    look = "find . -path ./.git -prune -o -printf '%p %y %m %s %l\\n' | sort; cat test_cart.py"
    texts = [look]
    for way in ways:
        texts += [way, look]
    with Model(texts).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    first = model.said(1)
    for number, way in enumerate(ways):
        told, after = model.said(2 * number + 2), model.said(2 * number + 3)
        assert "were taken back" in told and "test_cart.py" in told, way
        assert after == first, way
    assert cli("apply", done.json["run"], "--check", folder=shop).code == 0
    shown = cli("show", done.json["run"], folder=shop).err
    assert f"{len(texts) + 1} answers of the model; {len(ways)} taken back\n" in shown
    assert shown.count("contained  test_cart.py: taken back (operator/law.mg:1 forbids it: ") == 5
    assert "  R7: " not in shown, "the registers of a session are in --json"


def test_it_reaches_its_model_and_nothing_else(cli: Cli, shop: Path) -> None:
    python = """python3 - <<'E'
import os, socket, urllib.request, urllib.error
port = int(os.environ["ANTHROPIC_BASE_URL"].split(":")[2].split("/")[0])
for place in (("127.0.0.1", PORT), ("1.1.1.1", 53), ("169.254.169.254", 80)):
    try:
        socket.create_connection(place, 1).close(); print("reached", place)
    except OSError as error:
        print("not", place[0])
s = socket.create_connection(("127.0.0.1", port)); s.sendall(b"CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n")
print("tunnel", s.recv(100).split()[1])
for path in ("/other", "//evil/v1/messages", "/anthropic/../x"):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}" + path, b"{}"); print("sent", path)
    except urllib.error.HTTPError as error:
        print("status", error.code)
print("keys", [name for name, value in os.environ.items() if "real-key" in value])
links = [os.readlink(f"/proc/1/fd/{n}") for n in os.listdir("/proc/1/fd")]
print("sockets", [link for link in links if "socket" in link])
E"""
    with Model([]).serving() as model:
        model.texts = [python.replace("PORT", str(model.port))]
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    said = model.asked[1]["messages"][2]["content"]
    assert "reached" not in said and said.count("not ") == 3
    assert "the host example.org is not allowed" in model.said(1)
    assert "tunnel b'403'" in said and said.count("status 404") == 3
    assert "keys []" in said and "sockets []" in said, said


def test_odd_names_and_kinds_of_files_are_kept_or_left_out(cli: Cli, shop: Path) -> None:
    """Names that are no text or have signs of a terminal, a closed folder, a link that leads out, a pipe."""
    make = "touch \"$(printf 'bad\\377')\" \"$(printf 'new\\nline')\" \"$(printf 'esc\\033[2J')\""
    more = "mkdir shut; touch shut/in; chmod 0 shut; ln -s /etc/passwd out; mkfifo pipe; ls -A"
    with Model([f"{make}; {more}", "ls -A", "chmod 700 shut; rm -rf shut", "ls -A"]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    assert (done.json["state"], len(model.asked)) == ("succeeded", 5)
    assert "shut" in model.said(2) and "shut" not in model.said(4)
    assert cli("replay", done.json["run"], folder=shop).code == 0
    assert cli("apply", done.json["run"], "--check", folder=shop).code in (0, 1, 4)


def test_a_hundred_requests_at_once_and_one_that_is_too_large(cli: Cli, shop: Path) -> None:
    flood = """python3 - <<'E'
import json, os, threading, urllib.error, urllib.request
def go(size):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}]}).encode()
    try:
        with urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body) as reply:
            said.append(reply.status)
    except (urllib.error.HTTPError, OSError) as error:
        said.append("refused")
said = []
threads = [threading.Thread(target=go, args=(10,)) for _ in range(100)]
for one in threads: one.start()
for one in threads: one.join()
print("flood", said.count(200))
go(40 << 20)
print("large", said[-1])
E"""
    with Model([flood]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    assert "flood 100" in model.said(101) and "large refused" in model.said(101)


ASK = r"""
import http.client, json, os, socket, threading, urllib.parse
port = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"]).port
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
def send(line, path, body, head=b""):
    first = b"POST %s HTTP/1.1\r\n%scontent-length: %d\r\n\r\n"
    line.sendall(first % (path.encode("latin-1"), head, len(body)) + body)
def ask(path="/anthropic/v1/messages", body=body, head=b""):
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        send(line, path, body, head)
        answer = http.client.HTTPResponse(line)
        answer.begin()
        try:
            return answer.status, len(answer.read())
        except http.client.IncompleteRead:
            return answer.status, "broken"
"""


def python(code: str) -> str:
    """A command that does it inside, with `ask`."""
    return f"python3 - <<'END'\n{ASK}\n{code}\nEND"


def test_a_model_that_refuses_breaks_off_or_redirects_ends_no_session(cli: Cli, shop: Path) -> None:
    """Each is an answer in the record, and the next request is sent."""
    text = json.dumps({"model": "claude-haiku-4-5", "usage": {"input_tokens": 7, "output_tokens": 5}})
    small = gzip.compress(text.encode())
    raw = [
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 529 Overloaded\r\ncontent-length: 2\r\n\r\n{}",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf",
        b"HTTP/1.1 307 Away\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%s" % (len(small), small),
    ]
    with Model([python(f"print([ask() for _ in range({len(raw)})])")]).serving() as model:
        model.raw = {number: closing(one) for number, one in enumerate(raw, 1)}
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    said = model.said(len(raw) + 1)
    for right in ("(429, 2), (529, 2), (502, ", "(200, 'broken'), (307, 0), ", f"(200, {len(text)})]"):
        assert right in said, said
    assert done.json["metrics"]["tokens"] == 2 * 110 + 12
    name = done.json["run"]
    assert cli("replay", name, folder=shop).code == 0


def test_requests_that_cannot_be_sent_are_refused_and_the_session_goes_on(cli: Cli, shop: Path) -> None:
    paths = ["\x01", "\xe9", "%2e%2e/%2e%2e/x", "%252e%252e/x", "x" * 600]
    heads = ["x-y: \xe9", "x-y: a\r\n b: c"]
    bodies = ['{"messages": "\\ud800"}', "[" * 100_000, "no"]
    code = f"print([ask('/anthropic/' + path)[0] for path in {paths!r}])\n"
    code += f"print([ask(head=head.encode('latin-1') + b'\\r\\n')[0] for head in {heads!r}])\n"
    code += f"print([ask(body=body.encode())[0] for body in {bodies!r}])"
    with Model([python(code), "echo goes on"]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    said = model.said(1)
    assert "[404, 404, 404, 404, 404]\n[502, 502]\n[403, 400, 400]" in said, said
    assert "goes on" in model.said(2)


def test_a_turn_that_is_too_big_is_asked_again_and_the_session_ends(cli: Cli, shop: Path) -> None:
    """Nothing is sent before its changes are a transaction; and an end with such a turn is an end."""
    (shop / "spak.toml").write_text("[workspace]\nsize_mib = 1\n")
    code = """
os.truncate("cart.py", 2 << 20)
print([ask()[0], ask()[0]])
os.truncate("cart.py", 10)
print(ask()[0])
"""
    with Model([python(code), "", "truncate -s 2M cart.py"]).serving() as model:
        done = guard(cli, model, shop)
    assert "[403, 403]\n200" in model.said(2), model.said(2)
    assert (done.code, len(model.asked)) == (1, 3) and "workspace.limit" in done.err, done.err
    left = [path.name for path in (shop / ".spak/runs").rglob("*") if path.stat().st_size > 1 << 20]
    assert left == [], "what is too large to be kept does not stay on the disk"


def test_it_may_change_files_and_ask_while_an_answer_streams(cli: Cli, shop: Path) -> None:
    """It is held still when nothing streams: an answer that it does not take would never end."""
    code = r"""
def second():
    open("new.txt", "w").write("new")
    print(ask()[0])
with socket.create_connection(("127.0.0.1", port), 60) as line:
    send(line, "/anthropic/v1/messages", body)
    line.recv(1)
    other = threading.Thread(target=second)
    other.start()
    while line.recv(1 << 20)[-5:] != b"0\r\n\r\n":
        pass
other.join()
"""
    with Model([python(code), "x" * (24 << 20), "small"]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    assert "200" in model.said(3)


@pytest.mark.parametrize("venv", [False, True])
def test_an_agent_in_the_project_does_not_show_what_is_beside_it(cli: Cli, shop: Path, venv: bool) -> None:
    """Started by its first line; and the same in a project that is a virtual environment."""
    agent = shop / "agent.py"
    if venv:
        (shop / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (shop / "bin").mkdir()
        agent = agent.rename(shop / "bin/agent.py")
    agent.write_text("#!/usr/bin/env python3\n" + agent.read_text())
    agent.chmod(0o755)
    with Model([f"cat {shop}/.env; ls -A {shop}"]).serving() as model:
        done = cli("guard", "--json", "--", f"./{agent.relative_to(shop)}", "x", env=model.env, folder=shop)
    assert done.code == 0, done.err
    assert "abcdef123456" not in model.said(1) and "cart" not in model.said(1), model.said(1)


def test_an_agent_of_a_persons_own_node_finds_it(cli: Cli, shop: Path, tmp_path: Path) -> None:
    """Its first line names node, which is in no folder of the system."""
    node = tmp_path / "versions/bin/node"
    node.parent.mkdir(parents=True)
    node.write_text('#!/bin/sh\nexec python3 "$@"\n')
    agent = shop / "node_modules/agent/cli.js"
    agent.parent.mkdir(parents=True)
    agent.write_text("#!/usr/bin/env node\n" + (shop / "agent.py").read_text())
    for one in (node, agent):
        one.chmod(0o755)
    with Model([]).serving() as model:
        env = {**model.env, "PATH": f"{node.parent}:{os.environ['PATH']}"}
        done = cli("guard", "--", "node_modules/agent/cli.js", "x", env=env, folder=shop)
    assert done.code == 0 and "the agent is done" in done.out, done.err


def test_it_ends_with_all_that_it_started_and_its_exit(cli: Cli, shop: Path) -> None:
    stay = "setsid sh -c 'trap \"\" TERM HUP; exec tail -f /dev/null' >&- 2>&- & exit 0"
    with Model([stay]).serving() as model:
        done = guard(cli, model, shop)
    assert done.code == 0, done.err
    with Model(["kill -9 $PPID"]).serving() as model:
        killed = guard(cli, model, shop)
    assert (killed.code, killed.json["state"], killed.json["agent_exit"]) == (137, "succeeded", 137)


def test_a_law_about_tokens_stops_requests_and_says_so(cli: Cli, shop: Path) -> None:
    """The session goes on, and ends as the agent ends."""
    (shop / "law.mg").write_text("forbidden(A) :- tool(A, /model_request), spent(/tokens, N), N > 150.\n")
    (shop / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    with Model(["true"] * 5).serving() as model:
        done = guard(cli, model, shop)
    assert (done.code, done.json["state"], done.json["agent_exit"]) == (3, "succeeded", 3)
    assert len(model.asked) == 2, "the second takes it past the bound, and a third is not sent"
    assert "refused: policy.forbidden; operator/law.mg:1 forbids it" in done.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("guard", "--", "no-such-agent"), "guard.agent"),
        (("guard", "--workspace", "nowhere", "--", "true"), "usage.workspace"),
        (("guard", "--show", ".", "--", "true"), "usage.arguments"),
        (("run", "guest.spak"), "guard.no_session"),
    ],
)
def test_what_cannot_begin_says_why(cli: Cli, tmp_path: Path, line: tuple[str, ...], code: str) -> None:
    spec = Path(__file__).parents[2] / "specs/guard/guest.spak"
    shutil.copy(spec, tmp_path / "guest.spak")
    done = cli(*line)
    assert done.code == 2 and code in done.err, done.err


def test_a_key_goes_over_no_plain_connection(cli: Cli, shop: Path) -> None:
    line = ("guard", "--", sys.executable, "agent.py", "x")
    done = cli(*line, env={"ANTHROPIC_BASE_URL": "http://models.example.org"}, folder=shop)
    assert done.code == 2 and "guard.address" in done.err
