"""A tool that a team declares, from its file to a permitted and a denied call in real runs."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import own_kit
from cli_calls import Cli
from spak import config
from spak.begin import plan
from spak.errors import SpecError, UnavailableError
from spak.lang import parse
from spak.lang.imports import resolve
from spak.own import own
from spak.runner import Host

PAGE = Path(__file__).parents[2] / "docs/tools.md"
CHAPTER = PAGE.read_text(encoding="utf-8").split("## A tool of your own")[1]
FILES = dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", CHAPTER, re.S))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the chapter."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_check_knows_the_arguments(cli: Cli, folder: Path) -> None:
    assert cli("check", "release.spak", "--json").code == 0
    (folder / "release.spak").write_text(FILES["release.spak"].replace('"staging"', "3"))
    found = cli("check", "release.spak", "--json").json["files"][0]["diagnostics"]
    assert any("'target' wants string" in item["message"] for item in found), found
    (folder / "spak.toml").unlink()
    assert cli("check", "release.spak", "--json").code == 3


def test_only_the_command_line_has_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    whole = resolve(parse(FILES["release.spak"]), lambda _: None)
    with pytest.raises(SpecError) as raised:
        plan(whole, {})
    assert "deploy" in raised.value.message
    assert plan(whole, {}, own=own(config.settings())).host.tool("deploy").entry.name == "deploy"


def test_a_tool_that_is_elsewhere_is_no_crash() -> None:
    for look in (Host().tool, Host().validator):
        with pytest.raises(UnavailableError) as raised:
            look("deploy")
        assert raised.value.code == "unavailable.tool"


def test_the_gate_judges_its_calls(cli: Cli, folder: Path) -> None:
    calls = [{"tool": "deploy", "args": {"target": target}} for target in ("staging", "production")]
    done = cli("gate", stdin="".join(json.dumps(call) + "\n" for call in calls).encode())
    assert [json.loads(line)["decision"] for line in done.out.splitlines()] == ["allow", "deny"]


def test_a_permitted_call_runs_and_replays_without_the_tool(cli: Cli, folder: Path) -> None:
    done = cli("run", "release.spak", "--json")
    assert done.code == 0, done.out + done.err
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "deployed to staging" in trace
    body = json.loads(trace.splitlines()[0])["body"]
    assert body["rules"]["catalog"]["tools"]["deploy"]["version"] == 1
    assert list(body["host"]["own"]) == ["deploy"]
    (folder / "spak.toml").unlink()
    (folder / "tools/deploy.toml").unlink()
    assert cli("replay", "latest", "--json").json["equal"] is True
    assert cli("resume", "latest", "--json").code == 0, "an ended run stays as it is"


@pytest.mark.parametrize("law", [FILES["law.mg"], ""])
def test_what_no_rule_permits_is_denied(cli: Cli, folder: Path, law: str) -> None:
    (folder / "law.mg").write_text(law)
    target = "production" if law else "staging"
    (folder / "release.spak").write_text(FILES["release.spak"].replace("staging", target))
    done = cli("run", "release.spak", "--json")
    assert done.code == 5 and "policy.denied" in done.out, done.out
    assert "deployed" not in (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()


@pytest.mark.parametrize("changed", ["spak.toml", "tools/deploy.py", "tools/deploy.toml"])
def test_a_run_goes_on_with_the_tool_that_it_began_with(cli: Cli, folder: Path, changed: str) -> None:
    ask = 'step word: llm.query { role: "coder" prompt_template: "Where?" output_var: word }\n  '
    (folder / "release.spak").write_text(FILES["release.spak"].replace("step ship", ask + "step ship"))
    waiting = cli("run", "release.spak", "--json")
    assert waiting.code == 4, waiting.out
    text = (folder / changed).read_text()
    (folder / changed).write_text("" if changed == "spak.toml" else text + "# changed\n")
    lost = cli("resume", "latest", "--json")
    assert (lost.code, lost.error) == (7, "unavailable.tool"), lost.out
    forked = cli("fork", "latest", "--at", "1", "--json")
    assert (forked.code, forked.error) == (7, "unavailable.tool"), forked.out
    assert cli("replay", "latest", "--json").json["equal"] is True
    (folder / changed).write_text(text)
    done = cli("step", "latest", "--answer", "there", "--json")
    assert done.code == 0, done.out


def test_a_secret_goes_where_the_law_lets_it_and_into_no_record(cli: Cli, folder: Path) -> None:
    (folder / "spak.toml").write_text(FILES["spak.toml"] + '[secrets]\nKEY = { env = "ACME_KEY" }\n')
    (folder / "release.spak").write_text(
        FILES["release.spak"].replace('"staging"', '"staging" note: "secret://KEY"')
    )
    refused = cli("run", "release.spak", "--json", env={"ACME_KEY": "hunter2hunter2"})
    assert refused.code == 5 and "policy.forbidden" in refused.out, refused.out
    (folder / "law.mg").write_text(FILES["law.mg"] + 'secret_may_go("KEY", /deploy, "note").\n')
    undeclared = cli("run", "release.spak", "--json", env={"ACME_KEY": "hunter2hunter2"})
    assert undeclared.code == 5 and "does not declare the secret KEY" in undeclared.out, undeclared.out
    tool = folder / "tools/deploy.toml"
    tool.write_text('secrets = ["KEY"]\n' + tool.read_text())
    done = cli("run", "release.spak", "--json", env={"ACME_KEY": "hunter2hunter2"})
    assert done.code == 0, done.out
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "deployed to staging [redacted:key]" in trace and "hunter2" not in trace


def test_a_program_beside_the_declaration_runs_on_its_own(cli: Cli, folder: Path) -> None:
    (folder / "tools/deploy.toml").write_text(
        'name = "deploy"\nversion = 1\nsummary = "Looks."\nargv = ["look.sh", "{target}"]\n'
        'files = ["look.sh", "lib/a.txt"]\n[arguments.target]\ntype = "string"\n'
    )
    (folder / "tools/lib").mkdir()
    (folder / "tools/lib/a.txt").write_text("beside\n")
    (folder / "tools/look.sh").write_text("#!/bin/sh\necho at $1; cat lib/a.txt; ls; touch x || exit 3\n")
    done = cli("run", "release.spak", "--json")
    assert done.code == 1 and "tool.exit" in done.out, done.out
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "at staging\\nbeside\\nlib\\nlook.sh\\n" in trace and "Read-only" in trace


class Bank(BaseHTTPRequestHandler):
    """Takes transfers, and keeps what it was sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.seen.append((self.headers["authorization"], body))  # type: ignore[attr-defined]
        self.send_response(201)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *args: object) -> None:
        return None


