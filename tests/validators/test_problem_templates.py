"""The kernels with parameters of problems: right with their defaults and at points of their space."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spak import data
from spak.ports import MeasureCall
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_profiler import CpuProfiler
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

FOLDER = data.path("specs/problems")
POINTS = {
    "gemm": [
        {},
        {"WIDTH": 16, "VECTORS": 3, "ROWS": 5, "PACK": 0, "UNROLL": 4},
        {"WIDTH": 4, "VECTORS": 1, "ROWS": 1, "UNROLL": 2},
    ],
    "rmsnorm": [{}, {"WIDTH": 32, "SUMS": 3, "UNROLL": 4}, {"WIDTH": 4, "SUMS": 1}],
    "stencil": [{}, {"WIDTH": 16, "ROWS": 5, "FORM": "SPLIT"}, {"WIDTH": 4, "ROWS": 1, "UNROLL": 4}],
    "dot_int8": [{}, {"WIDTH": 64, "ROWS": 3, "PRODUCT": "NARROW"}, {"WIDTH": 32, "ROWS": 1, "UNROLL": 4}],
}
CASES = [(name, index) for name, points in POINTS.items() for index in range(len(points))]


@pytest.fixture(scope="module")
def profiler() -> CpuProfiler:
    return CpuProfiler()


@pytest.mark.parametrize(("name", "index"), CASES)
def test_a_point_of_the_space_is_right(name: str, index: int, profiler: CpuProfiler, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    defines = [f"-D{key}={value}" for key, value in POINTS[name][index].items()]
    line = ["gcc", "-O2", "-march=native", "-Wall", "-Wextra", "-Wno-psabi", "-Werror", "-shared", "-fPIC"]
    file = FOLDER / f"{name}_template.c"
    subprocess.run([*line, *defines, "-o", str(tmp_path / "kernel.so"), str(file), "-lm"], check=True)
    options = {"problem": name, "binary": "kernel.so", "role": "baseline", "n": 40}
    call = MeasureCall("m1", "CpuProfiler", options, tmp_path, Restricted(), toolchain=toolchain(), seed=5)
    found = profiler.measure(call)
    assert found.status == "measured", found.checks
