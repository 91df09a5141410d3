"""Naive kernels beside the roof: what each problem that ships costs before anybody has tuned it.

Each `specs/problems/NAME.c` is compiled at -O2 and measured by CpuProfiler as a baseline at the problem's
size. Figures: microseconds of CPU, the median of 16 windows, beside the roof (the longer of FLOPs over the
measured FMA peak and bytes over what the core loads from its nearest cache); the same of a template with its
defaults, where there is one; and the CPU seconds of such an evaluation.

Then A/A: each naive kernel is a candidate against itself, 200 times in all; the kernel's rule decides.
The floor is what chance allows a rule of evidence 20, one in twenty.

Last, how many kernels that hide what is wrong with them are found, and how many honest ones pass; there the
floor is how many there are (bench/cheating_kernels.py).
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import cheating_kernels
from bench.sizes import sized
from spak import config, data
from spak.files.scratch import Scratch
from spak.kernel.metric.decision import DEFAULTS, decide
from spak.ports import MeasureCall, Measurement, Subject
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems import shipped

EQUAL = sized(200, 2)
"""Comparisons of equal kernels, over all problems."""


def rows() -> list[dict[str, Any]]:
    """A row for each problem and kernel, the CPU time of an evaluation, and rows of equal kernels."""
    found, spent = [], []
    profiler, launcher = CpuProfiler(), Restricted()
    folder = data.path("specs/problems")
    with Scratch("bench") as place:
        place.chmod(0o755)
        for problem in sorted(shipped())[: sized(None, 1)]:
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
    return found + equal_rows() + cheating_kernels.rows()


def equal_rows(count: int = EQUAL) -> list[dict[str, Any]]:
    """Equal kernels compared: how many were called improved, and what a comparison costs."""
    profiler, launcher, folder = CpuProfiler(), Restricted(), data.path("specs/problems")
    names = sorted(shipped())[: sized(None, 1)]
    ended: Counter[str] = Counter()
    with Scratch("bench") as place:
        place.chmod(0o755)
        for problem in names:
            _build(folder / f"{problem}.c", place / f"{problem}.so", ("-O2",))
        spent = taken = 0
        for index in range(count):
            problem = names[index % len(names)]
            file = place / f"{problem}.so"
            rivals = {"incumbent": Subject({"binary": file.read_bytes()})}
            seen = _measured(profiler, launcher, place, problem, file.name, "candidate", rivals)
            verdict = decide(seen.pairs, DEFAULTS).outcome if seen.status == "measured" else seen.status
            ended[verdict] += 1
            spent += seen.cpu_ms
            taken += len(seen.pairs)
    detail = ", ".join(f"{number} {verdict}" for verdict, number in sorted(ended.items()))
    return [
        {
            "name": f"A/A over {len(names)} problems: improved of {count} ({detail})",
            "ours": ended["improved"],
            "floor": count // DEFAULTS["evidence"],
            "unit": "",
            "aim": "<= 0",
        },
        {"name": "A/A: pairs, mean", "ours": round(taken / count, 1), "floor": None, "unit": "", "aim": ""},
        {
            "name": "A/A: CPU of a comparison, mean",
            "ours": round(spent / count / 1000, 2),
            "floor": None,
            "unit": "s",
            "aim": "",
        },
    ]


def _build(source: Path, target: Path, flags: tuple[str, ...]) -> None:
    target.unlink(missing_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", *flags, "-o", target, source, "-lm"], check=True)


def _measured(
    profiler: CpuProfiler,
    launcher: Restricted,
    place: Path,
    problem: str,
    binary: str = "kernel.so",
    role: str = "baseline",
    rivals: Mapping[str, Subject] | None = None,
) -> Measurement:
    options = {"problem": problem, "binary": binary, "role": role}
    toolchain = config.toolchain()
    call = MeasureCall(
        "bench", "CpuProfiler", options, place, launcher, toolchain=toolchain, rivals=rivals or {}
    )
    return profiler.measure(call)


def _row(name: str, seen: Measurement) -> dict[str, Any]:
    if seen.status != "measured":
        raise RuntimeError(f"{name}: {seen.checks[-1]}")
    ours, roof = seen.metrics["time_ns"] / 1000, seen.metrics["bound_ns"] / 1000
    return {"name": name, "ours": round(ours, 1), "floor": round(roof, 1), "unit": "us", "aim": ""}
