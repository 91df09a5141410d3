"""Candidates of several threads: they get those of the driver, can make none, and cannot work unmeasured."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from cpu_calls import Lab, code
from spak.tuning.spec import shared
from spak.validators import cpu_process

pytestmark = pytest.mark.sandbox

TOGETHER = """
// Right only if THREADS threads are there: each computes its own rows of a product.
int omp_get_thread_num(void);
int omp_get_num_threads(void);

void gemm(long n, const float *A, const float *B, float *C) {
#pragma omp parallel num_threads(ASKED)
    if (omp_get_num_threads() == THREADS) {
        for (long i = omp_get_thread_num(); i < n; i += THREADS)
            for (long j = 0; j < n; j++) {
                float sum = 0.0f;
                for (long k = 0; k < n; k++)
                    sum += A[i * n + k] * B[k * n + j];
                C[i * n + j] = sum;
            }
    }
}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("threads"))


def together(lab: Lab, threads: int, asked: int) -> str:
    source = lab.folder / "together.c"
    source.write_text(TOGETHER)
    return lab.compiled(source, "-O2", "-fopenmp", f"-DTHREADS={threads}", f"-DASKED={asked}")


def test_threads_of_the_driver_work_and_the_walls_time_is_taken(lab: Lab) -> None:
    rivals = {"incumbent": together(lab, 3, 3)}
    seen = lab.measure(together(lab, 3, 3), rivals=rivals, problem="gemm", n=96, threads=3)
    assert seen.status == "measured", seen.checks
    assert seen.metrics["threads"] == 3 and seen.metrics["time_ns"] > seen.metrics["bound_ns"]
    one = lab.measure(together(lab, 1, 1), "baseline", problem="gemm", n=96, threads=2)
    assert one.status == "measured", "a kernel may use fewer than it is given"


def test_what_is_not_given_is_refused(lab: Lab) -> None:
    of_three = together(lab, 3, 3)
    assert code(lab.measure(of_three, "baseline", problem="gemm", n=96)) == "forbidden_symbol"
    assert code(lab.measure(of_three, "baseline", problem="gemm", n=96, threads=2)) == "forbidden_call"
    assert code(lab.measure(together(lab, 3, 2), "baseline", problem="gemm", n=96, threads=2)) == "non_finite"
    fewer = lab.measure(together(lab, 2, 2), "baseline", problem="gemm", n=96, threads=3)
    assert fewer.status == "checked", "OpenMP's library ends the third, perhaps only after it said done"
    assert code(fewer) in ("forbidden_call", "early_signal", "died")


@pytest.mark.parametrize(
    ("hack", "ends"),
    [
        ("thread", "forbidden_call"),
        ("fork", "forbidden_call"),
        ("opens_file", "forbidden_call"),
        ("early_signal", "early_signal did_not_rest"),
        ("spins_after", "did_not_rest"),
        ("lazy", "non_finite"),
    ],
)
def test_hacks_end_as_with_one_thread(lab: Lab, hack: str, ends: str) -> None:
    seen = lab.measure(lab.hack(hack), "baseline", threads=2)
    assert code(seen) in ends.split(), seen.checks


def test_work_after_done_is_in_the_window_or_ends_it(lab: Lab) -> None:
    """It says done before it spins: by the wall's time the spinning is its own, too."""
    seen = lab.measure(lab.hack("spins_a_little"), rivals={"incumbent": lab.hack("honest")}, threads=2)
    if code(seen) != "did_not_rest":
        assert seen.status == "measured", seen.checks
        assert seen.metrics["time_ns"] > 1.1 * seen.metrics["incumbent_ns"]


def test_the_kernels_that_share_their_work_are_right(lab: Lab) -> None:
    for problem, point in [
        ("gemm", ["-DWIDTH=4", "-DROWS=3"]),
        ("gemm", ["-DORDER=ACROSS"]),
        ("attention", ["-DROWS=6"]),
        ("attention", ["-DLAYOUT=DOT", "-DSOFTMAX=ONLINE"]),
        ("attention", ["-DORDER=KEYS_FIRST", "-DSOFTMAX=ONLINE"]),
        ("attention_causal", ["-DHEADS=8", "-DCAUSAL=1"]),
        ("attention_heads", ["-DHEADS=8", "-DORDER=KEYS_FIRST", "-DSOFTMAX=ONLINE"]),
    ]:
        flags = ("-O2", "-march=native", "-fopenmp", "-DTHREADS=3", *point)
        template = shared(problem)
        assert template is not None
        seen = lab.measure(lab.compiled(template, *flags), "baseline", problem=problem, n=96, threads=3)
        assert seen.status == "measured", (problem, point, seen.checks)


def test_work_before_go_is_seen(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread wakes by itself (futex takes a time) and may begin when the inputs are there."""
    worked = [0]
    written, clock = cpu_process._bytes, cpu_process.Process._clock

    def write(array: NDArray[np.float32]) -> NDArray[np.uint8]:
        worked[0] += 1000
        return written(array)

    monkeypatch.setattr(cpu_process, "_bytes", write)
    monkeypatch.setattr(cpu_process.Process, "_clock", lambda self: clock(self) + worked[0])
    seen = lab.measure(together(lab, 2, 2), "baseline", problem="gemm", n=96, threads=2)
    assert code(seen) == "idle_work", seen.checks


CALLED = """
import ctypes, sys
import numpy as np

n, draw = 96, np.random.default_rng(1)
library = ctypes.CDLL(sys.argv[1])
def block(*shape):
    held = np.zeros(np.prod(shape) + 16, np.float32)
    at = -held.ctypes.data % 64 // 4
    return held[at : at + np.prod(shape)].reshape(shape)
def real(*shape):
    found = block(*shape)
    found[:] = draw.standard_normal(shape)
    return found
def call(name, *arrays):
    getattr(library, name)(ctypes.c_long(n), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))
if sys.argv[2] == "gemm":
    a, b, c = real(n, n), real(n, n), block(n, n)
    call("gemm", a, b, c)
    right = a @ b
else:
    q, k, v, c = real(n, 64), real(n, 64), real(n, 64), block(n, 64)
    call("attn", q, k, v, c, block(1 << 22))
    weights = np.exp(q @ k.T / 8)
    right = weights / weights.sum(axis=1, keepdims=True) @ v
assert np.allclose(c, right, atol=1e-3), "not right"
"""


@pytest.mark.parametrize("problem", ["gemm", "attention"])
@pytest.mark.parametrize("limit", ["1", "2"])
def test_a_shipped_kernel_is_right_with_fewer_threads_than_it_asks_for(
    lab: Lab, problem: str, limit: str
) -> None:
    template = shared(problem)
    assert template is not None
    built = lab.folder / lab.compiled(template, "-O2", "-march=native", "-fopenmp", "-DTHREADS=3")
    env = {**os.environ, "OMP_THREAD_LIMIT": limit}
    subprocess.run([sys.executable, "-c", CALLED, str(built), problem], check=True, env=env)
