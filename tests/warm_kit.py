"""Python programs of tests as forks of one process that has the large imports behind it.

Importing Django and all that the platform needs costs seconds of a core each time; a fork has it for nothing.
`begin` and `run` are `subprocess.Popen` and `subprocess.run` for `python ...`: the program is a process with
environment, folder, umask, descriptors, session and exit code of its own. The process behind them
(warm_python.py) is started with the first one of a test worker and ended with it. Not for tests about how a
program is started.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any


@lru_cache(maxsize=1)
def _address(of: int) -> str:
    """Of the process behind, which is started here; it ends with this one, `of` being its id."""
    folder = tempfile.mkdtemp(prefix="spak-warm-")
    address = f"{folder}/socket"
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("warm_python.py")), address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    held = process.stdin  # until this process ends, however it does

    def end() -> None:
        if os.getpid() == of:
            held.close()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    with process.stdout as said:
        assert said.readline() == b"ready\n", "the warm process did not start"
    return address


class Forked:
    """A program that runs, or ran: what tests use of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, args: Sequence[str], cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        self.args = [sys.executable, *args]
        self.returncode: int | None = None
        self._said = socket.socket(socket.AF_UNIX)
        self._said.connect(_address(os.getpid()))
        os.umask(mask := os.umask(0o077))
        request = {"argv": list(args), "cwd": str(cwd), "env": dict(env), "umask": mask}
        asked = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._said, [asked], list(files))
        if sent < len(asked):  # sending nothing fails too, once a short program has ended
            self._said.sendall(asked[sent:])
        self._lines = self._said.makefile("rb")
        self.pid = int(self._lines.readline())

    def poll(self) -> int | None:
        """The exit code once it has ended, a signal's number below zero."""
        if self.returncode is None and select.select([self._said], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises: subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._lines.readline())
            self._lines.close()
            self._said.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


COMMAND = """\
#!{python} -IS
import json, os, signal, socket, sys
os.umask(mask := os.umask(0o077))
said = socket.socket(socket.AF_UNIX)
said.connect({address!r})
request = dict(argv=[{program!r}, *sys.argv[1:]], cwd=os.getcwd(), env=dict(os.environ), umask=mask)
asked = json.dumps(request).encode() + b"\\n"
sent = socket.send_fds(said, [asked], [0, 1, 2])
if sent < len(asked):
    said.sendall(asked[sent:])
lines = said.makefile("rb")
lines.readline()
code = int(lines.readline())
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def command(folder: Path, program: Path) -> Path:
    """A new folder for PATH, in which that script of Python's is a command that forks the process behind: for
    shells, which find commands by name."""
    folder.mkdir()
    path = folder / program.name
    text = COMMAND.format(python=sys.executable, address=_address(os.getpid()), program=str(program))
    path.write_text(text)
    path.chmod(0o755)
    return folder


def begin(args: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: IO[Any]) -> Forked:
    """`python ARGS` in a session of its own, without input; whoever begins it ends it."""
    with Path(os.devnull).open("rb") as nothing:
        return Forked(args, cwd, env, [nothing.fileno(), output.fileno(), output.fileno()])


def run(
    args: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    input: str | bytes = b"",
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """`python ARGS` until it ends. Raises: subprocess.TimeoutExpired, when it has been killed."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input.encode() if isinstance(input, str) else input)
        given.seek(0)
        process = Forked(args, cwd, env, [given.fileno(), out.fileno(), err.fileno()])
        try:
            process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(process.args, process.returncode or 0, *texts)
