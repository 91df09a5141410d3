"""Which branches of leases, sweep and writer the seeds came through, counted in the first of them.

A branch is one of the two ways on from an `if`, `while` or `for`: into it, or past it. Lines are traced in
these modules alone; a way was gone where a line of its beginning followed on the line of the condition.
"""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

SEEDS = 40
"""So many seeds are traced."""
ROOT = Path(__file__).resolve().parents[1] / "platform" / "spakweb"
WATCHED = {
    "leases": ("store/jobs/leases.py", "store/ledger/store.py"),
    "sweep": ("work/jobs/queue.py", "work/worker/tasks.py", "work/worker/queue.py"),
    "writer": ("store/ledger/writer.py", "store/ledger/writer_sql.py"),
}
_FILES = {str(ROOT / name): name for names in WATCHED.values() for name in names}

Arc = tuple[str, int, int]


def trace(into: set[Arc]) -> None:
    """Note the lines of the threads that begin from now on."""

    def begun(frame: FrameType, event: str, argument: Any) -> Any:
        name = _FILES.get(frame.f_code.co_filename)
        if name is None:
            return None
        before = [frame.f_lineno]

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event in ("line", "return"):
                now = frame.f_lineno if event == "line" else -1
                into.add((name, before[0], now))
                before[0] = now
            return line

        return line

    threading.settrace(begun)


def stop() -> None:
    """Trace no more."""
    threading.settrace(None)  # type: ignore[arg-type]
    sys.settrace(None)


def counted(arcs: set[Arc]) -> dict[str, tuple[int, int]]:
    """By name of the part: the ways that were gone, and all there are."""
    found = {}
    for part, names in WATCHED.items():
        ways = [way for name in names for way in _ways(name, arcs)]
        found[part] = sum(ways), len(ways)
    return found


def _ways(name: str, arcs: set[Arc]) -> list[bool]:
    tree = ast.parse((ROOT / name).read_text())
    mine = {(before, now) for file, before, now in arcs if file == name}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.If | ast.While | ast.For):
            continue
        test = node.iter if isinstance(node, ast.For) else node.test
        lines = range(node.lineno, (test.end_lineno or node.lineno) + 1)
        first = node.body[0].lineno
        on = {now for before, now in mine if before in lines and now not in lines}
        found += [first in on, bool(on - {first})]
    return found
