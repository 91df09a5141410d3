"""The device path against stand-ins for libcuda and NVML: which calls are made, and what becomes of answers.

Nothing here says anything about a GPU: the times are those that the stand-in claims.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from problem_kit import problem as shipped_problem
from spak.kernel.metric.decision import DEFAULTS, decide
from spak.ports import Measurement, Subject, Toolchain
from spak.validators import cuda_driver, cuda_nvml, cuda_timing
from spak.validators.cuda_driver import Device, Driver, DriverError
from spak.validators.cuda_profiler import LABEL, CudaProfiler
from spak.validators.cuda_static import Assembly
from validator_calls import FOUND, call, codes, toolchain, write
from validator_calls import stand_in as build

N = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fake")
    made.chmod(0o755)
    return made


@pytest.fixture(scope="module")
def fake(folder: Path) -> Path:
    return build(folder, "fake_libcuda.c", "libfakecuda.so")


@pytest.fixture
def log(fake: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(fake))
    library.fake_calls.restype = ctypes.c_char_p
    library.fake_reset()
    return library


LAUNCH = {"block": [128, 1, 1], "rows_per_block": 4, "shared_bytes": 0}


def job(
    fake: Path, behaviour: str, *, cases: int = 3, launch: dict[str, Any] | None = None, **more: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """A job on a module of the stand-in: one window for each case, each warmed up on another."""
    problem = shipped_problem("attention")
    random = np.random.default_rng(7)
    blobs: list[bytes] = []
    items = []
    for _ in range(cases):
        case = problem.case(random, N)
        first = len(blobs)
        blobs += [*(array.tobytes() for array in case.inputs.values()), case.outputs["O"].tobytes()]
        items.append(
            {
                "n": N,
                "scalars": [N],
                "inputs": [first, first + 1, first + 2],
                "references": [first + 3],
                "outputs": [N * 64],
                "scratch": 1024,
            }
        )
    blobs.append(f"FAKE {behaviour} 900".encode())
    told = {
        "library": str(fake),
        "symbol": "attn",
        "seed": 1,
        "launches": {"candidate": {**LAUNCH, **(launch or {})}},
        "parameters": [[item.role, item.type] for item in problem.prototype.parameters],
        "flush_bytes": 4096,
        "tolerance": [problem.tolerance.abs, problem.tolerance.rel, problem.tolerance.ulp],
        "cases": items,
        "sides": {"candidate": len(blobs) - 1},
        "windows": [["candidate", index, index - 1] for index in range(cases)],
        **more,
    }
    return told, blobs


def test_the_calls_of_one_window_in_order(fake: Path, log: ctypes.CDLL) -> None:
    said = cuda_driver.answer(*job(fake, "right", cases=2, windows=[["candidate", 0, 1]]))
    assert said["status"] == "ok"
    assert [(window["ns"], window["code"]) for window in said["windows"]] == [(900_000, "")]
    assert said["windows"][0]["err"] < 4e-6
    calls = log.fake_calls().decode().split()
    opening = ["cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDriverGetVersion"]
    assert calls[:5] == opening
    rest = [name for name in calls if name != "cuDeviceGetAttribute"][5:]
    place = ["cuMemcpyHtoD_v2"] * 3 + ["cuMemsetD32_v2"] * 2
    assert rest == [
        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
        "cuMemAlloc_v2", "cuMemAlloc_v2", "cuEventCreate", "cuEventCreate",
        "cuModuleLoadData", "cuModuleGetFunction",
        *place, "cuLaunchKernel", "cuCtxSynchronize",
        *place, "cuMemsetD32_v2", "cuCtxSynchronize",
        "cuEventRecord", "cuLaunchKernel", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime",
        *["cuMemcpyDtoH_v2"] * 4, "cuCtxSynchronize", "cuModuleUnload",
        "cuEventDestroy_v2", "cuEventDestroy_v2", "cuMemFree_v2", "cuMemFree_v2",
        "cuDevicePrimaryCtxRelease_v2",
    ]  # fmt: skip
    assert log.fake_open() == 0


def test_shared_memory_is_asked_for(fake: Path, log: ctypes.CDLL) -> None:
    said = cuda_driver.answer(*job(fake, "right", launch={"shared_bytes": 65_536}))
    assert (said["status"], "cuFuncSetAttribute" in log.fake_calls().decode()) == ("ok", True)
    said = cuda_driver.answer(*job(fake, "right", launch={"shared_bytes": 262_144}))
    assert (said["status"], said["call"], said["code"]) == ("error", "cuFuncSetAttribute", 1)
    assert log.fake_open() == 0


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("wrong", "wrong_output"),
        ("nothing", "wrong_output"),
        ("first", "wrong_output"),
        ("inputs", "inputs_changed"),
    ],
)
def test_a_wrong_kernel_is_found_in_its_timed_launch(
    fake: Path, log: ctypes.CDLL, behaviour: str, code: str
) -> None:
    said = cuda_driver.answer(*job(fake, behaviour))
    assert (said["status"], len(said["windows"]), said["windows"][0]["code"]) == ("ok", 1, code)
    assert log.fake_open() == 0


@pytest.mark.parametrize(("behaviour", "code"), [("right", ""), ("wrong", "wrong_output")])
def test_a_tolerance_in_steps_of_the_type(fake: Path, log: ctypes.CDLL, behaviour: str, code: str) -> None:
    said = cuda_driver.answer(*job(fake, behaviour, cases=2, tolerance=[0.0, 0.0, 1.0]))
    assert said["windows"][0]["code"] == code
    exact = cuda_driver.answer(*job(fake, "right", cases=2, tolerance=[0.0, 0.0, 0.0]))
    assert exact["windows"][0]["code"] == "wrong_output"  # float32 against a float64 reference


def test_a_cache_by_pointer_gains_nothing(fake: Path, log: ctypes.CDLL) -> None:
    said = cuda_driver.answer(*job(fake, "by_pointer"))
    assert [window["code"] for window in said["windows"]] == ["", "", ""]


def test_a_fault_of_the_device_names_the_call_and_leaks_nothing(fake: Path, log: ctypes.CDLL) -> None:
    said = cuda_driver.answer(*job(fake, "fault"))
    assert (said["status"], said["call"], said["code"]) == ("error", "cuLaunchKernel", 700)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said["detail"]
    assert log.fake_open() == 0


@pytest.mark.parametrize(
    ("change", "call", "code"),
    [
        ({"symbol": "other"}, "cuModuleGetFunction", 500),
        ({"sides": {"candidate": 0}}, "cuModuleLoadData", 200),
        ({"launch": {"block": [1025, 1, 1]}}, "cuLaunchKernel", 1),
    ],
)
def test_refusals_of_the_driver(
    fake: Path, log: ctypes.CDLL, change: dict[str, Any], call: str, code: int
) -> None:
    said = cuda_driver.answer(*job(fake, "right", **change))
    assert (said["status"], said["call"], said["code"]) == ("error", call, code)
    assert log.fake_open() == 0


@pytest.mark.parametrize(
    ("define", "call", "code"),
    [
        ("-DDEVICES=0", "cuDeviceGetCount", 100),
        ("-DINIT_ERROR=100", "cuInit", 100),
        ("-DINIT_ERROR=803", "cuInit", 803),
    ],
)
def test_a_driver_without_a_device_is_unavailable(folder: Path, define: str, call: str, code: int) -> None:
    library = build(folder, "fake_libcuda.c", f"lib{define.strip('-').replace('=', '')}.so", define)
    said = cuda_driver.answer(*job(library, "right"))
    assert (said["status"], said["call"], said["code"]) == ("unavailable", call, code)


def test_a_missing_or_foreign_library_is_unavailable(folder: Path) -> None:
    assert cuda_driver.answer(*job(folder / "absent.so", "right"))["status"] == "unavailable"
    other = build(folder, "fake_libnvml.c", "libother.so")
    said = cuda_driver.answer(*job(other, "right"))
    assert (said["status"], said["call"]) == ("unavailable", "dlopen")


def test_an_unknown_error_has_a_name_too(fake: Path) -> None:
    driver = Driver(str(fake))
    with pytest.raises(DriverError, match=r"cuEventRecord: CUDA_ERROR_400 \(400\)"):
        driver("cuEventRecord", None, None)
    assert Device(driver).describe()["name"] == "Fake GPU (no device)"


def test_the_helper_speaks_lines_of_json(fake: Path) -> None:
    told, blobs = job(fake, "right")
    source = io.BytesIO(
        json.dumps({**told, "blobs": [len(b) for b in blobs]}).encode() + b"\n" + b"".join(blobs)
    )
    target = io.BytesIO()
    cuda_driver.main(source, target)
    assert json.loads(target.getvalue())["status"] == "ok"


def reading(folder: Path, *defines: str) -> Any:
    """What `cuda_nvml.reading` gives in a process of its own that finds the stand-in."""
    place = folder / f"nvml{len(list(folder.iterdir()))}"
    place.mkdir()
    build(place, "fake_libnvml.c", "libnvidia-ml.so.1", *defines)
    script = "import json; from spak.validators import cuda_nvml; print(json.dumps(cuda_nvml.reading()))"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(place)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_nvml_readings_leave_out_what_is_not_offered(folder: Path) -> None:
    assert reading(folder) == {
        "name": "Fake GPU",
        "driver": "580.00",
        "sm_clock_mhz": 1410,
        "memory_clock_mhz": 2619,
        "temperature_c": 41,
        "reasons": 1,
        "slowed": [],
    }
    assert reading(folder, "-DREASONS=0x44")["slowed"] == ["power_cap", "hw_thermal"]
    assert reading(folder, "-DINIT_ERROR=9") is None  # driver not loaded


def profile(
    tmp_path: Path,
    fake: Path,
    behaviour: str,
    us: float = 900,
    rivals: dict[str, Subject] | None = None,
    **options: Any,
) -> Measurement:
    """The device path in the sandbox, from looking for a device on; the cubin is the stand-in's."""
    told = {"problem": "attention", "n": 64, **options}
    made = call(tmp_path, told, toolchain=with_fake(fake), rivals=rivals or {})
    device = cuda_timing.find(made, str(fake))
    assert (device.found, device.arch) == (True, "sm_90")
    assembly = Assembly("sm_90", cubin=f"FAKE {behaviour} {us}".encode())
    static = Measurement("static", evidence={"label": LABEL, "executed": False})
    return cuda_timing.measure(made, str(fake), device, assembly, static)


