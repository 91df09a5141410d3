"""A job reaches no descriptor of the host: neither the lock of the run nor the memory of pid 1."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli_calls import forked, nothing
from spak import config
from spak.cli import main

pytestmark = pytest.mark.sandbox

ORDINARY_UID = 64999
ATTACK = """
import glob, os, stat
found = []
for number in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if not stat.S_ISREG(os.stat(number).st_mode):
            continue
        target = os.readlink(number)
    except OSError:
        continue
    if os.path.exists(target):
        continue
    found.append("sees " + target)
    for act in (lambda: os.chmod(number, 0o777), lambda: os.write(os.open(number, os.O_RDWR), b"9" * 20)):
        try:
            act()
            found.append("changed " + target)
        except OSError:
            pass
for number in glob.glob("/proc/[0-9]*/mem"):
    if number.split("/")[2] != str(os.getpid()):
        try:
            os.open(number, os.O_RDWR)
            found.append("memory of " + number)
        except OSError:
            pass
print("found:", found)
"""


def _ordinary() -> None:
    """Run once as we are, which loads what an ordinary user may not read here; then be one, with a Python of
    the system for the tools."""
    if os.geteuid() == 0:
        there = Path.cwd()
        with tempfile.TemporaryDirectory() as folder, suppress(SystemExit):
            os.chdir(folder)
            Path("p.spak").write_text(_spec("pass"))
            sys.argv = ["spak", "run", "p.spak"]
            main()
        os.chdir(there)
        os.ftruncate(1, os.lseek(1, 0, os.SEEK_SET))
        config.toolchain.cache_clear()
        sys.executable, sys.prefix, sys.base_prefix = "/usr/bin/python3", "/usr", "/usr"
        os.setgroups([])
        os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
        os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)


def _spec(code: str) -> str:
    text = code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'AGENT P LEVEL 2 {{ START -> t TASK t {{ step s: tool.python_repl {{ code: "{text}" }} }} }}'


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach and use, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.mark.parametrize("become", [nothing, _ordinary], ids=["as_started", "ordinary_user"])
def test_a_job_reaches_no_descriptor_of_the_host(folder: Path, become: Callable[[], None]) -> None:
    (folder / "p.spak").write_text(_spec(ATTACK))
    done = forked(folder, ("run", "p.spak", "--json"), before=become)
    assert done.code == 0, (done.out, done.err)
    [run] = (folder / ".spak/runs").iterdir()
    trace = (run / "trace.jsonl").read_text()
    assert "found: []" in trace, trace
    assert (run / "store/lock").read_bytes() == b""
