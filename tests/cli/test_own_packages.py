"""Tools and validators that installed packages bring: loaded where they are named, judged as any other."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import own_kit
from cli_calls import Cli, Done
from spak import config
from spak.errors import UserError
from spak.own import own

CODE = """
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry, ValidatorEntry
from spak.ports import Measurement
from spak.tools import results


SCHEMA = parts.members(["to"], to=parts.text("Who.", 40))


class Transfer:
    entry = ToolEntry("transfer", 1, "Moves money.", SCHEMA, writes=False, sandboxed=False)

    def run(self, call):
        return results.done(f"moved to {call.args['to']}")


class Reads(Transfer):
    entry = ToolEntry("reads", 1, "Reads.", SCHEMA, arguments={"to": "reads"})


class Open(Transfer):
    entry = ToolEntry("open", 1, "Takes all.", {"type": "object"})


class Taken(Transfer):
    entry = ToolEntry("write_file", 1, "Writes.", SCHEMA)


class Polite:
    entry = ValidatorEntry("Polite", 1, "Looks for thanks.", parts.members(["path"], path=parts.path()))

    def measure(self, call):
        ok = "thanks" in (call.workspace / call.options["path"]).read_text()
        return Measurement("checked", ({"name": "polite", "ok": ok, "code": ""},))


class TakenValidator(Polite):
    entry = ValidatorEntry("Linter", 1, "Looks.", SCHEMA)


def broken():
    raise RuntimeError("no")
"""
POINTS = "[spak.tools]\ntransfer = acme:Transfer\n[spak.validators]\nPolite = acme:Polite\n"
SPEC = """
TASK pay {
  VALIDATOR Polite { path: "a.txt" }
  step ask: llm.query { role: "coder" prompt_template: "Say something." output_var: word }
  step keep: tool.write_file { path: "a.txt" content: word }
  step move: tool.transfer { to: "alice" }
}
"""
LAW = 'permitted(A) :- tool(A, /transfer), argument(A, "to", "alice").\n'


def install(folder: Path, points: str = POINTS, version: str = "1.2") -> None:
    own_kit.install(folder, "acme", CODE, points, version)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    (tmp_path / "law.mg").write_text(LAW)
    (tmp_path / "pay.spak").write_text(SPEC)
    (tmp_path / "spak.toml").write_text('[tools]\npackages = ["acme"]\n[policy]\nlaw = ["law.mg"]\n')
    return tmp_path


def code(folder: Path) -> str:
    try:
        own(config.settings(folder, {}))
    except UserError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (POINTS, ""),
        ("[console_scripts]\nacme = acme:main\n", "tool.package"),
        ("[spak.tools]\ntransfer = acme:Gone\n", "tool.package"),
        ("[spak.tools]\ntransfer = acme_gone:Transfer\n", "tool.package"),
        ("[spak.tools]\ntransfer = acme:broken\n", "tool.package"),
        ("[spak.tools]\nother = acme:Transfer\n", "tool.package"),
        ("[spak.tools]\nPolite = acme:Polite\n", "tool.package"),
        ("[spak.validators]\ntransfer = acme:Transfer\n", "tool.package"),
        ("[spak.tools]\nreads = acme:Reads\n", "tool.package"),
        ("[spak.tools]\nopen = acme:Open\n", "tool.package"),
        ("[spak.tools]\nwrite_file = acme:Taken\n", "tool.taken"),
        ("[spak.validators]\nLinter = acme:TakenValidator\n", "tool.taken"),
    ],
)
def test_an_entry_point_is_a_tool_or_has_a_code(folder: Path, points: str, wanted: str) -> None:
    install(folder, points)
    assert code(folder) == wanted


def test_a_package_that_is_not_installed_is_unavailable(folder: Path) -> None:
    (folder / "spak.toml").write_text('[tools]\npackages = ["acme-of-nobody"]\n')
    assert code(folder) == "unavailable.tool"


def test_one_that_is_not_named_is_not_imported(folder: Path) -> None:
    (folder / "spak.toml").write_text("")
    assert own(config.settings(folder, {})).marks == {} and "acme" not in sys.modules


def test_a_run_uses_them_and_goes_on_with_the_same_ones_only(cli: Cli, folder: Path) -> None:
    def spak(*args: str) -> Done:
        return cli(*args, "--json", before=lambda: None)  # a child of this process, which finds the package

    waiting = spak("run", "pay.spak")
    assert waiting.code == 4, waiting.out
    install(folder, version="1.3")
    lost = spak("resume")
    assert (lost.code, lost.error) == (7, "unavailable.tool"), lost.out
    assert "acme 1.2" in lost.out
    install(folder)
    done = spak("step", "latest", "--answer", "thanks")
    assert done.code == 0, done.out
    lines = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert "moved to alice" in lines
    assert json.loads(lines.splitlines()[0])["body"]["host"]["own"] == {
        "Polite": "acme 1.2",
        "transfer": "acme 1.2",
    }
    shutil.rmtree(folder / "site")
    assert spak("replay", "latest").json["equal"] is True


def test_what_no_law_permits_is_denied(cli: Cli, folder: Path) -> None:
    (folder / "law.mg").write_text("")
    (folder / "pay.spak").write_text('TASK pay {\n  step move: tool.transfer { to: "alice" }\n}\n')
    denied = cli("run", "pay.spak", "--json", before=lambda: None)
    assert denied.code == 5 and "policy.denied" in denied.out, denied.out