def with_fake(fake: Path) -> Toolchain:
    tools = toolchain()
    return Toolchain(tools.programs, (*tools.binds, fake.parent), tools.versions)


@pytest.mark.sandbox
def test_a_baseline_and_a_faster_candidate(tmp_path: Path, fake: Path) -> None:
    first = profile(tmp_path, fake, "right", role="baseline")
    assert (first.status, codes(first)) == ("measured", {})
    assert first.evidence["executed"] is True
    assert first.evidence["device"]["name"] == "Fake GPU (no device)"
    assert len(first.samples["candidate"]) == first.metrics["windows"] == 24
    assert 900_000 <= first.metrics["time_min_ns"] <= first.metrics["time_ns"] < 910_000
    rivals = {"incumbent": first.subject}
    second = profile(tmp_path, fake, "right", 800, rivals)
    assert (second.status, codes(second)) == ("measured", {})
    assert decide(second.pairs, DEFAULTS).outcome == "improved"
    assert len(second.pairs) == 8
    assert all(sorted(pair["order"]) == ["c"] * 3 + ["i"] * 3 for pair in second.pairs)


@pytest.mark.sandbox
def test_equal_kernels_are_no_improvement(tmp_path: Path, fake: Path) -> None:
    rivals = {"incumbent": Subject({"binary": b"FAKE right 900"})}
    result = profile(tmp_path, fake, "right", 900, rivals)
    assert decide(result.pairs, DEFAULTS).outcome == "not_improved"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("behaviour", "us", "status", "failed"),
    [
        ("wrong", 900, "checked", {"candidate": "wrong_output"}),
        ("fault", 900, "checked", {"candidate": "device_fault"}),
        ("right", 0, "void", {"timed": "zero_sample"}),
    ],
)
def test_what_is_wrong_has_no_metric(
    tmp_path: Path, fake: Path, behaviour: str, us: int, status: str, failed: dict[str, str]
) -> None:
    result = profile(tmp_path, fake, behaviour, us)
    assert (result.status, codes(result)) == (status, failed)
    assert (result.metrics, result.pairs) == ({}, ())


