"""Nothing that a spec, a model or a tool made can steer the terminal that shows it."""

from __future__ import annotations

import json
import os
import pty
import sys
from pathlib import Path

import pytest

from cli_calls import HELLO
from spak.cli import common

EVIL = "a\x1b]0;title\x07\x1b[2Jb\x9b31mc\rd\x08e\x7ff\u202eg"


def test_controls_are_written_out_and_text_stays() -> None:
    assert common.printable(EVIL) == r"a\x1b]0;title\x07\x1b[2Jb\x9b31mc\x0dd\x08e\x7ff\u202eg"
    assert common.printable("tab\tline\nümläut → 漢字 😀") == "tab\tline\nümläut → 漢字 😀"


def test_json_holds_no_control_and_says_the_same(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    common.emit({"name": EVIL})
    found = capfdbinary.readouterr().out.decode()
    assert json.loads(found) == {"name": EVIL}
    assert all(char == "\n" or char.isprintable() for char in found)


def test_standard_output_is_exact_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    exact = EVIL.replace("\x1b", "")  # click itself takes sequences out of a pipe
    common.out(exact)
    assert capsys.readouterr().out == exact + "\n"


@pytest.mark.parametrize(
    "call", [["check", EVIL], ["show", EVIL], ["run", HELLO, f"--{EVIL}"], ["run", EVIL, "--json"]]
)
def test_a_terminal_gets_no_sequence_from_arguments(tmp_path: Path, call: list[str]) -> None:
    seen = _on_a_terminal(tmp_path, call)
    assert "spak: " in seen
    assert not set("\x1b\x07\x08\x7f\x9b\u202e") & set(seen)


def _on_a_terminal(folder: Path, call: list[str]) -> str:
    """What a call writes to a terminal of its own."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(
            sys.executable,
            [sys.executable, "-c", "from spak.cli import main; raise SystemExit(main())", *call],
        )
    seen = b""
    try:
        while block := os.read(terminal, 4096):
            seen += block
    except OSError:  # the terminal is gone with its only writer
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return seen.decode()
