"""CpuProfiler on candidates in Python and C++: roles, rivals of another language, what is missing."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

import needs
from cpu_calls import Lab, code
from spak import data
from spak.errors import UnavailableError
from spak.ports import MeasureCall, Measurement, Subject, Toolchain
from spak.validators import cpu_session
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems.check import Bench, kernel
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

SOFTMAX = """
import numpy as np


def softmax(n, x, y):
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)
"""
JIT = """
import numpy as np
from numba import njit


@njit(fastmath=FAST)
def softmax(n, x, y):
    for i in range(n):
        top = x[i].max()
        total = np.float32(0)
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
"""
CPP = """
#include <algorithm>
#include <cmath>
#include <vector>

extern "C" void softmax(long n, const float *x, float *y) {
    std::vector<float> row(1000);
    for (long i = 0; i < n; i++) {
        const float top = *std::max_element(x + 1000 * i, x + 1000 * (i + 1));
        float total = 0;
        for (long j = 0; j < 1000; j++)
            total += row[j] = std::exp(x[1000 * i + j] - top);
        for (long j = 0; j < 1000; j++)
            y[1000 * i + j] = row[j] / total;
    }
}
"""
N = 8


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("languages"))


def measured(
    lab: Lab,
    source: str,
    rivals: dict[str, Subject] | None = None,
    chain: Toolchain | None = None,
    profiler: CpuProfiler | None = None,
    **options: Any,
) -> Measurement:
    given = {"problem": "softmax", "n": N, "source": source, "role": "baseline", **options}
    call = MeasureCall(
        "m1", "CpuProfiler", given, lab.folder, lab.launcher,
        toolchain=chain or toolchain(), seed=3, rivals=rivals or {},
    )  # fmt: skip
    return (profiler or lab.profiler).measure(call)


def test_a_python_file_is_measured_as_a_kernel_is(lab: Lab) -> None:
    (lab.folder / "a.py").write_text(SOFTMAX)
    found = measured(lab, "a.py")
    assert found.status == "measured", found.checks
    assert found.metrics["windows"] == 16 and 0 < found.metrics["empty_ns"] < found.metrics["time_ns"]
    assert found.subject.files == {"source": SOFTMAX.encode()}


def test_rivals_may_be_of_another_language(lab: Lab) -> None:
    """The naive C kernel against many times its work in Python, in one comparison."""
    slow = SOFTMAX.replace("    np.exp", "    for _ in range(200): np.exp(x)\n    np.exp")
    (lab.folder / "slow.py").write_text(slow)
    binary = lab.compiled(data.path("specs/problems/softmax.c"), "-O2")
    rivals = {"incumbent": Subject({"source": (lab.folder / "slow.py").read_bytes()})}
    (lab.folder / "naive.c").write_bytes(data.path("specs/problems/softmax.c").read_bytes())
    found = measured(lab, "naive.c", rivals, binary=binary, role="candidate")
    assert found.status == "measured", found.checks
    assert found.metrics["time_ns"] < found.metrics["incumbent_ns"]


def test_containers_of_cpp(lab: Lab) -> None:
    """The C++ library is loaded, and an allocation is arithmetic and memory."""
    source = lab.folder / "k.cpp"
    source.write_text(CPP)
    binary = lab.folder / "cpp.so"
    line = ["g++", "-O2", "-shared", "-fPIC", "-frecord-gcc-switches", "-o", str(binary), str(source)]
    subprocess.run(line, check=True)
    found = measured(lab, "k.cpp", binary="cpp.so")
    assert found.status == "measured", found.checks
    assert "GCC" in found.evidence["build"]["compiler"] and "-O2" in found.evidence["build"]["flags"]
    source.write_text(CPP.replace("long n, const float *x", "long n, const double *x"))
    subprocess.run(line, check=True)
    assert code(measured(lab, "k.cpp", binary="cpp.so")) == "wrong_signature"


COUNTS = """
calls = []


def softmax(n, x, y):
    inner(n, x, y)
    calls.append(n)
    if len(calls) > 150:
        y[0, 0] = 0
