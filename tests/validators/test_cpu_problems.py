"""CpuProfiler on problems as files: naive kernels are right, wrong ones are not, bad problems are told."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from cpu_calls import Lab, code
from spak import data
from spak.ports import MeasureCall, Measurement
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems import shipped
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

FOLDER = data.path("specs/problems")
OWN = "problems/scale.py"
SCALE = """
import numpy as np
prototype = "void scale(long n, float k, const int16_t *x, double *y, int64_t *sum)"
sizes = {"least": 1, "most": 96, "timed": 64}
kinds = ["usual"]
tolerance = {"ulp": 1}
def shapes(n): return {"x": (n, 64), "y": (n, 64), "sum": (1,)}
def flops(n): return 64 * n
def inputs(random, n, kind):
    x = random.integers(-1000, 1000, size=(n, 64), dtype=np.int16)
    return {"k": float(np.float32(random.uniform(1, 2))), "x": x}
def reference(n, k, x):
    return {"y": k * x.astype(np.float64), "sum": np.array([x.sum(dtype=np.int64)])}
"""
HEAD = "#include <stdint.h>\nvoid scale(long n, float k, const int16_t *x, double *y, int64_t *sum) {\n"
LOOP = "    *sum = 0;\n    for (long i = 0; i < 64 * n; i++)\n"
RIGHT = LOOP + "        y[i] = (double)k * x[i], *sum += x[i];\n}\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("problems"))


def measured(
    lab: Lab,
    binary: str,
    name: str,
    profiler: CpuProfiler | None = None,
    problem: str = SCALE,
    **options: Any,
) -> Measurement:
    given = {"problem": name, "binary": binary, "role": "baseline", **options}
    call = MeasureCall(
        "m1", "CpuProfiler", given, lab.folder, lab.launcher,
        toolchain=toolchain(), seed=3, problems={OWN: problem},
    )  # fmt: skip
    return (profiler or lab.profiler).measure(call)


def scale(lab: Lab, name: str, body: str) -> str:
    source = lab.folder / f"{name}.c"
    source.write_text(HEAD + body)
    return lab.compiled(source, "-O1")


def test_every_shipped_problem_has_a_naive_kernel() -> None:
    assert {file.stem for file in FOLDER.glob("*.py")} <= {file.stem for file in FOLDER.glob("*.c")}


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_naive_kernel_is_right(lab: Lab, name: str) -> None:
    """At a small size, on every kind of input; it is never faster than the roof."""
    least = 64 if name == "attention" else 9
    found = measured(lab, lab.compiled(FOLDER / f"{name}.c", "-O2"), name, n=least)
    assert found.status == "measured", found.checks
    assert 0 < found.metrics["bound_ns"] <= found.metrics["time_min_ns"]
    text = (FOLDER / f"{name}.py").read_bytes()
    assert found.evidence["problem"] == {"name": name, "sha256": hashlib.sha256(text).hexdigest()}


def test_types_scalars_and_two_outputs(lab: Lab) -> None:
    """A problem of one's own: 16-bit inputs, a float by value, outputs of doubles and of whole numbers."""
    found = measured(lab, scale(lab, "right", RIGHT), OWN)
    assert found.status == "measured", found.checks
    assert found.metrics["windows"] == 16


