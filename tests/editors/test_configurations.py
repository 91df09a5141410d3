"""The editors' files: they point at what is there and say what the server and the lexer say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from process_kit import WAIT_S
from spak.cli import VERBS
from spak.lang import parse
from spak.lang.parser.automaton import tables

EDITORS = Path(__file__).resolve().parents[2] / "editors"
VSCODE = EDITORS / "vscode"
PACKAGE = json.loads((VSCODE / "package.json").read_text())
LANGUAGE = json.loads((VSCODE / "language-configuration.json").read_text())
NEOVIM = (EDITORS / "neovim" / "spak.lua").read_text()


def test_vscode_names_files_that_are_here() -> None:
    named = [PACKAGE["main"]]
    named += [item["configuration"] for item in PACKAGE["contributes"]["languages"]]
    named += [item["path"] for item in PACKAGE["contributes"]["grammars"]]
    assert [name for name in named if not (VSCODE / name).is_file()] == []


def test_vscode_language_and_grammar_are_one() -> None:
    (language,), (grammar,) = PACKAGE["contributes"]["languages"], PACKAGE["contributes"]["grammars"]
    text = json.loads((VSCODE / grammar["path"]).read_text())
    assert grammar["language"] == language["id"] == "spak"
    assert grammar["scopeName"] == text["scopeName"]
    assert language["extensions"] == [f".{name}" for name in text["fileTypes"]]


def test_vscode_starts_the_server_that_there_is() -> None:
    script = (VSCODE / "extension.js").read_text()
    default = PACKAGE["contributes"]["configuration"]["properties"]["spak.command"]["default"]
    assert default == ["spak", "lsp"]
    assert default[1] in VERBS
    assert 'getConfiguration("spak").get("command")' in script
    required = set(re.findall(r'require\("([^"]+)"\)', script))
    provided = {"vscode", *(f"{name}/node" for name in PACKAGE["dependencies"])}
    assert required <= provided


def test_vscode_words_are_those_of_the_lexer() -> None:
    text = "optimize_loop tool.read_file the-end exit_code.s1 -> x a->b"
    pattern = re.compile(LANGUAGE["wordPattern"])
    tokens = parse(text).tokens
    words = {tables().words.name}
    wanted = [
        text[start:end]
        for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True)
        if kind in words
    ]
    assert [match[0] for match in pattern.finditer(text)] == wanted


def test_vscode_indents_after_an_open_bracket() -> None:
    more = re.compile(LANGUAGE["indentationRules"]["increaseIndentPattern"])
    less = re.compile(LANGUAGE["indentationRules"]["decreaseIndentPattern"])
    assert all(more.search(line) for line in ("TASK a {", "  NEXT {  // to", "TOOLS ["))
    assert not any(more.search(line) for line in ("TASK a { }", 'GOAL "{"', "}"))
    assert all(less.search(line) for line in ("}", "  ]"))


def test_neovim_starts_the_server_that_there_is() -> None:
    assert '{ "spak", "lsp" }' in NEOVIM
    assert '"*.spak"' in NEOVIM


SCRIPT = """
vim.g.spak_command = {{ {command} }}
vim.cmd("source {config}")
vim.cmd("edit {file}")
vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 50)
for _, item in ipairs(vim.diagnostic.get(0)) do print(item.code, item.lnum, item.col) end
vim.api.nvim_win_set_cursor(0, {{ 2, 11 }})
vim.lsp.buf.rename("first")
vim.wait(10000, function() return vim.fn.getline(2):find("first") ~= nil end, 50)
print(vim.fn.getline(2))
vim.cmd("qa!")
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_itself_shows_diagnostics_and_renames(tmp_path: Path) -> None:
    file = tmp_path / "bad.spak"
    file.write_text("AGENT A LEVEL 2 {\n  START -> a\n  TASK a { TOOLS [run] NEXT { success -> gone } }\n}\n")
    server = [sys.executable, "-c", "from spak.cli import main; main()", "lsp"]
    script = SCRIPT.format(
        command=", ".join(map(json.dumps, server)), config=EDITORS / "neovim" / "spak.lua", file=file
    )
    (tmp_path / "talk.lua").write_text(script)
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", "luafile talk.lua"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    said = (done.stdout + done.stderr).splitlines()
    assert "lang.unknown_task 2 41" in said
    assert "  START -> first" in said
