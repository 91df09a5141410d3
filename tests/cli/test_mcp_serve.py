"""`spak mcp`: our tools for a client of MCP, on standard input and output and by HTTP, as one run."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli_calls import SPAK, Cli

pytestmark = pytest.mark.sandbox

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "law.mg").write_text('forbidden(A) :- changed(A, "a.txt", _).\n')
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    return tmp_path


@contextmanager
def serving(project: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    line = [SPAK, "mcp", "--wait", "0", *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=project, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_a_client_on_standard_streams_works_in_a_copy(cli: Cli, project: Path) -> None:
    with serving(project) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None

        def ask(method: str, **params: Any) -> Any:
            process.stdin.write(json.dumps(request(method, params)) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())["result"]

        def call(name: str, **args: Any) -> tuple[bool, str]:
            found = ask("tools/call", name=name, arguments=args)
            return found["isError"], found["content"][0]["text"]

        assert ask("initialize", **HELLO)["serverInfo"]["name"] == "spak"
        assert "write_file" in {tool["name"] for tool in ask("tools/list")["tools"]}
        assert call("read_file", path="a.txt") == (False, "one\n")
        failed, said = call("write_file", path="a.txt", content="two")
        assert failed and "law.mg:1" in said
        assert call("write_file", path="b.txt", content="new")[0] is False
        process.stdin.close()
        assert process.wait() == 0
        assert "spak apply" in process.stderr.read()
    assert not (project / "b.txt").exists()
    assert cli("apply", "latest", folder=project).code == 0
    assert (project / "b.txt").read_text() == "new" and (project / "a.txt").read_text() == "one\n"
    for verb in (("ledger", "verify"), ("replay",)):
        assert cli(*verb, "latest", folder=project).code == 0


def test_by_http_only_who_knows_the_address_may_call(project: Path) -> None:
    with serving(project, "--port", "0") as process:
        assert process.stderr is not None
        address = next(line.split()[1] for line in process.stderr if "http://" in line)

        def ask(url: str, **headers: str) -> int:
            data = json.dumps(request("tools/list", {})).encode()
            asked = urllib.request.Request(url, data, {**HEADERS, **headers})
            try:
                with urllib.request.urlopen(asked) as reply:
                    return len(json.load(reply)["result"]["tools"])
            except urllib.error.HTTPError as error:
                return -error.code

        assert ask(address) == 9
        assert ask(address.rpartition("/")[0] + "/mcp") == -404
        assert ask(address, host="evil.example") == -421
        assert ask(address, origin="https://evil.example") == -403
        process.send_signal(signal.SIGINT)
        assert process.wait() == 6
