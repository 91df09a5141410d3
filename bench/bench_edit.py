"""The speed of format, edit and diff, beside the time that parsing the same text takes.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. CPU time, best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.bench_lang import catalog, text
from spak.lang import parse
from spak.lang.diff import compare
from spak.lang.edit import apply, ops
from spak.lang.format import format_text

TASKS = 200

_TASK = """
  TASK t{n} {{  // measure, change, measure again
    GOAL "Make variant {n} of the kernel faster."
    TOOLS [cc, run]
    VALIDATOR Profiler {{ warmup: 3, binary: "kernel{n}.so" }}
    NEXT {{ success -> t{next}, fail -> t{n} }}
  }}
"""


def tasks(count: int = TASKS) -> str:
    """A spec of that many tasks, each with a goal, tools, a validator and two edges."""
    inside = "".join(_TASK.format(n=n, next=(n + 1) % count) for n in range(count))
    return f"AGENT A LEVEL 5 {{\n  START -> t0\n{inside}}}\n"


def rows() -> list[dict[str, Any]]:
    large, spec = text(), tasks()
    parsed = parse(spec)
    rename, edge = ops.RenameTask("t100", "renamed"), ops.AddEdge("t100", "timeout", "t5")
    renamed = parse(apply(spec, rename).text)
    others = parse(spec.replace("TASK t", "TASK other").replace("-> t", "-> other"))
    if compare(parsed, others).renames.get("t7") != "other7":
        raise AssertionError("the renamed tasks were not followed")
    known = catalog()
    parsing = _best(lambda: parse(spec))
    return [
        row("format 256 KB", _best(lambda: format_text(large)), _best(lambda: parse(large)), "< 500"),
        row("rename in 200 tasks, parsing included", _best(lambda: apply(spec, rename)), parsing, "< 20"),
        row("add an edge in 200 tasks, parsing included", _best(lambda: apply(spec, edge)), parsing, "< 20"),
        row("rename in 200 tasks, parsed before", _best(lambda: apply(parsed, rename)), None, "< 20"),
        row("diff of 200 tasks, one renamed", _best(lambda: compare(parsed, renamed, known)), None, "< 100"),
        row("diff of 200 tasks, all renamed", _best(lambda: compare(parsed, others, known)), None, "< 100"),
    ]


def row(name: str, ours: float, floor: float | None, aim: str) -> dict[str, Any]:
    """A figure in milliseconds; the floor is the parsing alone."""
    shown = None if floor is None else round(floor * 1000, 2)
    return {"name": name, "ours": round(ours * 1000, 2), "floor": shown, "unit": "ms", "aim": aim}


def _best(work: Callable[[], Any], times: int = 5) -> float:
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


if __name__ == "__main__":
    for line in rows():
        print(line)
