"""The command line for tests: each call is a process of its own, forked so that it costs little.

The process is the whole command: own working folder, arguments, descriptors, exit code. Every call is held to
what holds for all of them: never a traceback or an unexpected error, and with --json exactly one document.

`warm` forks the process of warm_kit.py, `forked` this one, with all that a test has changed in it. A worker
that has collected every test holds 0.6 GB, and a fork of it costs 30 ms of a core more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import warm_kit
from process_kit import WAIT_S, happens, start, until
from read_once import forget_programs, read_once
from spak.cli import main

EXAMPLES = Path(__file__).resolve().parents[1] / "specs/examples"
HELLO = str(EXAMPLES / "hello.spak")
SPAK = str(Path(sys.executable).with_name("spak"))

ASK = """
task Ask {
  step first: tool.write_file { path: "before.txt" content: "before\\n" }
  step question: llm.query { role: "coder" prompt_template: "Say one word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: word }
  success: file_exists("word.txt")
}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The code of the error."""
        return str(self.json["error"]["code"])


Cli = Callable[..., Done]


def nothing() -> None:
    """What a child does first."""


def warm(
    folder: Path, args: tuple[str, ...], stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> Done:
    """One call in a process that has nothing of this one but its environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPAK_")}
    done = warm_kit.run([SPAK, *args], cwd=folder, env={**inherited, **(env or {})}, input=stdin)
    return Done(done.returncode, done.stdout, done.stderr)


def forked(
    folder: Path,
    args: tuple[str, ...],
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] = nothing,
) -> Done:
    """One call; `before` is done in the child, before the command begins."""
    read_once()
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        child = os.fork()
        if child == 0:
            become(folder, args, env or {}, before, (given.fileno(), out.fileno(), err.fileno()))
        status = waited(child)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Done(os.waitstatus_to_exitcode(status), *texts)


def waited(child: int) -> int:
    """The status of a child; it does not outlive a test that is broken off."""
    try:
        return os.waitpid(child, 0)[1]
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def become(
    folder: Path,
    args: tuple[str, ...],
    env: Mapping[str, str],
    before: Callable[[], None],
    files: tuple[int, ...],
) -> None:
    """Be `spak ARGS` until the end of this process."""
    code: object = 99
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        for name in [name for name in os.environ if name.startswith("SPAK_")]:
            del os.environ[name]
        forget_programs({**os.environ, **env})
        os.environ.update(env)
        os.chdir(folder)
        before()
        sys.argv = ["spak", *args]
        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 0)


def processes(marker: str) -> list[str]:
    """Command lines of living processes that name the marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it ended meanwhile
        if marker in line:
            found.append(line)
    return found


def gone(marker: str) -> bool:
    """Whether all processes that name the marker end."""
    return happens(lambda: not processes(marker))


def held_to(done: Done, args: tuple[str, ...]) -> Done:
    """What every call is held to."""
    assert "Traceback" not in done.err, done.err
    assert "bug." not in done.err, done.err
    if "--json" in args[: args.index("--") if "--" in args else None]:
        assert done.out.startswith("{"), (done.out, done.err)
        assert isinstance(json.loads(done.out), dict)
    return done


class Background:
    """`spak ARGS` as a process of its own, to be signalled."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.args = args
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPAK_")}
        self.process = start(
            [sys.executable, "-c", "from spak.cli import main; main()", *args],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, seen: Callable[[], object]) -> None:
        """Wait until something can be seen."""

        def seen_or_ended() -> object:
            found = seen()
            assert found or self.process.poll() is None, self.process.communicate()
            return found

        until(seen_or_ended)

    def kill(self, number: int) -> None:
        self.process.send_signal(number)

    def done(self) -> Done:
        out, err = self.process.communicate(timeout=WAIT_S)
        return Done(self.process.returncode, out, err)
