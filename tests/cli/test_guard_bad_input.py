"""`spak guard -- AGENT` and an agent or a model that behaves badly: each is answered, and nothing is lost."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from cli_calls import Cli, Done
from guard_kit import AGENT, Model, closing, left_of

pytestmark = pytest.mark.sandbox

CLIENT = Path(__file__).parents[1] / "mcp_client.py"
KEY = "correct-horse-of-a-person"
"""A key that looks like none."""
SIGNS = "\x1b]0;title\x07\x1b[2J\u202e\x9b31m"
OBEYED = {sign for sign in SIGNS if not sign.isprintable()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "kept.txt").write_text("one\n")
    (folder / "law.mg").write_text('forbidden(A) :- changed(A, "kept.txt", _).\n')
    (folder / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    for file in (AGENT, CLIENT):
        shutil.copy(file, folder)
    return folder


def guard(cli: Cli, model: Model, project: Path, env: Mapping[str, str] = MappingProxyType({})) -> Done:
    line = ("guard", "--json", "--wait", "0", "--", sys.executable, AGENT.name, "work")
    return cli(*line, env={**model.env, "ANTHROPIC_API_KEY": KEY, **env}, folder=project)


def python(code: str) -> str:
    """A command that does it inside."""
    return f"python3 - <<'END'\n{code}\nEND"


FLOOD = r"""
import json, os, threading, urllib.error, urllib.request
base = os.environ["ANTHROPIC_BASE_URL"].removesuffix("/anthropic")
def call(name, arguments, id=1):
    asked = {"jsonrpc": "2.0", "id": id, "method": "tools/call",
             "params": {"name": name, "arguments": arguments}}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-protocol-version": "2025-06-18", "date": "Thu, 01 Jan 1970 00:00:00 GMT"}
    request = urllib.request.Request(base + "/mcp", json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read() or b"{}")
    except urllib.error.HTTPError as error:
        return {"status": error.code}
"""


def test_a_hundred_calls_at_once_under_one_id_are_each_done_once(cli: Cli, project: Path) -> None:
    """And each caller gets the answer to its own."""
    code = (
        FLOOD
        + r"""
said = {}
def go(n):
    line = ["sh", "-c", f"echo {n} >> log; echo mine {n}"]
    answer = call("run", {"cmd": line})
    said[n] = answer["result"]["content"][0]["text"]
threads = [threading.Thread(target=go, args=(n,)) for n in range(100)]
for one in threads: one.start()
for one in threads: one.join()
print("right", sum(f"mine {n}\n" in text for n, text in said.items()))
print("lines", sorted(map(int, open("log").read().split())) == list(range(100)))
"""
    )
    with Model([python(code)]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert "right 100" in model.said(1) and "lines True" in model.said(1), model.said(1)
    assert cli("replay", done.json["run"], folder=project).code == 0


def test_ids_that_lie_are_answered_or_refused(cli: Cli, project: Path) -> None:
    code = (
        FLOOD
        + r"""
for id in (1, 1, "x" * 100_000, -1, 2 ** 70, 1.5, None, [1], {"a": 1}, True):
    answer = call("read_file", {"path": "a.txt"}, id)
    print(answer.get("id") == id and "result" in answer, end=" ")
print(call("read_file", {"path": "a.txt"})["result"]["content"][0]["text"])
"""
    )
    with Model([python(code)]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert model.said(1).startswith("True " * 5 + "False " * 5 + "one"), model.said(1)
    trace = (project / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    bodies = [json.loads(line)["body"] for line in trace.splitlines()]
    calls = [one for one in bodies if one.get("name") == "read_file" and one.get("act") == "tool"]
    assert len(calls) == 6, "what has no answer is not done"


def test_fifty_megabytes_are_refused_or_kept_and_the_session_goes_on(cli: Cli, project: Path) -> None:
    """As a call, as a file, and as what a command prints."""
    code = (
        FLOOD
        + r"""
big = "x" * (50 << 20)
try:
    print(call("write_file", {"path": "b.txt", "content": big}))
except OSError as error:
    print("refused")
open("c.txt", "w").write(big)
answer = call("run", {"cmd": ["sh", "-c", "head -c 50M /dev/zero | tr '\\0' x; echo the end"]})
print("printed", answer["result"]["isError"], len(answer["result"]["content"][0]["text"]))
"""
    )
    with Model([python(code), "wc -c < c.txt; ls b.txt"]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err[-2000:]
    first, said = model.said(1).split("\n")[:2]
    assert first in ("refused", "{'status': 413}") and said == f"printed False {1 << 20}", model.said(1)
    assert f"{50 << 20}\n" in model.said(2) and "No such file" in model.said(2), model.said(2)
    assert cli("replay", done.json["run"], folder=project).code == 0


def test_one_that_forks_without_end_is_held_still_and_ended(cli: Cli, project: Path) -> None:
    """Each of its turns is judged, and nothing of it is left."""
    forks = "for i in 1 2 3 4; do (while :; do (true) & done) >&- 2>&- & done; echo x > a.txt"
    with Model([forks, "echo x > kept.txt", "cat kept.txt"]).serving() as model:
        done = guard(cli, model, project)
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.err
    assert "kept.txt) were taken back" in model.said(2) and model.said(3).startswith("one\n"), model.said(3)
    assert not left_of(project)


def test_times_that_lie_hide_no_change(cli: Cli, project: Path) -> None:
    """The same size and the old time, one in the future, one before all."""
    hide = (
        "for f in a.txt kept.txt; do touch -r $f /tmp/t; echo two > $f; touch -r /tmp/t $f; done;"
        " cp a.txt future.txt; cp a.txt past.txt; touch -d 2200-01-01 future.txt; touch -d @9 past.txt"
    )
    later = (
        "for f in a.txt future.txt past.txt; do touch -r $f /tmp/t; echo too > $f; touch -r /tmp/t $f; done"
    )
    with Model([hide.replace("kept.txt", ""), hide, later]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert "were taken back" in model.said(2) and "kept.txt" in model.said(2), model.said(2)
    place = project / ".spak/runs" / done.json["run"] / "workspace"
    held = {path.name: path.read_text() for path in place.glob("*.txt")}
    assert held == {"kept.txt": "one\n", **dict.fromkeys(("a.txt", "future.txt", "past.txt"), "too\n")}


def test_signs_of_an_agent_reach_no_terminal(cli: Cli, project: Path) -> None:
    """In a header, a question, a call that waits, and names of files."""
    (project / "law.mg").write_text("forbidden(A) :- tool(A, /run), !approved(A).\n")
    home = {"XDG_CONFIG_HOME": str(project.parent / "alice")}
    keys = cli("keys", "make", "alice", env=home, folder=project).out
    (project / "spak.toml").write_text(f'[policy]\nlaw = ["law.mg"]\n{keys}')
    code = (
        FLOOD
        + f"""