WRONG = {
    "no sum": ("incorrect", "    for (long i = 0; i < 64 * n; i++)\n        y[i] = (double)k * x[i];\n}\n"),
    "no last number": (
        "non_finite",
        "    *sum = 0;\n    for (long i = 0; i < 64 * n; i++) {\n        *sum += x[i];\n"
        "        if (i < 64 * n - 1)\n            y[i] = (double)k * x[i];\n    }\n}\n",
    ),
    "float": ("incorrect", LOOP + "        y[i] = k * x[i], *sum += x[i];\n}\n"),
    "past the second output": ("out_of_bounds", RIGHT[:-2] + "    sum[1] = 0;\n}\n"),
    "before the first": ("out_of_bounds", RIGHT[:-2] + "    y[-1] = 0;\n}\n"),
    "writes the input": ("wrote_inputs", RIGHT[:-2] + "    ((int16_t *)x)[0] = 0;\n}\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_in_any_output_are_found(lab: Lab, name: str) -> None:
    expected, body = WRONG[name]
    assert code(measured(lab, scale(lab, name.replace(" ", "_"), body), OWN)) == expected


def test_a_kernel_of_another_signature_is_told(lab: Lab) -> None:
    """A float that is taken for a double is garbage; with the source at hand the reason is named."""
    source = lab.folder / "other.c"
    source.write_text(HEAD.replace("float k", "double k") + RIGHT)
    binary = lab.compiled(source, "-O1")
    assert code(measured(lab, binary, OWN)) == "incorrect"
    found = measured(lab, binary, OWN, source="other.c")
    assert code(found) == "wrong_signature"
    assert "float k" in found.checks[-1]["detail"]
    wrong = lab.folder / "no_sum.c"
    wrong.write_text(HEAD + WRONG["no sum"][1])
    assert code(measured(lab, lab.compiled(wrong, "-O1"), OWN, source="no_sum.c")) == "incorrect"


def test_a_candidate_in_another_language(lab: Lab) -> None:
    """C++ with a template, exported as C: a shared object is a shared object."""
    source = lab.folder / "right.cpp"
    body = RIGHT.replace("(double)k * x[i]", "times<double>(k, x[i])")
    template = "#include <stdint.h>\ntemplate <class T> static T times(T a, T b) { return a * b; }\n"
    head = HEAD.partition("\n")[2]
    source.write_text(f'{template}extern "C" {head}{body}')
    found = measured(lab, lab.compiled(source, "-O2"), OWN)
    assert found.status == "measured", found.checks


BAD = {
    "nan": ("problem.not_finite", SCALE.replace("k * x.astype", "np.nan * x.astype")),
    "changes": ("problem.changes", SCALE.replace("random.integers", "np.random.default_rng().integers")),
    "changes later": (
        "problem.changes",
        SCALE.replace(
            "def reference(n, k, x):\n", "calls = []\ndef reference(n, k, x):\n    calls.append(1)\n"
        ).replace("k * x.astype(np.float64)", "k * x.astype(np.float64) + (len(calls) > 12)"),
    ),
    "prototype": ("problem.prototype", SCALE.replace("int16_t *x", "int17_t *x")),
    "loops": ("problem.timeout", SCALE.replace("    x = random", "    while n > 8: pass\n    x = random")),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_problem_is_not_the_candidates_fault(lab: Lab, name: str) -> None:
    """A baseline fails with its code; a candidate's measurement is void; nothing is measured of either."""
    expected, text = BAD[name]
    profiler = CpuProfiler(answer_s=0.5) if expected == "problem.timeout" else lab.profiler
    binary = scale(lab, "right", RIGHT)
    first = measured(lab, binary, OWN, profiler, text)
    assert (first.status, code(first)) == ("checked", expected)
    second = measured(lab, binary, OWN, profiler, text, role="candidate")
    assert (second.status, code(second)) == ("void", expected)
    assert not first.samples and not second.samples and not second.pairs


def test_a_size_that_the_problem_does_not_take(lab: Lab) -> None:
    found = measured(lab, scale(lab, "right", RIGHT), OWN, n=97)
    assert (found.status, code(found)) == ("checked", "problem.size")


def test_a_problem_that_the_run_does_not_have(lab: Lab) -> None:
    found = measured(lab, scale(lab, "right", RIGHT), "problems/other.py")
    assert (found.status, code(found)) == ("checked", "problem.missing")


def test_a_candidate_finds_no_problem(lab: Lab) -> None:
    """What a candidate sees of its folder is the driver and itself: a read of the problem's file fails."""
    source = lab.folder / "reads.c"
    reads = (Path(__file__).parent / "hacks/hack.h").read_text()
    constructor = (
        "static char text[64];\n__attribute__((constructor)) static void look(void) {\n"
        '    slurp("/ws/problem_file.py", text, 63);\n'
        '    slurp("/ws/../problem/problem_file.py", text, 63);\n}\n'
    )
    source.write_text(f"{reads}\n{constructor}{HEAD}    if (text[0])\n        return;\n{RIGHT}")
    found = measured(lab, lab.compiled(source, "-O2", "-march=native"), OWN)
    assert found.status == "measured", found.checks
