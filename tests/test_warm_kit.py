"""A program of the warm process is what `python` would have made of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm_kit
from process_kit import start_warm

ENV = {"PATH": os.environ["PATH"], "HERE": "a word", "LC_ALL": "C.UTF-8"}
PROGRAMS = {
    "words": "import os, sys\n"
    "print(os.environ['HERE'], os.getcwd(), sys.argv, sys.stdin.read(), sorted(os.environ), os.umask(0))",
    "error": "def f():\n    raise ValueError('no')\nf()",
    "code": "raise SystemExit(7)",
    "text": "raise SystemExit('a reason')",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "at the end": "import atexit, threading\natexit.register(print, 'end')\n"
    "threading.Timer(0.1, print, ['thread']).start()",
    "raw bytes": "import os; os.write(1, b'one\\n'); print('two')",
    "no setting": "from django.conf import settings; print(settings.configured)",
    "signals": "import signal\n"
    "print([signal.getsignal(n) for n in (2, 3, 15)], signal.pthread_sigmask(0, []))",
}


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_does_what_the_interpreter_does(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(PROGRAMS[name])
    for argv in (["-c", PROGRAMS[name], "more"], ["file.py", "more"], ["-m", "file", "more"]):
        cold = subprocess.run(
            [sys.executable, *argv], cwd=tmp_path, env=ENV, input="given", capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        warm = warm_kit.run(argv, cwd=tmp_path, env=ENV, input="given")
        assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout), (argv, warm.stderr)
        assert warm.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:], argv


def test_what_one_does_no_other_sees(tmp_path: Path) -> None:
    warm_kit.run(["-c", "import os, json; os.environ['A'] = '1'; json.here = 1"], cwd=tmp_path, env=ENV)
    told = "import os, json; print('A' in os.environ, hasattr(json, 'here'), os.getsid(0) == os.getpid())"
    assert warm_kit.run(["-c", told], cwd=tmp_path, env=ENV).stdout == "False False True\n"


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm_kit.run(["-c", "import time; time.sleep(600)"], cwd=tmp_path, env=ENV, timeout=0.2)
    with (tmp_path / "log").open("wb") as log:
        process = start_warm(["-c", "import time; time.sleep(600)"], cwd=tmp_path, env=ENV, output=log)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait() == process.poll() == -signal.SIGTERM


@pytest.mark.parametrize(
    "line",
    ["tell a 'b c'", "echo in | tell 2>errors | cat; cat errors", "tell >out; cat out", "tell 7", "tell 9"],
)
def test_a_command_is_one_for_a_shell(tmp_path: Path, line: str) -> None:
    """Its words, folder, environment, streams and exit are those of the script itself."""
    text = "import os, sys\nprint(sys.argv, os.getcwd(), os.environ['HERE'], sys.stdin.read())\n"
    text += "print('error', file=sys.stderr)\nsys.stdout.flush()\n"
    text += "end = {'7': lambda: sys.exit(7), '9': lambda: os.kill(os.getpid(), 9)}\n"
    text += "end.get(sys.argv[-1], bool)()\n"
    (tmp_path / "cold").mkdir()
    script = tmp_path / "cold/tell"
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o755)

    def done(first: Path) -> tuple[int, bytes, bytes]:
        env = {**ENV, "PATH": f"{first}:{ENV['PATH']}"}
        seen = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=env, input=b"given", capture_output=True)
        return seen.returncode, seen.stdout, seen.stderr

    warm = done(warm_kit.command(tmp_path / "warm", script))
    assert warm == done(tmp_path / "cold")
