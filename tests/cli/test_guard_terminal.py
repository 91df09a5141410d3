"""`spak guard -- AGENT` at a terminal, from an interactive shell: the size, Ctrl+C, Ctrl+Z and `fg`."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli_calls import Cli

pytestmark = pytest.mark.sandbox

AGENT = r"""
import os, signal, sys, termios, threading, tty
heard = {signal.SIGWINCH, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)

def hear():
    while True:
        if signal.sigwait(heard) == signal.SIGINT:
            print("interrupted", flush=True)
        else:
            print("size", *os.get_terminal_size(), flush=True)

threading.Thread(target=hear, daemon=True).start()
print("\x1b]0;a title\x07agent", *os.get_terminal_size(), flush=True)
for word in map(str.strip, iter(sys.stdin.readline, "end\n")):
    if word == "raw":
        before = termios.tcgetattr(0)
        tty.setraw(0)
        print("x" * 400_000 + "raw", flush=True)
        size = 0
        while size < 200_000:
            size += len(os.read(0, 65536))
        termios.tcsetattr(0, termios.TCSANOW, before)
        word = f"pasted {size}"
    if word == "self":
        os.kill(0, signal.SIGSTOP)
    print(f"heard <{word}> {len(word)}", flush=True)
sys.exit(3)
"""


class Screen:
    """A terminal with an interactive shell, and all that was drawn there."""

    def __init__(self, folder: Path, rows: int, columns: int) -> None:
        self.master, slave = os.openpty()
        self.drawn, self._seen = "", 0
        self.resize(rows, columns)
        spak = Path(sys.executable).parent
        env = {"PATH": f"{spak}:{os.environ['PATH']}", "HOME": str(folder), "PS1": "> ", "TERM": "xterm",
               "SPAK_HOME": str(folder.parent / "home")}  # fmt: skip
        self.shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"], cwd=folder, env=env, stdin=slave,
            stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def keys(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, text: str) -> str:
        """Reads on until it was drawn after what was waited for before; what came up to it."""
        while (at := self.drawn.find(text, self._seen)) < 0:
            self.drawn += os.read(self.master, 1 << 16).decode(errors="replace")
        before, self._seen = self.drawn[self._seen : at], at + len(text)
        return before


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    made = Screen(folder, 33, 99)
    yield made
    with suppress(ProcessLookupError):
        os.killpg(os.tcgetpgrp(made.master), 9)
    made.shell.kill()
    made.shell.wait()
    os.close(made.master)


def test_its_terminal_is_one_of_its_own(screen: Screen) -> None:
    screen.until("> ")
    screen.keys(f"spak guard -- {shlex.quote(sys.executable)} agent.py; echo ended $?\n")
    assert "\x1b]" not in screen.until("agent 99 33"), "a title is no drawing"
    screen.resize(20, 70)
    screen.until("size 70 20")
    screen.keys("\x1bP>|xterm(388)\x1b\\\x1b[?1;2c" + "wörter\n")
    screen.until("heard <wörter> 6")
    paste = threading.Thread(target=screen.keys, args=("raw\n",))
    paste.start()
    screen.until("x" * 1000)
    paste.join()
    paste = threading.Thread(target=os.write, args=(screen.master, b"y" * 200_000))
    paste.start()
    screen.until("heard <pasted 200000>")
    paste.join()
    screen.keys("\x03")
    screen.until("interrupted")
    for suspend in ("\x1a", "self\n"):
        screen.keys(suspend)
        screen.until("fg brings both back")
        screen.until("> ")
        screen.keys("jobs; stty -a | grep -c ' echo '\n")
        assert re.search(r"Stopped +spak guard", screen.until("\r\n1\r\n")), "its terminal echoes again"
        screen.until("> ")
        screen.keys("fg\n")
        screen.until("agent.py")
        screen.keys("again\n")
        screen.until("heard <again>")
    screen.keys("end\n")
    assert "the agent ended with 3" in screen.until("> ")


def test_an_agent_begins_without_questions(cli: Cli, tmp_path: Path) -> None:
    """Its first start would ask for a theme and look for servers of its own, which it does not reach."""
    (tmp_path / "claude").write_text('#!/bin/sh\npwd\ncat "$HOME/.claude.json"; echo\nenv | grep API_KEY\n')
    (tmp_path / "claude").chmod(0o755)
    done = cli("guard", "--json", "--", str(tmp_path / "claude"), folder=tmp_path)
    assert done.json["agent_exit"] == 0, done.err
    folder, state, *keys = [line for line in done.err.splitlines() if not line.startswith("spak:")]
    told = json.loads(state)
    assert told["hasCompletedOnboarding"] and told["projects"][folder]["hasTrustDialogAccepted"]
    assert f"ANTHROPIC_API_KEY={told['customApiKeyResponses']['approved'][0]}" in keys
