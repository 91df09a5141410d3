"""A model's answer on a terminal while it comes: whole, without secrets, nothing that steers the terminal."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cli_calls import ASK, become, forked
from llm_stub import MODEL, Stub
from spak.cli.progress import Watcher

KEY = "canary-5f1d0c77e0b94a"
SAID = f"one word after another, and the key {KEY} too\x1b[2J\x07 with \u202e a last\nline: done"


def watcher(width: int = 40) -> tuple[Watcher, io.StringIO, list[str]]:
    out, told = io.StringIO(), []
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    held: Any = SimpleNamespace(run=SimpleNamespace(history=SimpleNamespace(rows=[])))
    status = SimpleNamespace(update=lambda text: told.append(text.plain))
    return Watcher(held, console, status), out, told


def test_a_line_without_end_is_broken_and_the_rest_stands_in_the_status_line() -> None:
    seen, out, told = watcher()
    for piece in ("word " * 9, "and a tail", "\n", "[bold]x[/]\n", "half", "", "new\n"):
        seen.text(piece)
    lines = out.getvalue().splitlines()
    assert all(len(line) <= 40 for line in lines[:2])
    shown = "".join(line.removeprefix("  │ ") for line in lines)
    assert shown.startswith("word " * 9 + "and a tail[bold]x[/]half")
    assert shown.endswith("again, from the beginning:new")
    assert told[1].endswith("and a tail")


def test_the_last_line_of_a_tool_stands_in_the_status_line(tmp_path: Path) -> None:
    """It comes while the tool waits for a file, which is made when the line is seen."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "slow.py").write_text(
        "import os, time\nprint('10%\\rlinking \\x1b[2Jnow', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
    )
    step = 'step build: tool.run { cmd: "python slow.py" timeout_s: 20 }'
    (tmp_path / "slow.spak").write_text(f"task Slow {{\n  {step}\n  success: exit_code(build) == 0\n}}\n")
    seen = on_a_terminal(tmp_path, "run", "slow.spak", "--workspace", "ws", until=b"linking now")
    assert "linking now" in seen and "10%" not in seen and "\x1b[2J" not in seen and "succeeded" in seen


def on_a_terminal(folder: Path, *args: str, until: bytes = b"") -> str:
    """What a call writes to standard error, a terminal of its own; standard output is one too. When
    `until` is there, the file `go` is made in the run's workspace."""
    child, terminal = pty.fork()
    if child == 0:
        become(folder, args, {"SPAK_TEST_KEY": KEY, "TERM": "xterm"}, lambda: None, (0, 1, 2))
    seen = b""
    try:
        while block := os.read(terminal, 4096):
            seen += block
            if until and until in seen:
                (workspace,) = folder.glob(".spak/runs/*/workspace")
                (workspace / "go").touch()
    except OSError:  # the terminal is gone with its only writer
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return seen.decode()


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["terminal", "json"])
def test_an_answer_is_shown_while_it_comes_to_people_only(tmp_path: Path, more: tuple[str, ...]) -> None:
    with Stub() as stub:
        settings = f'mode = "ollama"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\nkey_env = "SPAK_TEST_KEY"\n'
        (tmp_path / "spak.toml").write_text(f"[llm]\n{settings}", encoding="utf-8")
        (tmp_path / "ask.spak").write_text(ASK, encoding="utf-8")
        stub.script = [f"say {SAID}"]
        seen = on_a_terminal(tmp_path, "run", "ask.spak", *more)
        piped = forked(tmp_path, ("run", "ask.spak"), env={"SPAK_TEST_KEY": KEY})
    assert KEY not in seen + piped.out + piped.err
    assert "│" not in piped.err, "no terminal: no stream"
    if more:
        assert "│" not in seen
        return
    assert "one word after another" in seen and "[redacted:key]" in seen and "line: done" in seen
    assert r"\x1b[2J\x07" in seen and "\x1b[2J" not in seen and "\x07" not in seen and "\u202e" not in seen
