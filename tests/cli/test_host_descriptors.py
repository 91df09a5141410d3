"""A job reaches no descriptor of the host: neither the lock of the run nor the memory of pid 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli_calls import forked, nothing
from ordinary_kit import open_folder, ordinary

__all__ = ["open_folder"]
pytestmark = pytest.mark.sandbox

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


def _spec(code: str) -> str:
    text = code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'AGENT P LEVEL 2 {{ START -> t TASK t {{ step s: tool.python_repl {{ code: "{text}" }} }} }}'


@pytest.mark.parametrize("become", [nothing, ordinary], ids=["as_started", "ordinary_user"])
def test_a_job_reaches_no_descriptor_of_the_host(open_folder: Path, become: Callable[[], None]) -> None:
    (open_folder / "p.spak").write_text(_spec(ATTACK))
    done = forked(open_folder, ("run", "p.spak", "--json"), before=become)
    assert done.code == 0, (done.out, done.err)
    [run] = (open_folder / ".spak/runs").iterdir()
    trace = (run / "trace.jsonl").read_text()
    assert "found: []" in trace, trace
    assert (run / "store/lock").read_bytes() == b""
