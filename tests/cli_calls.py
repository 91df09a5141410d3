"""The command line for tests: each call is a child of its own, forked from here so that it costs little.

The child is the whole command: own working folder, arguments, descriptors, exit code. Every call is held to
what holds for all of them: never a traceback or an unexpected error, and with --json exactly one document.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from spak.cli import main

EXAMPLES = Path(__file__).resolve().parents[1] / "specs/examples"
HELLO = str(EXAMPLES / "hello.spak")

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


def forked(folder: Path, args: tuple[str, ...], stdin: bytes, env: Mapping[str, str]) -> Done:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        child = os.fork()
        if child == 0:
            become(folder, args, env, (given.fileno(), out.fileno(), err.fileno()))
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Done(os.waitstatus_to_exitcode(status), *texts)


def become(folder: Path, args: tuple[str, ...], env: Mapping[str, str], files: tuple[int, ...]) -> None:
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
        os.environ.update(env)
        os.chdir(folder)
        sys.argv = ["spak", *args]
        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)
