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
    "attention": [
        {"WIDTH": 16, "ROWS": 8, "TILE": 64, "SCOREVECS": 2, "OUTVECS": 4},
        {"WIDTH": 16, "ROWS": 1, "TILE": 16, "LAYOUT": "DOT", "SOFTMAX": "ONLINE", "EXP": "P7"},
    ],
    "attention_causal": [
        {"HEADS": 8, "CAUSAL": 1, "WIDTH": 16, "ROWS": 6, "TILE": 48, "SCOREVECS": 3, "OUTVECS": 2},
        {"HEADS": 8, "CAUSAL": 1, "ROWS": 4, "TILE": 16, "ORDER": "KEYS_FIRST", "SOFTMAX": "ONLINE"},
        {"HEADS": 8, "CAUSAL": 1, "ROWS": 1, "TILE": 32, "LAYOUT": "DOT", "SOFTMAX": "ONLINE", "EXP": "EXPF"},
    ],
    "attention_heads": [
        {"HEADS": 8, "WIDTH": 16, "ROWS": 8, "TILE": 64, "SCOREVECS": 2, "OUTVECS": 4, "EXP": "P7"},
        {"HEADS": 8, "ROWS": 2, "TILE": 32, "ORDER": "KEYS_FIRST", "SOFTMAX": "ONLINE", "PRESCALE": 0},
    ],
    "conv2d": [
        {},
        {"WIDTH": 4, "VECTORS": 3, "ROWS": 3, "OUTPUTS": 2},
        {"WIDTH": 8, "VECTORS": 1, "ROWS": 6, "OUTPUTS": 1},
    ],
    "gemm_skinny": [{}, {"ROWS": 12, "PAIRS": 1}, {"ROWS": 1, "UNROLL": 8}],
    "histogram": [{}, {"TABLES": 1, "WORD": 1}, {"TABLES": 8, "WORD": 4, "AHEAD": 1}],
    "layernorm": [
        {},
        {"WIDTH": 32, "SUMS": 3, "PASSES": 2, "AHEAD": 1},
        {"WIDTH": 4, "SUMS": 1, "UNROLL": 1},
    ],
    "reduction": [{}, {"WIDTH": 16, "LANES": 8}, {"WIDTH": 4, "LANES": 1}],
    "softmax": [{}, {"WIDTH": 32, "LANES": 8, "STORE": 0}, {"WIDTH": 4, "LANES": 3, "EXP": 5}],
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
