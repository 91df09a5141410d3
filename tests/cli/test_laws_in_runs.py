"""Every law that ships in a run with the tools that ship: what it permits happens, what it denies does not,
and the run says which of its rules denied."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from cli_kit import ROOT

pytestmark = [pytest.mark.sandbox, pytest.mark.findings("S5.1")]

LOCAL = """reachable_kind(/loopback).
allowed_host("localhost").
permitted(A) :- tool(A, /http_request), asks_url(A, "http", "localhost", _).
"""
GET = 'tool.http_request { url: "http://localhost:PORT/x" }'
SIGNED = GET.replace('/x"', '/x" headers: { Authorization: "secret://API_KEY" }')
COMMIT = 'tool.git_commit { message: "m" author: "A <a@example.org>" }'
READ = 'tool.read_file { path: "a.txt" }'
CASES: dict[str, tuple[str, str, str]] = {
    "base": ("", READ, 'tool.read_file { path: "../x" }'),
    "files": ("", READ, 'tool.write_file { path: ".git/x" content: "" }'),
    "shell": ("", 'tool.run { cmd: "cat a.txt" }', 'tool.run { cmd: "cat a.txt" verdict_file: ".git/x" }'),
    "binaries": ("", 'tool.run { cmd: "cat a.txt" }', 'tool.run { cmd: "wc a.txt" }'),
    "network": ('HOSTS ["nowhere.invalid"]', READ, 'tool.http_request { url: "https://nowhere.invalid/" }'),
    "secrets": ("", READ, 'tool.write_file { path: "b.txt" content: "secret://API_KEY" }'),
    "budgets": ("BUDGET { requests: 1 }", GET, GET),
    "patch": ("", READ, 'tool.apply_patch { patch: "no patch" }'),
    "guards": ("", READ, COMMIT),
    "checks_before_commit": ("", READ, COMMIT),
    "flow": ("", GET, GET),
    "money_per_day": ("", READ, 'llm.query { prompt: "?" }'),
    "no_network_after_secret": ("", SIGNED, GET),
    "read_before_overwrite": ("", READ, 'tool.write_file { path: "old.txt" content: "" }'),
    "two_persons": ("", READ, 'tool.run { cmd: "touch released" }'),
}
"""By law: a setting of CONFIG, a step that happens, and one that is denied."""
SETTINGS = {
    "checks_before_commit": 'must_pass("PyTest").',
    "money_per_day": "money_per_day(/micro_dollars, 0).",
    "no_network_after_secret": 'secret_may_go("API_KEY", /http_request, "headers.Authorization").',
    "two_persons": 'release_program("touch").',
    "binaries": 'allowed_binary("cat").',
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen = 0  # type: ignore[attr-defined]
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def prepared(folder: Path, law: str, port: int, setting: str, steps: str) -> str:
    """A spec beside its workspace, under the shipped law and the one that is named."""
    work = folder / "work"
    work.mkdir()
    for name in ("a.txt", "old.txt"):
        (work / name).write_text("one\n")
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    ships = [f"spak:{law}"] if (ROOT / f"specs/laws/{law}.mg").exists() else []
    (folder / "own.mg").write_text(LOCAL + SETTINGS.get(law, ""))
    (folder / "spak.toml").write_text(
        f"[policy]\nlaw = {json.dumps([*ships, 'own.mg'])}\n"
        '[network]\nrequests = ["public", "loopback"]\n[secrets]\nAPI_KEY = { env = "LAW_TEST_KEY" }\n'
    )
    text = f"AGENT Laws LEVEL 5 {{ CONFIG {{ {setting} }} START -> t TASK t {{ {steps} }} }}"
    (folder / "laws.spak").write_text(text.replace("PORT", str(port)))
    return "laws.spak"


def test_there_is_one_of_each() -> None:
    ships = {path.stem for folder in ("policy", "laws") for path in (ROOT / "specs" / folder).glob("*.mg")}
    assert {*CASES, "acts"} == ships


@pytest.mark.parametrize("law", CASES)
def test_a_law_that_ships_in_a_run(law: str, cli: Cli, server: Any, tmp_path: Path) -> None:
    setting, done, denied = CASES[law]
    path = prepared(tmp_path, law, server.server_port, setting, f"step a: {done} step b: {denied}")
    run = cli("run", path, "--workspace", "work", "--json", env={"LAW_TEST_KEY": "k" * 12})
    assert (run.code, run.json["state"]) == (5, "refused"), run.out
    assert f"{law}.mg:" in run.json["refusal"]["cause"], run.json["refusal"]
    assert server.seen == ("http://" in done), "the first step was done, the second was not"
    assert cli("replay", run.json["run"], "--json").json["equal"]


@pytest.mark.parametrize(
    ("line", "denied"), [("cat a.txt", False), ("wget -O- x", True)], ids=["fits", "odd"]
)
def test_acts_in_a_run(line: str, denied: bool, cli: Cli, tmp_path: Path) -> None:
    """A validator that starts a program which the law forbids is denied; any other line goes on."""
    judge = f'VALIDATOR Metric {{ cmd: "{line}" source: "a.txt" metric: "s" }}'
    path = prepared(tmp_path, "acts", 0, "", f"step a: {READ} {judge}")
    with (tmp_path / "own.mg").open("a") as law:
        law.write('forbidden(A) :- act(A, /validate), runs_program(A, _, "wget").\n')
    run = cli("run", path, "--workspace", "work", "--json")
    found = run.json["refusal"]
    told = "own.mg:" in found["cause"]
    assert ("policy.forbidden" in found["codes"], told) == (denied, denied), found
