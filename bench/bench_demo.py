"""The main job, as `make demo` runs it: how much faster the best kernel is, and what finding it cost.

One whole run of specs/examples/attention_tuner.spak. The floor of the speed-up is the naive kernel at -O2;
the floor of the time is the roofline bound, from the FMA peak measured in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.sizes import sized

MOST_S = 1800
"""Of one demo: far more than one takes on a quiet machine."""


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    seen = whole()
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


DEMO = "from spak.cli import main; main()"
SHORT_DEMO = """
import re
import shutil
import sys
from pathlib import Path
from spak import data
from spak.cli import main
spec, shipped = Path(sys.argv.pop()), data.path
example = shipped("specs/examples/attention_tuner.spak")
shutil.copytree(example.with_suffix(""), spec.with_suffix(""))
spec.write_text(re.sub(r"evaluations: [0-9]+", "evaluations: 6", example.read_text()))
data.path = lambda name: spec if name.endswith(spec.name) else shipped(name)
main()
"""
"""The demo of a spec that stops after six evaluations; the last argument is where that spec goes."""


def whole(seed: int | None = None) -> dict[str, Any]:
    """What one whole `spak demo --json` says. Raises: RuntimeError."""
    line = [sys.executable, "-c", sized(DEMO, SHORT_DEMO), "demo", "--json"]
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        line += ["--runs-dir", folder, *([] if seed is None else ["--seed", str(seed)])]
        line += sized([], [str(Path(folder) / "attention_tuner.spak")])
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=MOST_S)
    if done.returncode:
        raise RuntimeError(f"the demo ended with {done.returncode}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}
