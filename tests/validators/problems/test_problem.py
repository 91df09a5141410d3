"""Problems' files: those that ship, and what a file may do wrong, each with its code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from problem_kit import GOOD, RETURNS, Inside, changed, problem
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.validators.problems import Problem, ProblemFault, Tolerance, opened, shipped, text_of
from validator_calls import toolchain

BAD = {
    "nan": ("problem.not_finite", (RETURNS, "    return x.astype(float) * np.nan")),
    "too large for its type": ("problem.not_finite", (RETURNS, "    return x.astype(float) * 1e39 + 1e39")),
    "no prototype": ("problem.invalid", ("prototype =", "signature =")),
    "prototype without an output": ("problem.prototype", ("float *y)", "const float *y)")),
    "sizes that make no sense": ("problem.invalid", ('"least": 1,', '"least": 40,')),
    "no kinds": ("problem.invalid", ('["normal", "zeros"]', "[]")),
    "negative tolerance": ("problem.invalid", ('"abs": 1e-6', '"abs": -1e-6')),
    "unknown tolerance": ("problem.invalid", ('"abs": 1e-6', '"digits": 6')),
    "flops that are none": ("problem.invalid", ("return 4 * n", "return -1")),
    "no shape": ("problem.shape", ('"y": (n, 4)', '"z": (n, 4)')),
    "empty shape": ("problem.shape", ('"y": (n, 4)', '"y": (0, 4)')),
    "another shape": ("problem.shape", ('{"x": (n, 4)', '{"x": (n, 5)')),
    "another type": ("problem.shape", ("dtype=np.float32", "dtype=np.float64")),
    "no input": ("problem.shape", ('"x": x * 0', '"w": x * 0')),
    "scalar missing": ("problem.shape", ('"k": 2.0, ', "")),
    "reference of another shape": ("problem.shape", (RETURNS, "    return x.astype(float)[:1]")),
    "reference of whole numbers": ("problem.shape", (RETURNS, "    return x.astype(int)")),
    "reference of low precision": ("problem.shape", (RETURNS, "    return k * x")),
    "reference of half precision": ("problem.shape", (RETURNS, "    return (k * x).astype(np.float16)")),
    "reference of texts": ("problem.shape", (RETURNS, "    return np.array(['a'])")),
    "too large": ("problem.too_large", ("(n, 4)", "(n, 1 << 28)")),
    "changes": ("problem.changes", ("x = random.", "x = np.random.default_rng().")),
    "changes by state": (
        "problem.changes",
        (RETURNS, f"    global calls\n    calls = globals().get('calls', 0) + 1\n{RETURNS} + calls"),
    ),
}


def asked(text: str) -> None:
    found = Problem.of(Inside(text))  # type: ignore[arg-type]
    found.steady()
    for kind in found.kinds:
        found.case(np.random.default_rng(1), found.timed, kind)


def test_a_good_problem_gives_cases() -> None:
    found = Problem.of(Inside(GOOD))  # type: ignore[arg-type]
    found.steady()
    case = found.case(np.random.default_rng(1), 5)
    assert case.scalars == {"n": 5, "k": 2.0}
    assert (case.outputs["y"] == 2.0 * case.inputs["x"]).all() and case.outputs["y"].dtype == np.float64
    assert (found.flops(5), found.traffic(5)) == (20, 2 * 5 * 4 * 4)
    again = found.case(np.random.default_rng(2), 5)
    assert (again.inputs["x"] != case.inputs["x"]).any()
    assert len(found.plan(np.random.default_rng(3), 32)) == 26 + 8 + 16 + 16


@pytest.mark.parametrize("name", BAD)
def test_what_a_file_does_wrong_has_a_code(name: str) -> None:
    code, pair = BAD[name]
    with pytest.raises(ProblemFault) as caught:
        asked(changed(pair))
    assert caught.value.code == code


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_shipped_problems_are_good(name: str) -> None:
    """Steady, of the declared types and shapes, at the least and the largest size and of every kind."""
    found = problem(name)
    found.steady()
    random = np.random.default_rng(4)
    for kind in found.kinds:
        for n in (found.least, min(found.least + 6, found.most)):
            found.case(random, n, kind)
    found.case(random, found.most)
    assert found.flops(found.timed) > 0


# ---- in its sandbox ---------------------------------------------------------------------------------------

WRITES = "    import os, sys; os.write(int(sys.argv[2]), b'hm\\n')\n"
HOSTILE = {
    "loops": ("problem.timeout", (RETURNS, "    while True: pass")),
    "loops when it is read": ("problem.timeout", ("prototype =", "while True: pass\nprototype =")),
    "forks": ("problem.failed", (RETURNS, "    import os; os.fork()")),
    "starts a thread": (
        "problem.failed",
        (RETURNS, "    import _thread; _thread.start_new_thread(print, ())"),
    ),
    "starts a program": ("problem.failed", (RETURNS, "    import subprocess; subprocess.run(['true'])")),
    "reads the network": (
        "problem.failed",
        (RETURNS, "    import socket; socket.create_connection(('192.0.2.1', 80), 1)"),
    ),
    "reads the host": ("problem.failed", (RETURNS, "    return open('/etc/shadow').read()")),
    "writes": ("problem.failed", (RETURNS, "    return open('/ws/problem_file.py', 'a')")),
    "changes an input": ("problem.failed", (RETURNS, "    x[0] = 1\n" + RETURNS)),
    "raises": ("problem.failed", (RETURNS, "    return 1 / 0")),
    "is no Python": ("problem.failed", ("prototype =", "prototype ==== ")),
    "leaves": ("problem.died", (RETURNS, "    import os; os._exit(0)")),
    "ends itself politely": ("problem.failed", (RETURNS, "    raise SystemExit")),
    "writes to the pipe": ("problem.answer", (RETURNS, WRITES + RETURNS)),
    "takes all memory": ("problem.failed", (RETURNS, "    return np.ones(1 << 40)")),
}  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_file_may_not_do(name: str, tmp_path: Path) -> None:
    code, pair = HOSTILE[name]
    limits = Limits(memory_bytes=1 << 30)
    answer_s, start_s = (0.3, 0.5) if code == "problem.timeout" else (30.0, 60.0)
    tmp_path.chmod(0o755)
    box = Restricted()
    with (
        pytest.raises(ProblemFault) as caught,
        opened(box, toolchain(), tmp_path / "p", changed(pair), limits, None, answer_s, start_s) as session,
    ):
        Problem.of(session).case(np.random.default_rng(1), 3)
    assert caught.value.code == code, caught.value.detail


@pytest.mark.sandbox
def test_the_sandbox_gives_what_the_file_gives(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    here = Problem.of(Inside(shipped()["reduction"]))  # type: ignore[arg-type]
    with opened(Restricted(), toolchain(), tmp_path / "p", shipped()["reduction"], Limits()) as session:
        there = Problem.of(session)
        there.steady()
        one, two = there.case_of([5, 6], 9, "normal"), here.case_of([5, 6], 9, "normal")
    assert (one.inputs["x"] == two.inputs["x"]).all()
    assert one.outputs["sum"] == two.outputs["sum"] and one.outputs["max"] == two.outputs["max"]


def test_without_python_there_is_no_problem(tmp_path: Path) -> None:
    from spak.ports import Toolchain

    with (
        pytest.raises(ProblemFault) as caught,
        opened(Restricted(), Toolchain(), tmp_path / "p", GOOD, Limits()),
    ):
        pass
    assert caught.value.code == "problem.python"


def test_a_name_means_what_the_run_began_with() -> None:
    assert text_of("softmax", {}) == shipped()["softmax"]
    assert text_of("softmax", {"softmax": "x"}) == "x"
    with pytest.raises(ProblemFault) as caught:
        text_of("problems/own.py", {})
    assert caught.value.code == "problem.missing"


# ---- tolerance --------------------------------------------------------------------------------------------


def test_tolerances_add_and_ulp_is_of_the_type() -> None:
    reference = np.array([1.0, 1000.0])
    near = np.array([1.0, 1000.0], np.float32) + np.array([1e-6, 1e-3], np.float32)
    assert not Tolerance(abs=2e-6, rel=1.1e-6).errors(near, reference)[1].any()
    assert Tolerance(abs=2e-6).errors(near, reference)[1].tolist() == [False, True]
    steps = np.nextafter(np.array([1.0, 1000.0], np.float32), np.float32(np.inf))
    assert not Tolerance(ulp=1).errors(steps, reference)[1].any()
    assert Tolerance(ulp=0.5).errors(steps, reference)[1].all()
    assert Tolerance(abs=1).errors(np.array([np.nan, 1000], np.float32), reference)[1].tolist() == [
        True,
        False,
    ]


def test_whole_numbers_are_compared_exactly() -> None:
    large = np.array([2**60 + 1])
    assert Tolerance().errors(large, np.array([2**60]))[1].all()
    assert not Tolerance().errors(large, large)[1].any()
    assert not Tolerance(abs=1).errors(np.array([4], np.int32), np.array([5]))[1].any()