signs = {SIGNS!r}
print(call("ask_person", {{"question": "may I? " + signs}}))
print(call("run", {{"cmd": ["echo", signs]}}))
import http.client, urllib.parse
line = http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(base).port)
line.putrequest("POST", "/mcp", skip_host=True)
line.putheader("host", "evil" + signs[:5])
line.putheader("content-type", "application/json")
line.putheader("content-length", "2")
line.endheaders(b"{{}}")
print(line.getresponse().status)
open("x" + signs.replace("/", "") + ".txt", "w").write("x")
"""
    )
    asked: list[Done] = []
    with Model([python(code)]).serving() as model:
        model.before[1] = lambda: asked.extend(
            cli(*line, "latest", env=home, folder=project) for line in (("guard", "asks"), ("approve",))
        )
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    name = done.json["run"]
    lines = (("show", name), ("apply", name, "--check"), ("guard", "spec", name))
    asked += [cli(*line, folder=project) for line in lines]
    assert "may I?" in asked[0].out and "echo" in asked[0].out, asked[0]
    assert "421" in model.said(1), model.said(1)
    for one in (*asked, done):
        assert not OBEYED.intersection(one.out + one.err), one


def test_a_key_that_the_models_server_repeats_is_in_no_record(cli: Cli, project: Path) -> None:
    body = json.dumps({"error": {"message": f"wrong key {KEY}"}}).encode()
    raw = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    code = r"""
import os, urllib.error, urllib.request
try:
    urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{}")
except urllib.error.HTTPError as error:
    print(error.code)
"""
    with Model([python(code)]).serving() as model:
        model.raw[1] = closing(raw)
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert "401" in model.said(2)
    assert KEY not in cli("export", done.json["run"], folder=project).out


def test_what_came_of_an_answer_that_broke_off_is_recorded_and_counted(cli: Cli, project: Path) -> None:
    usage = {"model": "claude-haiku-4-5", "usage": {"input_tokens": 7000, "output_tokens": 5}}
    event = f"data: {json.dumps({'type': 'message_start', 'message': usage})}\n\n".encode()
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n" + event
    code = r"""
import http.client, os, urllib.request
open("new.txt", "w").write("new")
try:
    urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{}").read()
except http.client.IncompleteRead as error:
    print("broken", len(error.partial))
"""
    with Model([python(code)]).serving() as model:
        model.raw[1] = closing(raw)
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert f"broken {len(event)}" in model.said(2), model.said(2)
    assert done.json["metrics"]["tokens"] == 2 * 110 + 7005
    out = cli("export", done.json["run"], folder=project).out
    assert "message_start" in out and "broke off: RemoteProtocolError [guard.upstream]" in out
    applied = cli("apply", done.json["run"], folder=project)
    assert applied.code == 0, f"an error of the line is no broken build: {applied.err}"
    assert (project / "new.txt").read_text() == "new"


HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf"


@contextmanager
def silent() -> Iterator[str]:
    """The address of a model that begins to answer and then says nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lines: list[socket.socket] = []

        def answer() -> None:
            line, _ = listener.accept()
            lines.append(line)
            line.recv(1 << 16)
            line.sendall(HALF)

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for line in lines:
            line.close()


def test_an_agent_that_ends_while_its_model_is_silent_ends_the_session(cli: Cli, project: Path) -> None:
    """And what it changed meanwhile is kept."""
    code = r"""
import http.client, os, signal, urllib.parse
port = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"]).port
line = http.client.HTTPConnection("127.0.0.1", port)
line.request("POST", "/openai/v1/responses", b"{}")
open("b.txt", "w").write(line.getresponse().read(4).decode())
os.kill(os.getppid(), signal.SIGKILL)
"""
    (project / "once.py").write_text(code)
    with Model(["exec python3 once.py"]).serving() as model, silent() as address:
        done = guard(cli, model, project, env={"OPENAI_BASE_URL": address})
    assert (done.code, done.json["state"], done.json["agent_exit"]) == (137, "succeeded", 137), done.err
    name = done.json["run"]
    folder = project / ".spak/runs" / name
    assert (folder / "workspace/b.txt").read_text() == "half"
    record = next(
        line for line in (folder / "trace.jsonl").read_text().splitlines() if "guard.upstream" in line
    )
    assert json.loads(record)["body"]["out"].startswith("half\nthe agent ended before"), record
    assert cli("replay", name, folder=project).code == 0
