"""What the walls around a workspace cost a durable step: the same run with them and without, in one process.

With them a step takes the workspace lock and compares leases (fences), settles under that lock, looks for
files of secrets, strips rights of the owner and compares the settings of repositories. Without them it does
all else. `cpu(folder, tool)` gives the ratio of CPU times: runs alternate, either first by turns, and the
median of the pairs decides, so that whatever else the machine does meets both; pairs differ by a tenth, so
there are many short ones, and the interval is given. `calls(tool)` counts system calls a step with strace,
and of them those that wait for the disk: these counts do not depend on the load.

    python -m bench.step_walls with|without TOOL STEPS     one run, for strace
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from statistics import median
from unittest.mock import patch

from bench import bench_run
from bench.sizes import sized
from spak.runner.secret_guard import SecretGuard
from spak.workspace import Workspace
from spak.workspace.lock import WorkspaceLock
from spak.workspace.tree import Tree

PAIRS, STEPS = sized(61, 6), sized(100, 10)
COUNTED = sized((50, 150), (5, 10))
"""Steps of the two runs whose counts are compared: what starting takes is in both."""
FENCE = 1
WAITS = ("fsync", "fdatasync", "syncfs")


def cpu(folder: Path, tool: str) -> tuple[float, float, float]:
    """CPU time of a step with the walls over that of one without: the median of the pairs, and the least and
    the most that it may be (95 %, by ranks: the interval of the sign test)."""
    ratios = []
    for turn in range(PAIRS):
        spent = {}
        for walls in (True, False) if turn % 2 else (False, True):
            with (_walls if walls else _no_walls)():
                spent[walls] = bench_run.run(folder, tool, STEPS, mark=f"-{turn}-{walls}")["cpu_ms"]
        ratios.append(spent[True] / spent[False])
    ratios.sort()
    rank = max(0, round(PAIRS / 2 - 0.98 * sqrt(PAIRS)) - 1)
    return median(ratios), ratios[rank], ratios[-1 - rank]


def calls(tool: str) -> dict[bool, tuple[float, float]] | None:
    """System calls of a step, and how many of them wait for the disk, with the walls (True) and without; None
    where there is no strace or it may not trace."""
    found = {}
    for walls in (True, False):
        counted = [_counted(walls, tool, steps) for steps in COUNTED]
        if None in counted:
            return None
        (few, few_waits), (many, many_waits) = (one for one in counted if one is not None)
        steps = COUNTED[1] - COUNTED[0]
        found[walls] = (many - few) / steps, (many_waits - few_waits) / steps
    return found


def _counted(walls: bool, tool: str, steps: int) -> tuple[int, int] | None:
    strace = shutil.which("strace")
    if strace is None:
        return None
    with tempfile.NamedTemporaryFile("r") as table:
        line = [strace, "-f", "-c", "-o", table.name, sys.executable, "-m", "bench.step_walls"]
        line += ["with" if walls else "without", tool, str(steps)]
        if subprocess.run(line, capture_output=True, check=False).returncode:
            return None
        rows = [line.split() for line in table.read().splitlines()]
    counts = {row[-1]: int(row[3]) for row in rows if len(row) > 3 and re.fullmatch(r"\d+", row[3])}
    return counts.pop("total"), sum(counts.get(name, 0) for name in WAITS)


@contextmanager
def _walls() -> Iterator[None]:
    """Under a lease, so that fences are compared at each door."""
    made = Workspace.__init__

    def fenced(self: Workspace, *args: object, **named: object) -> None:
        made(self, *args, **named)  # type: ignore[arg-type]
        self.take(FENCE)

    with patch.object(Workspace, "__init__", fenced):
        yield


@contextmanager
def _no_walls() -> Iterator[None]:
    def settle(self: Workspace) -> None:
        if self._state == "done":
            self._store.look(write=True)
            self._store.settle()
            self._base = None
            self._state = "clean"

    with (
        patch.object(WorkspaceLock, "_check", lambda *given: None),
        patch.object(Workspace, "settle", settle),
        patch.object(Tree, "takes_rights", False),
        patch.object(SecretGuard, "look", lambda *given, **named: None),
        patch.object(SecretGuard, "look_begun", lambda *given: None),
    ):
        yield


def _main() -> None:
    walls, tool, steps = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="spak-bench-", dir=Path.cwd()))
    try:
        with (_walls if walls == "with" else _no_walls)():
            bench_run.run(folder, tool, int(steps))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    _main()
