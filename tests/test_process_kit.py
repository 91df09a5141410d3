"""Children of tests have default signal handlers and do not outlive the tests, however pytest was started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import process_kit
from process_kit import STOPS, end_since, happens, start

IGNORED = int("".join(reversed([f"{number + 1 in STOPS:d}" for number in range(64)])), 2)
"""The mask of /proc/PID/status with the signals of STOPS."""
TESTS = Path(__file__).parent
PLAIN = ("-c", os.devnull, "--rootdir", "/")
"""Nothing of the project's configuration, which loads Django."""
LEAVES = """
from process_kit import start
def test_it(tmp_path):
    child = start(["sh", "-c", "sleep 300 & wait"])
    open(FILE, "w").write(str(child.pid))
    assert OUTCOME
"""


def test_children_have_default_handlers() -> None:
    child = start(["sleep", "300"])
    lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigIgn:"))
    end_since(len(process_kit.started) - 1)
    assert int(mask, 16) & IGNORED == 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_also_when_pytest_itself_ignores_them(workers: str) -> None:
    """As `nohup make test &` starts it, from a script."""
    done = pytest_run(
        f"{__file__}::{test_children_have_default_handlers.__name__}", "-n", workers, "--dist", "load"
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("outcome", ["True", "False"])
def test_what_a_test_leaves_running_is_ended_and_told(tmp_path: Path, outcome: str) -> None:
    test, file = tmp_path / "test_leaves.py", tmp_path / "pid"
    test.write_text(LEAVES.replace("FILE", repr(str(file))).replace("OUTCOME", outcome))
    done = pytest_run(str(test), "-p", "process_kit", *PLAIN, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 1
    assert ("the test left running: ['sh -c sleep 300 & wait']" in done.stdout) == (outcome == "True")
    assert happens(lambda: not members(int(file.read_text())))


def pytest_run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """pytest in a child that was started with all of STOPS ignored."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    kept |= {"PYTHONPATH": str(TESTS), **more}
    return subprocess.run(
        ["sh", "-c", 'trap "" INT QUIT HUP TERM; exec "$@"', "sh", *words],
        cwd=TESTS.parent, env=kept, capture_output=True, text=True, timeout=process_kit.WAIT_S, check=False,
    )  # fmt: skip


def members(group: int) -> list[str]:
    """The processes of a group that are no zombies."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its) == group and state != "Z":
            found.append(file.parent.name)
    return found
