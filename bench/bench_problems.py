"""Naive kernels beside the roof: what each problem that ships costs before anybody has tuned it.

Each `specs/problems/NAME.c` is compiled at -O2 and measured by CpuProfiler as a baseline at the problem's
size. Figures: microseconds of CPU, the median of 16 windows, beside the roof (the longer of FLOPs over the
measured FMA peak and bytes over what the core loads from its nearest cache); the same of a template with its
defaults, where there is one; and the CPU seconds of such an evaluation.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from spak import config, data
from spak.ports import MeasureCall, Measurement
from spak.sandbox.restricted import Restricted
from spak.validators import launch
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems import shipped


def rows() -> list[dict[str, Any]]:
    """A row for each problem and kernel, and one for the CPU time of an evaluation."""
    found, spent = [], []
    profiler, launcher = CpuProfiler(), Restricted()
    folder = data.path("specs/problems")
    with tempfile.TemporaryDirectory(dir=launch.scratch()) as name:
        place = Path(name)
        place.chmod(0o755)
        for problem in sorted(shipped()):
            kernels = {"naive -O2": (f"{problem}.c", ("-O2",))}
            if (folder / f"{problem}_template.c").exists():
                kernels["template"] = (f"{problem}_template.c", ("-O3", "-march=native"))
            for label, (file, flags) in kernels.items():
                _build(folder / file, place / "kernel.so", flags)
                seen = _measured(profiler, launcher, place, problem)
                spent.append(seen.cpu_ms)
                found.append(_row(f"{problem}: {label}, the roof as floor", seen))
    mean = sum(spent) / len(spent) / 1000
    found.append(
        {"name": "CPU of a baseline, mean", "ours": round(mean, 2), "floor": None, "unit": "s", "aim": ""}
    )
    return found


def _build(source: Path, target: Path, flags: tuple[str, ...]) -> None:
    target.unlink(missing_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", *flags, "-o", target, source, "-lm"], check=True)


def _measured(profiler: CpuProfiler, launcher: Restricted, place: Path, problem: str) -> Measurement:
    options = {"problem": problem, "binary": "kernel.so", "role": "baseline"}
    toolchain = config.toolchain()
    return profiler.measure(
        MeasureCall("bench", "CpuProfiler", options, place, launcher, toolchain=toolchain)
    )


def _row(name: str, seen: Measurement) -> dict[str, Any]:
    if seen.status != "measured":
        raise RuntimeError(f"{name}: {seen.checks[-1]}")
    ours, roof = seen.metrics["time_ns"] / 1000, seen.metrics["bound_ns"] / 1000
    return {"name": name, "ours": round(ours, 1), "floor": round(roof, 1), "unit": "us", "aim": ""}
