"""The main job, as `make demo` runs it: how much faster the best kernel is, and what finding it cost.

One whole run of specs/examples/attention_tuner.spak. The floor of the speed-up is the naive kernel at -O2;
the floor of the time is the roofline bound, from the FMA peak measured in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from spak.cli import main; main()",
                "demo",
                "--json",
                "--runs-dir",
                folder,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    if done.returncode:
        raise RuntimeError(f"the demo ended with {done.returncode}: {done.stderr[-500:]}")
    seen = json.loads(done.stdout)
    metrics = seen["metrics"]
    bound_ms = metrics["bound_ns"] / 1e6
    return [
        _row("attention: best over naive -O2, ratio of medians", metrics["speedup"], 1.0, "x", ">= 10"),
        _row("attention: median of the best kernel", metrics["best_ms"], bound_ms, "ms", ""),
        _row("attention: share of the measured roofline", metrics["bound_ppm"] / 1e4, 100.0, "%", ""),
        _row("attention: evaluations", metrics["evaluations"], 0, "", "<= 60"),
        _row("attention: CPU, compiling included", seen["cpu_s"] / 60, 0, "CPU-min", "<= 4"),
        _row("attention: wall", seen["wall_s"], 0, "s", ""),
    ]


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}