@pytest.mark.sandbox
def test_faster_than_the_bound(tmp_path: Path, fake: Path) -> None:
    result = profile(tmp_path, fake, "right", 0.01, role="baseline")
    assert codes(result) == {"bound": "too_fast"}


@pytest.mark.sandbox
def test_a_kernel_that_hangs_ends_in_time(tmp_path: Path, fake: Path) -> None:
    result = profile(tmp_path, fake, "hang", timeout_s=6)
    assert (result.status, codes(result)) == ("timeout", {"candidate": "timeout"})


@pytest.mark.sandbox
def test_a_rival_that_is_wrong_voids_the_measurement(tmp_path: Path, fake: Path) -> None:
    for subject, check, code in (
        (Subject({"binary": b"FAKE wrong 900"}), "rival.incumbent", "wrong_output"),
        (Subject({"source": b""}), "rival.incumbent", "no_binary"),
    ):
        result = profile(tmp_path, fake, "right", 900, {"incumbent": subject})
        assert (result.status, codes(result)) == ("void", {check: code})


@pytest.mark.sandbox
def test_a_rival_is_launched_in_its_own_shape(tmp_path: Path, fake: Path) -> None:
    """The stand-in refuses a block of 1025 threads, so it shows whose shape was used."""
    shape = json.dumps({**LAUNCH, "block": [1025, 1, 1]}).encode()
    rivals = {"incumbent": Subject({"binary": b"FAKE right 900", "launch": shape})}
    result = profile(tmp_path, fake, "right", 900, rivals)
    assert (result.status, codes(result)) == ("void", {"rival.incumbent": "device_fault"})


