from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.kernel.metric.signal import derive
from spak.kernel.state import Executive
from spak.ports import Measurement, Toolchain
from spak.program import MetricRule, Task
from spak.validators.cuda_profiler import LABEL, CudaProfiler
from spak.validators.cuda_static import Kernel, diagnostics, kernels, plain_ptx, sass_hash
from validator_calls import FOUND, call, codes, toolchain, write

TWO = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3twoPf' for 'sm_80'
ptxas info    : Function properties for _Z3twoPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 1.371 ms
ptxas info    : Compiling entry function 'attn' for 'sm_80'
ptxas info    : Function properties for attn
    160 bytes stack frame, 76 bytes spill stores, 80 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 160 bytes cumulative stack size, 512 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 15.460 ms
ptxas info    : Function properties for _Z1gf
    24 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""  # noqa: E501
OLD = """\
ptxas info    : Compiling entry function 'k' for 'sm_75'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 1024+16 bytes smem, 368 bytes cmem[0]
"""
PTX = """\
// Cuda compilation tools, release 13.0, V13.0.88
.visible .entry _Z3twoPf(
\t.param .u64 _Z3twoPf_param_0
)
{
\tret;
}
.visible .entry attn(
\t.param .u64 attn_param_0
)
.maxntid 64, 4, 1
.minnctapersm 2
{
\tret; // a remark
}
"""
SAID = """\
bad1.cu:1:10: fatal error: no.h: No such file or directory
    1 | #include "no.h"
compilation terminated.
/ws/sub/bad2.cu(7): error: identifier "x" is undefined
  __attribute__((global)) void k(){ x = 1; int y; }
./bad2.cu(1): warning #177-D: variable "y" was declared but never referenced
1 error detected in the compilation of "bad2.cu".
ptxas /scratch/kernel.ptx, line 21; error   : Not a name of any known instruction: 'bogus'
ptxas fatal   : Ptx assembly aborted due to errors
w.cu:2:2: warning: #warning hello [-Wcpp]
nvcc fatal   : Unsupported gpu architecture 'compute_70'
"""


def test_what_ptxas_wrote() -> None:
    assert kernels(TWO, PTX) == {
        "_Z3twoPf": Kernel("_Z3twoPf", registers=8),
        "attn": Kernel("attn", 30, 160, 76, 80, 512, 1, 256),
    }
    assert kernels(OLD) == {"k": Kernel("k", registers=12, shared_bytes=1040)}
    assert kernels("") == kernels("ptxas info : Used 3 registers\n") == {}


def test_what_compilers_complain_about() -> None:
    found = [(d["severity"], d["file"], d["line"], d["code"]) for d in diagnostics(SAID)]
    assert found == [
        ("error", "bad1.cu", 1, "fatal error"),
        ("error", "sub/bad2.cu", 7, "error"),
        ("warning", "bad2.cu", 1, "177-D"),
        ("error", "", 21, "ptxas"),
        ("error", "", 0, "ptxas"),
        ("warning", "w.cu", 2, "-Wcpp"),
        ("error", "", 0, "nvcc"),
    ]


def test_equal_kernels_have_equal_ptx_without_remarks() -> None:
    assert plain_ptx(PTX) == plain_ptx(PTX.replace("V13.0.88", "V13.0.1").replace("// a remark", ""))
    assert plain_ptx(PTX) != plain_ptx(PTX.replace("64, 4", "64, 2"))


def elf(**sections: bytes) -> bytes:
    """A small ELF file: a null section, the given ones (`__` is a dot), the section names."""
    names, body, headers = b"\0", b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, data in sections.items():
        text = name.replace("__", ".").encode()
        headers.append(struct.pack("<IIQQQQIIQQ", len(names), 1, 0, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        names, body = names + text + b"\0", body + data
    headers.append(struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(body), len(names), 0, 0, 1, 0))
    table = 64 + len(body) + len(names)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, len(headers), len(headers) - 1
    )
    return head + body + names + b"".join(headers)


def test_only_machine_code_is_hashed() -> None:
    one = sass_hash(elf(__text__attn=b"code", __nv__info=b"a"))
    assert one and one == sass_hash(elf(__nv__info=b"bb", __text__attn=b"code"))
    assert one != sass_hash(elf(__text__attn=b"CODE", __nv__info=b"a"))
    assert one != sass_hash(elf(__text__other=b"code"))


def test_what_is_no_cubin_has_no_hash() -> None:
    whole = elf(__text__attn=b"code")
    assert [sass_hash(data) for data in (b"", b"text", whole[:70], elf(__data=b"x"))] == [""] * 4
    for cut in range(0, len(whole), 7):
        assert isinstance(sass_hash(whole[:cut]), str)


GOOD = """
extern "C" __global__ void __launch_bounds__(128) attn(long n, const float *a, const float *b, const float *c,
                                                       float *o, float *s) {
    __shared__ float tile[128];
    tile[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x];
    __syncthreads();
    o[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x] + c[n] + s[0];
}
"""


def profile(tmp_path: Path, text: str, **options: Any) -> Measurement:
    write(tmp_path, kernel__cu=text)
    result = CudaProfiler().measure(call(tmp_path, {"problem": "attention", "arch": ["sm_90"], **options}))
    canon.dumps([result.evidence, list(result.checks), list(result.diagnostics)])
    assert (result.metrics, result.pairs, result.samples) == ({}, (), {})
    if not FOUND["nvcc"]:
        assert (result.status, codes(result)) == ("unavailable", {"toolchain": "toolchain"})
    return result


pytestmark = pytest.mark.sandbox


