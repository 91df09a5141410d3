"""Declared tools: what a declaration may say, and what a call of one runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spak import config
from spak.datalog.values import Name
from spak.errors import UsageError
from spak.lang.catalog import Catalog
from spak.lang.schema import violations
from spak.policy.actions import Action
from spak.policy.facts import ACTION, facts
from spak.policy.history.trace import BLIND
from spak.ports import Call, Job, Outcome, Stream, ToolResult
from spak.tools import declared

HEAD = 'name = "deploy"\nversion = 2\nsummary = "Deploys."\n'
ARGV = 'argv = ["python", "deploy.py", "{target}"]\nfiles = ["deploy.py"]\n'
ARGUMENTS = '[arguments.target]\ntype = "string"\n'


def declare(folder: Path, text: str = HEAD + ARGV + ARGUMENTS) -> Path:
    (folder / "deploy.py").write_text("print(1)\n")
    (folder / "deploy.toml").write_text(text)
    return folder / "deploy.toml"


def load(path: Path) -> declared.Declared:
    return declared.load(path, {"python"})


def test_a_declaration_is_an_entry_like_any_other(tmp_path: Path) -> None:
    tool = load(declare(tmp_path, HEAD + 'optional = ["note"]\n' + ARGV + ARGUMENTS + "[arguments.note]\n"))
    entry = tool.entry
    assert (entry.name, entry.version, entry.effect, entry.writes) == ("deploy", 2, "effect", False)
    assert not violations(entry.schema, {"target": "a"})
    assert [item.code for item in violations(entry.schema, {"odd": 1})] == [
        "schema.required",
        "schema.unknown_member",
    ]
    again = Catalog.from_json(Catalog(tools={"deploy": entry}).to_json())
    assert again.tools["deploy"] == entry


def test_the_law_is_told_of_the_name_and_every_argument(tmp_path: Path) -> None:
    uses = {"deploy": load(declare(tmp_path)).entry.arguments}
    found = facts(Action("deploy", {"target": "x", "many": [1, True]}), replace(BLIND, declared=uses))
    assert sorted(str(args[1:]) for name, args in found if name == "argument") == [
        "('many.0', 1)",
        "('many.1', 'true')",
        "('target', 'x')",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name = ", "tool.declaration"),
        (HEAD, "tool.declaration"),
        (HEAD + 'argv = ["python"]\nhosts = ["https://a.example/path"]\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nhosts = ["ftp://a.example"]\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nhosts = ["a b"]\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nhosts = ["a.example"]\nrequests = 17\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nrequests = 2\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nsecrets = ["secret://KEY"]\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\nodd = 1\n', "tool.declaration"),
        (HEAD + 'argv = ["python", 1]\n', "tool.declaration"),
        (HEAD + 'argv = ["python"]\neffect = "none"\n', "tool.declaration"),
        (HEAD.replace("2", "0") + 'argv = ["python"]\n', "tool.declaration"),
        (HEAD.replace("2", "true") + 'argv = ["python"]\n', "tool.declaration"),
        (HEAD.replace("deploy", "De ploy") + ARGV + ARGUMENTS, "tool.declaration"),
        (HEAD + ARGV, "tool.declaration"),  # {target} is no argument
        (HEAD + 'optional = ["target"]\n' + ARGV + ARGUMENTS, "tool.declaration"),
        (HEAD.replace("deploy", "run") + ARGV + ARGUMENTS, "tool.taken"),
        (HEAD.replace("deploy", "read") + ARGV + ARGUMENTS, "tool.taken"),
        (HEAD.replace("deploy", "shell") + ARGV + ARGUMENTS, "tool.taken"),
        (HEAD.replace("deploy", "validate") + ARGV + ARGUMENTS, "tool.taken"),
        (HEAD + ARGV + '[arguments.target]\ntype = "text"\n', "tool.schema"),
        (HEAD + ARGV + '[arguments.target]\nformat = "uri"\n', "tool.schema"),
        (HEAD + ARGV + ARGUMENTS + '[arguments."a b"]\n', "tool.schema"),
        (HEAD + ARGV + ARGUMENTS + "default = 2020-01-01\n", "tool.schema"),
        (HEAD + 'argv = ["python"]\narguments = {a = 1}\n', "tool.schema"),
        (HEAD + 'optional = ["b"]\n' + ARGV + ARGUMENTS, "tool.schema"),
        (HEAD + 'argv = ["curl"]\n', "tool.program"),
        (HEAD + 'argv = ["/usr/bin/env"]\n', "tool.program"),
        (HEAD + 'argv = ["python"]\nfiles = ["gone.py"]\n', "tool.program"),
        (HEAD + 'argv = ["python"]\nfiles = ["../deploy.py"]\n', "tool.program"),
        (HEAD + 'argv = ["python"]\nfiles = ["/etc/passwd"]\n', "tool.program"),
        (HEAD + 'argv = ["python"]\nfiles = ["out.py"]\n', "tool.program"),
        (HEAD + 'argv = ["python"]\nfiles = ["open.py"]\n', "tool.program"),
    ],
)
def test_a_bad_declaration_has_a_code(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "outside.py").write_text("")
    (tmp_path / "tools/out.py").symlink_to("../outside.py")
    (tmp_path / "tools/open.py").write_text("")
    (tmp_path / "tools/open.py").chmod(0o666)
    with pytest.raises(UsageError) as raised:
        load(declare(tmp_path / "tools", text))
    assert raised.value.code == code, raised.value


def test_a_file_that_every_user_may_write_declares_nothing(tmp_path: Path) -> None:
    path = declare(tmp_path)
    path.chmod(0o666)
    with pytest.raises(UsageError, match="every user may write it"):
        load(path)


def test_the_hash_is_of_the_declaration_and_its_files(tmp_path: Path) -> None:
    first = load(declare(tmp_path)).hash
    assert load(declare(tmp_path)).hash == first
    (tmp_path / "deploy.py").write_text("print(2)\n")
    second = load(tmp_path / "deploy.toml").hash
    assert second != first
    assert load(declare(tmp_path, HEAD + "# a note\n" + ARGV + ARGUMENTS)).hash not in (first, second)


def test_two_files_do_not_declare_one_name(tmp_path: Path) -> None:
    path = declare(tmp_path)
    with pytest.raises(UsageError) as raised:
        declared.table((path, path), {"python"})
    assert raised.value.code == "tool.taken"


class Watching:
    """A launcher that starts nothing: it keeps the job, and what the job would have seen."""

    entry = config.catalog().launchers["restricted"]

    def __init__(self) -> None:
        self.job: Job | None = None
        self.files: dict[str, str] = {}

    def probe(self) -> str:
        return ""

    def run(self, job: Job) -> Outcome:
        self.job = job
        self.files = {path.name: path.read_text() for path in job.workspace.iterdir()}
        return Outcome("exited", 0, Stream(b"done"))

    def start(self, job: Job, pass_fds: Any = (), seccomp_extra: bytes = b"") -> Any:
        raise NotImplementedError


def called(tool: declared.Declared, folder: Path, **args: Any) -> tuple[ToolResult, Watching]:
    launcher = Watching()
    return tool.run(Call("1", "deploy", args, folder, launcher)), launcher


def test_a_call_sees_its_files_and_its_arguments_alone(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/secret.txt").write_text("of the workspace")
    tool = load(declare(tmp_path / "tools"))
    result, seen = called(tool, tmp_path / "ws", target="a {target} b")
    assert (result.status, result.exit, result.output) == ("exited", 0, b"done")
    assert seen.job is not None and seen.files == {"deploy.py": "print(1)\n"}
    assert seen.job.argv == ("python", "deploy.py", "a {target} b") and not seen.job.writable
    assert json.loads(seen.job.stdin) == {"target": "a {target} b"}
    assert not seen.job.workspace.exists()


@pytest.mark.parametrize("name", ["deploy.py", "deploy.toml"])
@pytest.mark.parametrize("change", ["write", "remove", "open"])
def test_a_tool_that_was_changed_meanwhile_is_refused(tmp_path: Path, name: str, change: str) -> None:
    tool, path = load(declare(tmp_path)), tmp_path / name
    if change == "write":
        path.write_text(path.read_text() + "\n# changed by the run\n")
    elif change == "open":
        path.chmod(0o666)
    else:
        path.unlink()
    result, seen = called(tool, tmp_path, target="a")
    assert [item["code"] for item in result.diagnostics] == ["tool.changed"] and seen.job is None


@pytest.mark.parametrize("value", ["--all", "a\0b", "x" * 70_000])
def test_an_argument_becomes_no_option(tmp_path: Path, value: str) -> None:
    result, seen = called(load(declare(tmp_path)), tmp_path, target=value)
    assert [item["code"] for item in result.diagnostics] == ["tool.argument"] and seen.job is None


def test_a_file_beside_the_declaration_may_be_the_program(tmp_path: Path) -> None:
    text = HEAD + 'argv = ["deploy.py", "--n={n}"]\nfiles = ["deploy.py"]\n[arguments.n]\ntype = "integer"\n'
    _, seen = called(load(declare(tmp_path, text)), tmp_path, n=-3)
    assert seen.job is not None and seen.job.argv == ("./deploy.py", "--n=-3")


# ---- requests


class Handler(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = f"{self.path} {self.headers['authorization']} {body.decode()}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        return None


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


class Asking(Watching):
    """A launcher whose program asks for one request after the other, and then prints its replies."""

    def __init__(self, *asked: object) -> None:
        super().__init__()
        self.asked = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in asked]

    def run(self, job: Job) -> Outcome:
        super().run(job)
        replies = json.loads(job.stdin)["replies"]
        if len(replies) < len(self.asked):
            return Outcome("exited", declared.ASKS, Stream(self.asked[len(replies)]))
        return Outcome("exited", 0, Stream(json.dumps(replies).encode()))


def sent(tmp_path: Path, port: int, *asked: object, judged: bool = True, more: str = "") -> ToolResult:
    text = HEAD + f'argv = ["python"]\nhosts = ["http://127.0.0.1:{port}"]\n{more}' + ARGUMENTS
    observed = {"hosts": [["127.0.0.1", ["127.0.0.1"]]]} if judged else {}
    call = Call(
        "1", "deploy", {"target": "a"}, tmp_path, Asking(*asked), observed=observed, reach=("loopback",)
    )
    return load(declare(tmp_path, text)).run(call)


def post(port: int, **more: object) -> dict[str, object]:
    url = f"http://127.0.0.1:{port}/pay"
    return {"url": url, "method": "POST", "headers": {"Authorization": "Bearer k"}, "body": "5", **more}


def test_a_program_gets_replies_of_the_host_that_was_judged(tmp_path: Path, port: int) -> None:
    result = sent(tmp_path, port, post(port), post(port, body="6"), more="requests = 2\n")
    assert json.loads(result.output) == [
        {"status": 200, "body": "/pay Bearer k 5"},
        {"status": 200, "body": "/pay Bearer k 6"},
    ]
    assert (result.requests, result.exit) == (2, 0) and result.request_bytes > 200


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (b"no json", "tool.request"),
        ([], "tool.request"),
        ({"url": "http://127.0.0.1:1/"}, "tool.request"),
        ({"url": "https://other.example/"}, "tool.request"),
        ({"url": "http://127.0.0.1:{port}/", "odd": 1}, "tool.request"),
        ({"url": "http://127.0.0.1:{port}/", "headers": {"host": "a.example"}}, "http_request.header"),
    ],
)
def test_what_is_no_request_is_not_sent(tmp_path: Path, port: int, asked: Any, code: str) -> None:
    if isinstance(asked, dict):
        asked["url"] = asked["url"].replace("{port}", str(port))
    result = sent(tmp_path, port, asked)
    assert [item["code"] for item in result.diagnostics] == [code] and result.requests == 0


def test_more_requests_than_declared_are_not_sent(tmp_path: Path, port: int) -> None:
    result = sent(tmp_path, port, post(port), post(port))
    assert [item["code"] for item in result.diagnostics] == ["tool.request"] and result.requests == 1


def test_an_address_that_nobody_judged_is_not_connected_to(tmp_path: Path, port: int) -> None:
    result = sent(tmp_path, port, post(port), judged=False)
    assert [item["code"] for item in result.diagnostics] == ["http_request.address"]


def test_the_law_is_told_of_hosts_and_of_secrets_that_are_not_declared(tmp_path: Path) -> None:
    text = (
        HEAD + 'argv = ["python"]\nhosts = ["api.example.org"]\nrequests = 3\nsecrets = ["KEY"]\n' + ARGUMENTS
    )
    uses = {"deploy": load(declare(tmp_path, text)).entry.arguments}
    world = replace(BLIND, declared=uses, resolve=lambda host: ("93.184.216.34",))
    found = facts(Action("deploy", {"target": "secret://KEY"}), world)
    assert ("asks_url", (ACTION, "https", "api.example.org", 443)) in found
    assert ("host_address", (ACTION, "93.184.216.34", Name("/public"))) in found
    assert ("takes", (ACTION, Name("/requests"), 3)) in found and ("sends_body", (ACTION,)) in found
    assert not any(name == "unreadable" for name, _ in found)
    odd = facts(Action("deploy", {"target": "secret://OTHER"}), world)
    assert [args[1] for name, args in odd if name == "unreadable"] == ["gate.secret"]
    bare = {"deploy": load(declare(tmp_path)).entry.arguments}
    none = facts(Action("deploy", {"target": "secret://KEY"}), replace(BLIND, declared=bare))
    assert [args[1] for name, args in none if name == "unreadable"] == ["gate.secret"]
