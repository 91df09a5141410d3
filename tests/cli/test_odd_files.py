"""Named pipes, sockets and devices in the place of a file: refused at once, whatever reads it; pipes that the
shell has opened are read."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_calls import HELLO, Cli
from spak.inputs import open_input, read_at_most, read_text

KINDS = {"fifo": "a named pipe", "socket": "a socket", "device": "a device"}
SPAK = str(Path(sys.executable).with_name("spak"))
CALLS = [
    ["check", "ODD"],
    ["run", "ODD"],
    ["run", "ODD", "--timeout", "5"],
    ["fmt", "ODD"],
    ["fmt", "--check", "ODD"],
    ["graph", "ODD"],
    ["graph", HELLO, "--compare", "ODD"],
    ["diff", "ODD", HELLO],
    ["diff", HELLO, "ODD"],
    ["edit", "ODD", "rename_task A B"],
    ["edit", HELLO, "--ops", "ODD"],
    ["policy", "check", "ODD.mg"],
    ["verify", "--artifact", "ODD", "--spec", HELLO],
    ["verify", "--artifact", HELLO, "--spec", "ODD"],
    ["import", "ODD"],
    ["replay", "ODD.jsonl"],
    ["ledger", "verify", "ODD.jsonl"],
    ["gate", "--policy", "ODD.mg"],
]


@pytest.fixture(params=sorted(KINDS))
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """What is said of it, and its name without its ending."""
    name = tmp_path / "odd"
    listening = None
    for path in (name, name.with_suffix(".mg"), name.with_suffix(".jsonl")):
        if request.param == "fifo":
            os.mkfifo(path)
        elif request.param == "device":
            path.symlink_to("/dev/zero")
        else:
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(os.path.relpath(path))
            listening.close()
    yield KINDS[request.param], "odd"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call[:2]).replace(HELLO, "hello"))
def test_what_is_no_file_is_refused_at_once(cli: Cli, odd: tuple[str, str], call: list[str]) -> None:
    kind, name = odd
    words = [word.replace("ODD", name) for word in call]
    done = cli(*words, *([] if call[0] == "gate" else ["--json"]))
    assert done.code == 2, (done.out, done.err)
    said = done.err if call[0] == "gate" else done.out
    assert "usage.file" in said and f"{kind}, not a file" in said
    assert not Path(".spak/runs").exists()


@pytest.mark.parametrize("call", [["step", "latest", "--answer-file", "odd"], ["check", HELLO]])
def test_files_that_are_read_beside_the_spec(cli: Cli, tmp_path: Path, call: list[str]) -> None:
    if call[0] == "step":
        (tmp_path / "ask.spak").write_text('task A { step q: llm.query { prompt: "?" output_var: x } }')
        assert cli("run", "ask.spak", "--json").code == 4
        os.mkfifo(tmp_path / "odd")
        done = cli(*call, "--json")
        assert (done.code, done.error) == (2, "usage.file")
    else:
        os.mkfifo(tmp_path / "spak.toml")
        done = cli("run", HELLO, "--json")
        assert (done.code, done.error) == (2, "usage.config") and "a named pipe" in done.out


def test_an_import_that_is_no_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text('IMPORT "b.spak"\ntask A { step s: tool.list_files { } }')
    os.mkfifo(tmp_path / "b.spak")
    done = cli("check", "a.spak", "--json")
    assert done.code == 3 and "is not a file" in done.out


@pytest.mark.parametrize("source", ["<(cat {})", "/dev/stdin", "-", "/dev/fd/0", "/proc/self/fd/0"])
def test_pipes_of_the_shell_are_read(tmp_path: Path, source: str) -> None:
    call = f"{SPAK} check {source.format(HELLO)} --json"
    line = call if "<" in source else f"{call} < <(cat {HELLO})"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"][0]["ok"] is True


def test_a_file_swapped_for_a_pipe_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the opening; and the opening does not block."""
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_text("x")
    os.mkfifo(pipe)
    real = os.open

    def swapped(path: object, flags: int) -> int:
        return real(pipe if path == file else path, flags)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(OSError, match="a named pipe, not a file"):
        open_input(file)


def test_ordinary_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes("a\r\nb\u00e4\n".encode())
    (tmp_path / "link").symlink_to(file)
    assert read_text(tmp_path / "link") == "a\nb\u00e4\n"
    assert (read_at_most(file, 7), read_at_most(file, 6)) == (file.read_bytes(), None)
    with pytest.raises(IsADirectoryError), open_input(tmp_path):
        pass
    with pytest.raises(FileNotFoundError), open_input(tmp_path / "nowhere"):
        pass