"""


@pytest.mark.findings("E5")
def test_what_counts_its_calls_is_found_in_python_and_numba(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 calls: no process but the one that goes on after the windows makes so many. One process is timed
    instead of four: in each Numba compiles again, which takes seconds, before the time is taken."""
    needs.module("numba")
    monkeypatch.setattr(cpu_session, "PROCESSES", 1)
    for name, text in (("plain", SOFTMAX), ("jit", JIT.replace("FAST", "False"))):
        (lab.folder / f"{name}.py").write_text(text)
        found = measured(lab, f"{name}.py", role="final", wall_s=300)
        assert found.status == "measured", found.checks
        assert max(found.samples["candidate"]) < 100_000_000
        (lab.folder / "counts.py").write_text(text.replace("def softmax", "def inner") + COUNTS)
        assert code(measured(lab, "counts.py", role="final", wall_s=300)) == "incorrect"


EXACT = "histogram"
FAST: dict[str, tuple[str, list[str]]] = {
    "flag": ("", ["-ffast-math"]),
    "level": ("", ["-Ofast"]),
    "pragma": ('#pragma GCC optimize("fast-math")\n', []),
}


@pytest.mark.parametrize("way", FAST)
def test_fast_math_is_refused_where_answers_are_exact(lab: Lab, way: str) -> None:
    head, flags = FAST[way]
    source = lab.folder / f"{way}.c"
    source.write_text(head + data.path(f"specs/problems/{EXACT}.c").read_text())
    binary = lab.compiled(source, "-O2", "-frecord-gcc-switches", *flags)
    found = measured(lab, source.name, problem=EXACT, binary=binary)
    assert code(found) == "fast_math", found.checks
    assert "exact" in found.checks[-1]["detail"]


def test_fast_math_is_recorded_where_the_tolerance_allows_it(lab: Lab) -> None:
    source = lab.folder / "soft.c"
    source.write_bytes(data.path("specs/problems/softmax.c").read_bytes())
    binary = lab.compiled(source, "-O2", "-ffast-math", "-frecord-gcc-switches")
    found = measured(lab, "soft.c", binary=binary)
    assert code(found) != "fast_math"
    assert "-ffast-math" in found.evidence["build"]["flags"]
    (lab.folder / "fast.py").write_text(JIT.replace("FAST", "True").replace("softmax", EXACT))
    assert code(measured(lab, "fast.py", problem=EXACT)) == "fast_math"


def test_what_is_missing_is_named(lab: Lab) -> None:
    """Without numpy there is no problem either, so the workshop is asked by itself."""
    workshop, chain = Workshop(), toolchain()
    for python in ("/no/python", "/bin/true"):
        broken = dataclasses.replace(chain, programs={**chain.programs, "python": python})
        with pytest.raises(UnavailableError, match="needs Python with numpy") as caught:
            workshop.interpreter(broken)
        assert caught.value.code == "unavailable.python"
    with pytest.raises(UnavailableError, match="needs Python with numpy"):
        workshop.interpreter(None)
    workshop.close()


def test_a_source_that_nobody_compiled(lab: Lab) -> None:
    (lab.folder / "only.c").write_text("int x;\n")
    found = measured(lab, "only.c")
    assert (found.status, code(found)) == ("checked", "missing_file")
    assert "name `binary`" in found.checks[-1]["detail"]


def test_problem_check_takes_kernels_in_python_and_cpp(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    text = data.path("specs/problems/softmax.py").read_text()
    for name, source in (("k.py", SOFTMAX), ("k.cpp", CPP)):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir(mode=0o755)
        lab = Lab(folder)
        bench = Bench(lab.launcher, toolchain(), MeasureCall("", "", {}, folder, None).limits, folder)
        assert kernel(text, source, bench, lab.profiler, name) == []
        wrong = source.replace("/ total", "/ (total + 1)").replace("y /= ", "y /= 2 * ")
        second = dataclasses.replace(bench, folder=folder / "again")
        second.folder.mkdir(mode=0o755)
        (found,) = kernel(text, wrong, second, lab.profiler, name)
        assert found.code == "problem.kernel" and "incorrect" in found.message
