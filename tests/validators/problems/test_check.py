"""`spak problem check`: planted wrong answers, steadiness between processes, the kernel beside the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import spak
from problem_kit import Inside
from spak.validators.problems import Problem, planted, shipped

RIGHT = (
    "void scale(long n, const float *x, float *y) {\n"
    "    for (long i = 0; i < 8 * n; i++)\n        y[i] = 3 * x[i];\n}\n"
)
GOOD = """
import os, time
import numpy as np
prototype = "void scale(long n, const float *x, float *y)"
sizes = {"least": 1, "most": 24, "timed": 16}
kinds = ["usual", "zeros"]
tolerance = {"rel": 1e-6}
def shapes(n): return {"x": (n, 8), "y": (n, 8)}
def flops(n): return 8 * n
def inputs(random, n, kind):
    x = random.standard_normal((n, 8), dtype=np.float32)
    return {"x": x * 0 if kind == "zeros" else x}
def reference(n, x):
    return 3 * x.astype(np.float64)
"""
ALL = [*planted.WRONG, *planted.ROUGH]


def passed(text: str, kinds: list[str] = ALL) -> set[str]:
    problem = Problem.of(Inside(text))  # type: ignore[arg-type]
    cases = [
        (problem.case_of([2, 2], problem.timed, kind), problem.case_of([1, 1], problem.timed, kind))
        for kind in problem.kinds
    ]
    known = {**planted.WRONG, **planted.ROUGH}
    chosen = {name: known[name] for name in kinds}
    return {what for what, _ in planted.passing(chosen, cases, problem.prototype, problem.tolerance)}


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_shipped_tolerances_find_every_planted_answer(name: str) -> None:
    assert passed(shipped()[name]) == set()


LOOSE = {
    '{"rel": 0.2}': {
        "is off by a tenth",
        "is off by a hundredth",
        "is off by a thousandth",
        "is cut to bfloat16",
        "is off by a tenth in one number",
    },
    '{"rel": 5e-3}': {"is off by a thousandth"},
    '{"rel": 1e-6, "abs": 1e9}': set(ALL),
    '{"ulp": 70000}': {"is off by a thousandth", "is cut to bfloat16"},
}


@pytest.mark.parametrize("tolerance", LOOSE)
def test_a_loose_tolerance_lets_them_pass(tolerance: str) -> None:
    found = passed(GOOD.replace('{"rel": 1e-6}', tolerance))
    assert found - {"is off by a tenth in one number"} == LOOSE[tolerance] - {
        "is off by a tenth in one number"
    }


def test_an_answer_that_does_not_depend_on_the_inputs_is_found() -> None:
    text = GOOD.replace("return 3 * x.astype(np.float64)", "return np.arange(8.0 * n).reshape(n, 8)")
    assert passed(text) == {"gives the answer of an earlier call"}


def checked(folder: Path, text: str, kernel: str = RIGHT) -> tuple[int, list[str]]:
    (folder / "own.py").write_text(text)
    (folder / "own.c").write_text(kernel)
    code, seen = spak(folder, "problem", "check", "own.py", "--json")
    return code, [item["code"] for item in seen["files"][0]["diagnostics"]]


@pytest.mark.sandbox
def test_a_good_problem_with_its_kernel(tmp_path: Path) -> None:
    assert checked(tmp_path, GOOD) == (0, [])


RETURNS = "return 3 * x.astype(np.float64)"
BY_PROCESS = f"{RETURNS} + os.stat('/proc/self').st_ctime_ns"
STRICT = GOOD.replace('"rel": 1e-6', '"rel": 1e-9').replace("3 *", "3.3 *")
WRONG = {
    "loose": (3, "problem.tolerance", GOOD.replace('"rel": 1e-6', '"rel": 1e-6, "abs": 9'), RIGHT),
    "rough": (0, "problem.loose", GOOD.replace('"rel": 1e-6', '"rel": 5e-3'), RIGHT),
    "strict": (3, "problem.strict", STRICT, RIGHT),
    "by process": (3, "problem.changes", GOOD.replace(RETURNS, BY_PROCESS), RIGHT),
    "nan": (3, "problem.not_finite", GOOD.replace(RETURNS, f"{RETURNS} * np.nan"), RIGHT),
    "no prototype": (3, "problem.prototype", GOOD.replace("float *y)", "char *y)"), RIGHT),
    "another signature": (3, "problem.symbol", GOOD, RIGHT.replace("long n", "int n")),
    "another symbol": (3, "problem.kernel", GOOD, RIGHT.replace("scale", "scales")),
    "a wrong kernel": (3, "problem.kernel", GOOD, RIGHT.replace("3 *", "2 *")),
    "no kernel in C": (3, "problem.symbol", GOOD, "void scale("),
}  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize("name", WRONG)
def test_what_check_finds(name: str, tmp_path: Path) -> None:
    code, expected, text, kernel = WRONG[name]
    found, codes = checked(tmp_path, text, kernel)
    assert found == code and expected in codes, codes


@pytest.mark.parametrize(
    "data", [GOOD.encode() + b"# \xff\n", GOOD.encode() + b"# \0\n", GOOD.encode() + b"#" * (256 << 10)]
)
def test_what_a_run_would_not_take_as_a_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "own.py").write_bytes(data)
    code, seen = spak(tmp_path, "problem", "check", "own.py", "--json")
    assert (code, [item["code"] for item in seen["files"][0]["diagnostics"]]) == (3, ["problem.invalid"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    code, seen = spak(tmp_path, "problem", "check", "own.py", "--json")
    assert (code, seen["error"]["code"]) == (2, "usage.file")