@pytest.mark.sandbox
def test_a_throttled_device_voids_the_measurement(
    tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_nvml, "reading", lambda: {"sm_clock_mhz": 210, "slowed": ["hw_thermal"]})
    result = profile(tmp_path, fake, "right")
    assert (result.status, codes(result)) == ("void", {"clock": "throttled"})
    assert result.evidence["nvml"] == [{"sm_clock_mhz": 210, "slowed": ["hw_thermal"]}]


KERNEL = """
extern "C" __device__ char behaviour[] = "FAKE right 900";
extern "C" __global__ void attn(long n, const float *a, const float *b, const float *c, float *o, float *s) {
    o[threadIdx.x] = a[0] + b[0] + c[0] + s[0] + n + behaviour[threadIdx.x];
}
"""


@pytest.mark.sandbox
def test_the_whole_validator_with_a_compiled_kernel(tmp_path: Path, fake: Path) -> None:
    write(tmp_path, kernel__cu=KERNEL)

    def run(library: Path, **options: Any) -> Measurement:
        told = {"problem": "attention", "arch": ["sm_80"], "n": 64, "role": "baseline", **options}
        return CudaProfiler(str(library)).measure(call(tmp_path, told, toolchain=with_fake(fake)))

    if not FOUND["nvcc"]:
        assert codes(run(fake)) == {"toolchain": "toolchain"}
        return
    result = run(fake)
    assert (result.status, codes(result)) == ("measured", {})
    assert sorted(result.evidence["arch"]) == ["sm_80", "sm_90"]  # the device's own is added
    assert sorted(result.subject.files) == ["binary", "launch", "source"]
    result = run(fake.with_name("absent.so"), device="required")
    assert (result.status, codes(result), result.metrics) == ("unavailable", {"device": "unavailable"}, {})
    result = run(fake, device="static")
    assert (result.status, result.evidence["executed"], result.metrics) == ("static", False, {})
