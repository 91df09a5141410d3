"""`spak gpu selftest`: its tree runs without us, refuses without a device, and sees what the rules see.

Times and verdicts here are those of a stand-in for the CUDA driver: nothing of it says anything about a GPU.
The logic of the kernels that ship is tried on the processor, by threads in the place of a block's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from problem_kit import problem as shipped_problem
from spak import data
from spak.validators import selftest
from spak.validators.cuda_profiler import CudaProfiler
from validator_calls import FOUND, call, write
from validator_calls import stand_in as build

NVCC = """#!/bin/sh
case "$*" in --version) echo "Build stand-in"; exit 0;; esac
while [ "$1" != -o ]; do shift; done
case "$3" in *tuned*) us=500;; *) us=900;; esac
printf 'FAKE right %s' $us > "$2"
"""
"""A compiler in name only: the module says how long the stand-in claims that a launch took."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("selftest") / "tree"
    selftest.write_tree(made)
    return made


def run(tree: Path, report: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """As a stranger runs it: no package of ours or of others on the path."""
    line = [sys.executable, "-I", "-S", "-B", str(tree / "selftest.py"), "-o", str(report), *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=report.parent)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(report.read_text())


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    made = tmp_path_factory.mktemp("stand-ins")
    nvcc = made / "nvcc"
    nvcc.write_text(NVCC)
    nvcc.chmod(0o755)
    cuda = build(made, "fake_libcuda.c", "libcuda.so")
    return nvcc, cuda, build(made, "fake_libnvml.c", "libnvml.so")


def test_all_of_it_on_a_stand_in(tree: Path, stand_ins: tuple[Path, Path, Path], tmp_path: Path) -> None:
    nvcc, cuda, nvml = stand_ins
    options = (
        "--nvcc",
        str(nvcc),
        "--library",
        str(cuda),
        "--nvml",
        str(nvml),
        "--equal",
        "2",
        "--seed",
        "5",
    )
    status, report = run(tree, tmp_path / "r.json", *options)
    assert (status, report["ok"], report["detail"]) == (0, True, "")
    assert report["device"]["name"] == "Fake GPU (no device)" and report["arch"] == "sm_90"
    assert report["nvml"]["before"]["sm_clock_mhz"] == 1410
    assert {row["name"] for row in report["kernels"]} == set(selftest.KERNELS)
    assert all(row["low_ns"] <= row["median_ns"] <= row["high_ns"] for row in report["kernels"])
    assert [row["outcome"] for row in report["comparisons"]] == ["improved", "improved"]
    assert (report["equal"]["comparisons"], report["equal"]["improved"]) == (2, 0)
    found = {row["name"]: row["found"] for row in report["hacks"]}
    assert {name for name, code in found.items() if not code} == {"honest_work", "caches_by_pointer"}
    assert found["alters_the_input"] == "inputs_changed"


def test_a_fault_of_the_device_is_in_the_report(
    tree: Path, stand_ins: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    _, cuda, nvml = stand_ins
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(NVCC.replace("FAKE right", "FAKE fault"))
    nvcc.chmod(0o755)
    options = (
        "--nvcc",
        str(nvcc),
        "--library",
        str(cuda),
        "--nvml",
        str(nvml),
        "--equal",
        "2",
        "--rows",
        "4",
    )
    status, report = run(tree, tmp_path / "r.json", *options)
    assert (status, report["ok"], report["code"]) == (1, False, "selftest.failed")
    assert all(row["code"].startswith("device_fault") for row in report["kernels"])
    assert report["equal"]["comparisons"] == 0


def test_without_a_device_or_a_toolkit_nothing_is_measured(
    tree: Path, stand_ins: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    nvcc, cuda, _ = stand_ins
    absent = str(tmp_path / "absent")
    for code, options in (
        ("unavailable.device", ("--nvcc", str(nvcc), "--library", absent)),
        ("unavailable.nvcc", ("--nvcc", absent, "--library", str(cuda))),
    ):
        status, report = run(tree, tmp_path / "r.json", *options)
        assert (status, report["ok"], report["code"]) == (7, False, code)
        assert not {"kernels", "hacks", "comparisons", "equal"} & set(report)


@pytest.mark.skipif(not FOUND["nvcc"], reason="nvcc is not installed")
@pytest.mark.parametrize("name", [*selftest.KERNELS, "hacks"])
def test_the_kernels_compile(name: str, tree: Path, tmp_path: Path) -> None:
    source = tree / ("hacks.cu" if name == "hacks" else f"kernels/{name}.cu")
    line = [
        str(FOUND["nvcc"]),
        "-cubin",
        "-arch=sm_90",
        "-Werror",
        "all-warnings",
        "-o",
        str(tmp_path / "k.cubin"),
    ]
    done = subprocess.run([*line, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sandbox
@pytest.mark.skipif(not FOUND["nvcc"], reason="nvcc is not installed")
@pytest.mark.parametrize(
    ("problem", "kernel", "block"), [("softmax", "softmax_tuned", 256), ("attention", "attention", 128)]
)
def test_static_evidence_of_any_problem(problem: str, kernel: str, block: int, tmp_path: Path) -> None:
    write(tmp_path, kernel__cu=data.path(f"specs/problems/{kernel}.cu").read_text())
    options = {"problem": problem, "arch": ["sm_90"], "block": [block], "device": "static"}
    found = CudaProfiler().measure(call(tmp_path, options))
    assert (found.status, found.metrics, [item for item in found.checks if not item["ok"]]) == (
        "static",
        {},
        [],
    )
    other = {**options, "problem": "gemm"}
    codes = [item["code"] for item in CudaProfiler().measure(call(tmp_path, other)).checks if not item["ok"]]
    assert codes == ["missing_symbol"]


EMULATION = """
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)
struct place { unsigned x; };
static thread_local place threadIdx, blockIdx;
static place blockDim;
static std::unique_ptr<std::barrier<>> all;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static float lanes[1024];
static void __syncthreads() { all->arrive_and_wait(); }
static float __shfl_xor_sync(unsigned, float value, int step) {
    auto &warp = *warps[threadIdx.x / 32];
    lanes[threadIdx.x] = value;
    warp.arrive_and_wait();
    const float other = lanes[threadIdx.x ^ (unsigned)step];
    warp.arrive_and_wait();
    return other;
}
#include SOURCE
extern "C" void launch(unsigned blocks, unsigned threads, long n, const float **in, float *out) {
    blockDim.x = threads;
    for (unsigned block = 0; block < blocks; block++) {
        all = std::make_unique<std::barrier<>>(threads);
        warps.clear();
        for (unsigned warp = 0; warp < threads / 32; warp++)
            warps.push_back(std::make_unique<std::barrier<>>(32));
        std::vector<std::thread> running;
        for (unsigned thread = 0; thread < threads; thread++)
            running.emplace_back([=] { threadIdx.x = thread; blockIdx.x = block; CALL; });
        for (auto &thread : running)
            thread.join();
    }
}
"""
CALLS = {
    "softmax": "softmax(n, in[0], out)",
    "attention": "attn(n, in[0], in[1], in[2], out, nullptr)",
}


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize(
    ("name", "threads", "rows"),
    [("softmax", 128, 128), ("softmax_tuned", 256, 1), ("attention", 128, 128), ("attention_tuned", 64, 16)],
)
def test_the_kernels_are_right_on_the_processor(name: str, threads: int, rows: int, tmp_path: Path) -> None:
    """CPU emulation, a thread for each of a block: the logic is right. It shows nothing of a device."""
    import ctypes

    of = name.partition("_")[0]
    source, binary = tmp_path / "k.cpp", tmp_path / "k.so"
    source.write_text(EMULATION)
    defines = [f'-DSOURCE="{data.path(f"specs/problems/{name}.cu")}"', f"-DCALL={CALLS[of]}"]
    line = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-o", str(binary), str(source)]
    subprocess.run([*line, *defines], check=True)
    launch = ctypes.CDLL(str(binary)).launch
    problem, random = shipped_problem(of), np.random.default_rng(3)
    for n in (1, 5, 18) if of == "attention" else (1, 3):
        for kind in problem.kinds:
            case = problem.case(random, n, kind)
            (output,) = case.outputs
            made = np.full(case.outputs[output].shape, np.nan, dtype=np.float32)
            inputs = [np.ascontiguousarray(array) for array in case.inputs.values()]
            pointers = (ctypes.c_void_p * len(inputs))(*(array.ctypes.data for array in inputs))
            launch(-(-n // rows), threads, ctypes.c_long(n), pointers, ctypes.c_void_p(made.ctypes.data))
            _, wrong = problem.tolerance.errors(made, case.outputs[output])
            assert not wrong.any(), (n, kind)