@pytest.fixture
def bank(folder: Path) -> Iterator[list[tuple[str, str]]]:
    """The chapter's bank, at the port that its files then name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bank)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in ("tools/transfer.toml", "tools/transfer.py"):
        (folder / name).write_text(FILES[name].replace("8080", str(server.server_address[1])))
    (folder / "spak.toml").write_text(
        '[tools]\nfiles = ["tools/transfer.toml"]\n[policy]\nlaw = ["bank.mg"]\n'
        '[network]\nrequests = ["public", "loopback"]\n[secrets]\nBANK_KEY = { env = "BANK" }\n'
    )
    yield server.seen  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


SECRET = {"BANK": "hunter2hunter2"}


def test_a_law_about_transfers_permits_one_and_its_request_is_sent(
    cli: Cli, folder: Path, bank: list[tuple[str, str]]
) -> None:
    done = cli("run", "pay.spak", "--json", env=SECRET)
    assert done.code == 0, done.out
    assert bank == [("Bearer hunter2hunter2", '{"to": "alice", "amount": 20}')]
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "the bank says 201 done" in trace and "hunter2" not in trace
    acts = [json.loads(line) for line in trace.splitlines() if '"kind":"act"' in line]
    assert [act["side"]["requests"] for act in acts] == [1]
    (folder / "spak.toml").unlink()
    assert cli("replay", "latest", "--json").json["equal"] is True


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    [
        ("pay.spak", "alice", "mallory", "policy.denied"),
        ("pay.spak", "20", "51", "policy.denied"),
        ("pay.spak", "secret://BANK_KEY", "secret://OTHER", "policy.forbidden"),
        ("pay.spak", 'HOSTS ["127.0.0.1"]', 'HOSTS ["a.example"]', "policy.forbidden"),
        ("bank.mg", "reachable_kind(/loopback).", "", "policy.forbidden"),
        ("bank.mg", 'secret_may_go("BANK_KEY", /transfer, "key").', "", "policy.forbidden"),
        ("spak.toml", '"public", "loopback"', '"public"', "http_request.reach"),
        ("tools/transfer.py", "/transfers", ".evil.example/", "tool.request"),
    ],
)
def test_what_the_law_the_spec_or_the_settings_do_not_let_is_not_sent(
    cli: Cli, folder: Path, bank: list[tuple[str, str]], name: str, old: str, new: str, code: str
) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    done = cli("run", "pay.spak", "--json", env=SECRET)
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert done.code in (1, 5) and code in trace + done.out, done.out
    assert bank == []


EDITOR = """
from pathlib import Path
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.tools import results

class Edit:
    entry = ToolEntry("edit_tool", 1, "Edits a tool.", parts.members([]), writes=False, sandboxed=False)

    def run(self, call):
        Path("tools/deploy.py").write_text("print(1)")
        return results.done("edited")
"""


def test_a_run_that_changed_its_tool_is_refused(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = own_kit.install(folder, "acme-edit", EDITOR, "[spak.tools]\nedit_tool = acme_edit:Edit\n")
    monkeypatch.syspath_prepend(str(site))
    (folder / "spak.toml").write_text(
        FILES["spak.toml"].replace("[tools]", '[tools]\npackages = ["acme-edit"]')
    )
    (folder / "law.mg").write_text(FILES["law.mg"] + "permitted(A) :- tool(A, /edit_tool).\n")
    change = "step change: tool.edit_tool { }\n  "
    (folder / "release.spak").write_text(FILES["release.spak"].replace("step ship", change + "step ship"))
    done = cli("run", "release.spak", "--json", before=lambda: None)
    assert done.code == 1, done.out
    trace = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "edited" in trace and "tool.changed" in trace and "deployed to" not in trace