def test_static_evidence(tmp_path: Path) -> None:
    result = profile(tmp_path, GOOD, arch=["sm_80", "sm_90"])
    if not FOUND["nvcc"]:
        return
    assert (result.status, codes(result)) == ("static", {})
    assert (result.evidence["label"], result.evidence["executed"]) == (LABEL, False)
    assert result.evidence["nvcc"].split(".")[0].isdigit()
    for arch in ("sm_80", "sm_90"):
        found = result.evidence["arch"][arch]
        assert found["kernel"] == "attn"
        assert 4 < found["registers"] < 64
        assert (found["shared_bytes"], found["barriers"], found["max_threads"]) == (512, 1, 128)
        assert (found["spill_stores"], found["spill_loads"], found["stack"]) == (0, 0, 0)
        assert found["occupancy"]["threads"] == 128
        assert len(found["ptx_hash"]) == len(found["sass_hash"]) == 43
    hashes = {arch: found["sass_hash"] for arch, found in result.evidence["arch"].items()}
    assert hashes["sm_80"] != hashes["sm_90"]


def test_a_hash_tells_a_change_from_none(tmp_path: Path) -> None:
    def seen(text: str, **options: Any) -> Any:
        result = profile(tmp_path, text, **options)
        return result.evidence["arch"]["sm_90"]["sass_hash"] if FOUND["nvcc"] else None

    first = seen(GOOD)
    assert seen("// a remark\n" + GOOD.replace("tile", "cells"), flags=["-maxrregcount=64"]) == first
    if FOUND["nvcc"]:
        assert seen(GOOD.replace("127 -", "126 -")) != first


def test_output_of_the_source_is_no_evidence(tmp_path: Path) -> None:
    forged = '#pragma message("x\\nptxas info    : Used 1 registers, 9999 bytes smem")\n'
    honest, lied = profile(tmp_path, GOOD), profile(tmp_path, forged + GOOD)
    if FOUND["nvcc"]:
        assert honest.evidence["arch"] == lied.evidence["arch"]


@pytest.mark.parametrize(
    ("text", "failed", "line"),
    [
        ("__global__ void attn() { x = 1; }\n", {"compile.sm_90": "compile_error"}, 1),
        ('\n#include "absent.h"\n', {"compile.sm_90": "compile_error"}, 2),
        ('extern "C" __global__ void attn() { asm("bogus;"); }\n', {"compile.sm_90": "compile_error"}, None),
        ("__global__ void attn() { }\n", {"entry.sm_90": "missing_symbol"}, None),
        ("", {"entry.sm_90": "missing_symbol"}, None),
    ],
)
def test_a_source_that_does_not_do(
    tmp_path: Path, text: str, failed: dict[str, str], line: int | None
) -> None:
    result = profile(tmp_path, text)
    if FOUND["nvcc"]:
        assert (result.status, codes(result)) == ("static", failed)
        if line is not None:
            first = result.diagnostics[0]
            assert (first["severity"], first["file"], first["line"]) == ("error", "kernel.cu", line)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"block": [256]}, "launch_bounds"),
        ({"block": [1024, 1024]}, "launch_bounds"),
        ({"dynamic_shared_bytes": 240_000}, "does_not_fit"),
    ],
)
def test_a_launch_that_cannot_work(tmp_path: Path, options: dict[str, Any], code: str) -> None:
    result = profile(tmp_path, GOOD, **options)
    if FOUND["nvcc"]:
        assert codes(result) == {"fits.sm_90": code}


def test_without_a_problem_any_kernel_will_do(tmp_path: Path) -> None:
    write(tmp_path, kernel__cu="__global__ void b(float *x) { }\n__global__ void a(float *x) { *x = 1; }\n")
    result = CudaProfiler().measure(call(tmp_path, {}))
    if FOUND["nvcc"]:
        assert (result.status, codes(result)) == ("static", {})
        assert sorted(result.evidence["arch"]) == ["sm_80", "sm_90"]
        assert result.evidence["arch"]["sm_80"]["kernel"] == "_Z1aPf"
        assert list(result.evidence["arch"]["sm_80"]["others"]) == ["_Z1bPf"]


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    tools = toolchain(nvcc="/usr/bin/true")
    (tmp_path / "link.cu").symlink_to("/etc/hostname")
    for name in ("absent.cu", "link.cu"):
        made = call(tmp_path, {"source": name}, toolchain=tools)
        assert codes(CudaProfiler().measure(made)) == {"source": "unreadable"}


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, kernel__cu=GOOD)
    result = CudaProfiler().measure(call(tmp_path, {}, toolchain=Toolchain()))
    assert (result.status, codes(result)) == ("unavailable", {"toolchain": "toolchain"})
    made = call(
        tmp_path, {"arch": ["sm_90"]}, toolchain=toolchain(nvcc="/nowhere/nvcc", ptxas="/nowhere/ptxas")
    )
    assert codes(CudaProfiler().measure(made)) == {"compile.sm_90": "toolchain"}


def test_the_kernel_derives_no_improvement_from_static_evidence(tmp_path: Path) -> None:
    result = profile(tmp_path, GOOD)
    if not FOUND["nvcc"]:
        return
    body = {"status": result.status, "checks": list(result.checks), "metrics": dict(result.metrics)}
    task = Task("t", edges={"metric_improved": "t", "plateau": "u"}, rule=MetricRule("time_ns"))
    state = Executive()
    for _ in range(10):
        derived = derive(task, "CudaProfiler", {"role": "candidate"}, body, state)
        state = derived.executive
        assert derived.signal in ("success", "plateau")
        assert (derived.improved, state.best) == (False, None)
    lying = {**body, "metrics": {"time_ns": 1}}
    assert not derive(task, "CudaProfiler", {"role": "candidate"}, lying, state).improved
