"""`make bench`: every figure beside a floor that was measured in the same run, and the aim it is held to.

Imports each `bench/bench_*.py` and calls its `rows()`, which gives a list of
`{"name", "ours", "floor", "unit", "aim"}`. `aim` is text: `<= 1.1`, `>= 0.8 of floor`, or empty for a figure
that is only shown; `ours` is None where something that the machine lacks kept it from being measured. Each
module runs in a process of its own, so that memory and warm caches of one do not touch the next, and one that
fails, or takes longer than MOST_S, costs no other's figures; Ctrl+C shows those that are there. What missed
its aim, was not measured or failed stands again behind the table. Exit 1 when an aim is missed or a module
fails.

    python -m bench [--json] [--quick] [NAME...]

NAME is the part after `bench_`; without one, all but ON_REQUEST. With `--quick` each module measures as
little as shows that it still can, in seconds, and nothing is held to an aim (bench.sizes): CI runs that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import operator
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import sizes

HERE = Path(__file__).resolve().parent
MISSED, ABSENT = "MISSED", "NOT MEASURED"
COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
ON_REQUEST = {
    "agents": 7200.0,
    "codeipi": 1800.0,
    "fuzz": 3600.0,
    "libraries": 7200.0,
    "links": 7200.0,
    "rename": 7200.0,
    "peers": 7200.0,
    "repair": 7200.0,
    "selection": 7200.0,
    "strategies": 7200.0,
}
"""Modules that run only when named, as they install packages or are long, and seconds each may take."""
LONGER = {"compliance": 3600.0, "guard": 3600.0, "harm": 3600.0, "laws": 3600.0, "outer": 3600.0}
"""Seconds of modules that run with all and take longer than the others."""
MOST_S, END_S = 900.0, 30.0
"""Of any other module: far more than one takes on a quiet machine; and how long it may take to end when told
to."""
AIM = re.compile(r"(<=|>=|<|>) ([0-9][0-9.,]*)( of floor)?")


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("--quick", action="store_true", help="only that each module measures, in seconds")
    arguments.add_argument("--only", help=argparse.SUPPRESS)
    arguments.add_argument("names", nargs="*", metavar="NAME")
    given = arguments.parse_args()
    if given.only:
        signal.signal(signal.SIGTERM, lambda *ignored: sys.exit("it was told to end"))
        print(json.dumps(importlib.import_module(f"bench.bench_{given.only}").rows()))
        return 0
    if given.quick:
        os.environ[sizes.VARIABLE] = "1"
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        print(f"bench: no bench_{unknown[0]}.py; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    try:
        for name in given.names or [name for name in known if name not in ON_REQUEST]:
            found = measure(name)
            failed += [name] if found is None else []
            rows += found or []
    except KeyboardInterrupt:
        failed += [name]
    if given.json:
        print(json.dumps({"machine": machine(), "rows": rows, "failed": failed}, indent=2))
    else:
        print(f"{machine()['cpu']}, {machine()['cores']} cores, Python {machine()['python']}\n")
        print(table(rows))
        print(summary(rows, failed))
    return 1 if failed or any(row["verdict"] == MISSED for row in rows) else 0


def measure(name: str) -> list[dict[str, Any]] | None:
    """The rows of one module with verdicts, or None when it failed; its other words go to standard error."""
    print(f"bench_{name} ...", file=sys.stderr, flush=True)
    began, most = time.monotonic(), {**ON_REQUEST, **LONGER}.get(name, MOST_S)
    words = [sys.executable, "-m", "bench", "--only", name]
    with subprocess.Popen(words, cwd=HERE.parent, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=most)
        except BaseException as why:  # or Ctrl+C
            _end(process)
            if not isinstance(why, subprocess.TimeoutExpired):
                raise
            print(f"bench_{name} failed: not done after {most:.0f} s", file=sys.stderr)
            return None
    print(f"bench_{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    lines = said.decode().strip().splitlines()
    if process.returncode != 0 or not lines:
        print(f"bench_{name} failed, exit {process.returncode}", file=sys.stderr)
        return None
    try:
        found: list[dict[str, Any]] = json.loads(lines[-1])
        if not found:
            raise ValueError("it has no figure")
        return [{"bench": name, **row, "verdict": verdict(row)} for row in found]
    except (ValueError, TypeError, KeyError) as error:
        print(f"bench_{name} failed: {error}", file=sys.stderr)
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """A module and the servers that it has started."""
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def verdict(row: dict[str, Any]) -> str:
    """How it stands against the aim, empty without one. Raises: ValueError for an aim of another form."""
    aim = str(row.get("aim") or "")
    if row["ours"] is None:
        return ABSENT
    if not aim or os.environ.get(sizes.VARIABLE):
        return ""
    found = AIM.match(aim)
    if found is None:
        raise ValueError(f"{row['name']}: the aim {aim!r} is not a comparison such as '<= 1.1'")
    sign, limit, of_floor = found.groups()
    bound = float(limit.replace(",", "")) * (row["floor"] if of_floor else 1)
    return "PASS" if COMPARE[sign](row["ours"], bound) else MISSED


def summary(rows: list[dict[str, Any]], failed: list[str]) -> str:
    """How many figures there are, then each that missed its aim or has no figure, and modules that failed."""
    missed, absent = ([row for row in rows if row["verdict"] == word] for word in (MISSED, ABSENT))
    held = "held to no aim" if os.environ.get(sizes.VARIABLE) else f"{len(missed)} missed"
    lines = [f"\n{len(rows)} figures, {held}, {len(absent)} not measured"]
    for row in (*missed, *absent):
        lines.append(f"  {row['verdict']}  {row['name']}: {row['aim'] or 'no aim'}")
        if row in missed:
            lines[-1] += f", {number(row['ours'])} beside {number(row['floor'])} {row['unit']}"
    return "\n".join([*lines, *(f"  FAILED  bench_{name}: its words are above" for name in failed)])


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
