"""`make bench`: every figure beside a floor that was measured in the same run, and the aim it is held to.

Imports each `bench/bench_*.py` and calls its `rows()`, which gives a list of
`{"name", "ours", "floor", "unit", "aim"}`. `aim` is text: `<= 1.1`, `>= 0.8 of floor`, or empty for a figure
that is only shown. Each module runs in a process of its own, so that memory and warm caches of one do not
touch the next. Exit 1 when a figure misses its aim or a module fails.

    python -m bench [--json] [NAME...]     NAME is the part after `bench_`
"""

from __future__ import annotations

import argparse
import importlib
import json
import operator
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
AIM = re.compile(r"(<=|>=|<|>) ([0-9][0-9.,]*)( of floor)?")


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("--only", help=argparse.SUPPRESS)
    arguments.add_argument("names", nargs="*", metavar="NAME")
    given = arguments.parse_args()
    if given.only:
        print(json.dumps(importlib.import_module(f"bench.bench_{given.only}").rows()))
        return 0
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        print(f"bench: no bench_{unknown[0]}.py; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    for name in given.names or known:
        found = measure(name)
        failed += [name] if found is None else []
        rows += found or []
    if given.json:
        print(json.dumps({"machine": machine(), "rows": rows, "failed": failed}, indent=2))
    else:
        print(f"{machine()['cpu']}, {machine()['cores']} cores, Python {machine()['python']}\n")
        print(table(rows))
    missed = [row["name"] for row in rows if row["verdict"] == "MISS"]
    print(f"\n{len(rows)} figures, {len(missed)} missed, {len(failed)} modules failed", file=sys.stderr)
    return 1 if missed or failed else 0


def measure(name: str) -> list[dict[str, Any]] | None:
    """The rows of one module with verdicts, or None when it failed; its other words go to standard error."""
    print(f"bench_{name} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", name], cwd=HERE.parent, stdout=subprocess.PIPE, check=False
    )
    lines = done.stdout.decode().strip().splitlines()
    if done.returncode != 0 or not lines:
        print(f"bench_{name} failed, exit {done.returncode}", file=sys.stderr)
        return None
    found: list[dict[str, Any]] = json.loads(lines[-1])
    try:
        return [{"bench": name, **row, "verdict": verdict(row)} for row in found]
    except ValueError as error:
        print(f"bench_{name}: {error}", file=sys.stderr)
        return None


def verdict(row: dict[str, Any]) -> str:
    """PASS or MISS against the aim, empty without one. Raises: ValueError for an aim of another form."""
    aim = str(row.get("aim") or "")
    if not aim:
        return ""
    found = AIM.match(aim)
    if found is None:
        raise ValueError(f"{row['name']}: the aim {aim!r} is not a comparison such as '<= 1.1'")
    sign, limit, of_floor = found.groups()
    bound = float(limit.replace(",", "")) * (row["floor"] if of_floor else 1)
    return "PASS" if COMPARE[sign](row["ours"], bound) else "MISS"


def table(rows: list[dict[str, Any]]) -> str:
    heads = ["", "ours", "floor", "unit", "aim", ""]
    cells = [
        [
            row["name"],
            number(row["ours"]),
            number(row["floor"]),
            row["unit"],
            str(row["aim"] or ""),
            row["verdict"],
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in [heads, *cells]) for column in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (1, 2) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [heads, *cells]
    )


def number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.release(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    sys.exit(main())
