"""The CudaProfiler: the contract of CpuProfiler on a GPU; without one, static evidence only.

Takes a problem, a source file and the shape of a launch. It compiles in the sandbox for every architecture
asked for and reports what nvcc and ptxas say (spak.validators.cuda_static) with the theoretical occupancy.
Where the launcher shows a device, the kernel is checked and timed there (spak.validators.cuda_timing).

Without a device the status is `static`: no metric, no sample and no pair, not even a zero, so that nothing
can be called an improvement, and the evidence says that nothing was executed. Latency, bandwidth, achieved
occupancy and any result of the GPU binary are never estimated. `device: "required"` turns a missing device
into the status `unavailable`, `device: "static"` does not look for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import schema_parts as parts
from spak.lang.catalog import ValidatorEntry
from spak.ports import MeasureCall, Measurement, Subject
from spak.validators import cuda_occupancy, cuda_static, cuda_timing, launch, problems, static_checks
from spak.validators.cuda_static import Assembly, Kernel

LABEL = "STATIC ONLY - not executed"
MAX_SOURCE = 4 << 20
DEFAULT_THREADS = 128

_FLAG = (
    "^(-maxrregcount=[0-9]{1,3}|--use_fast_math|--extra-device-vectorization"
    "|--fmad=(true|false)|--ftz=(true|false)|--prec-(div|sqrt)=(true|false)"
    r"|--std=c\+\+(14|17|20)|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?)$"
)
SCHEMA = parts.members(
    [],
    source=parts.text("The CUDA source file.", 512, r"^[A-Za-z0-9_][\w./-]*\.cu$", "kernel.cu"),
    problem={"description": "Inputs, reference and tolerance; needed on a device.", **problems.SCHEMA},
    role=parts.ROLE,
    arch=parts.listed(
        "Architectures to compile for, sm_80 and sm_90 without it; a device's own is added.",
        {"type": "string", "enum": sorted(cuda_occupancy.ARCHS)},
        8,
        1,
    ),
    n=parts.whole("The size that is timed; the problem's own without it.", 1, problems.MAX_SIZE),
    block=parts.listed(
        "Threads of a block, in up to three dimensions; those of its launch bounds, else 128.",
        {"type": "integer", "minimum": 1, "maximum": cuda_occupancy.MAX_THREADS},
        3,
        1,
    ),
    rows_per_block=parts.whole("The grid has n / rows_per_block blocks, rounded up.", 1, 65_536, 1),
    dynamic_shared_bytes=parts.whole("Bytes of dynamic shared memory.", 0, 262_144, 0),
    flags=parts.listed(
        "Options of nvcc: -maxrregcount --use_fast_math --fmad --ftz --prec-div --prec-sqrt --std -D.",
        {"type": "string", "maxLength": 64, "pattern": _FLAG},
        16,
    ),
    device=parts.choice(
        "auto uses a device if there is one and a problem is named; static only compiles.",
        ("auto", "static", "required"),
        "auto",
    ),
    timeout_s=parts.seconds("Seconds of each compile and each round on the device, at most 120.", 1),
)


class CudaProfiler:
    """`library` is the name of the CUDA driver, as the loader in the sandbox finds it."""

    entry = ValidatorEntry(
        name="CudaProfiler",
        version=1,
        summary="Profiles a CUDA kernel on a device; without one, the compiler's static evidence.",
        schema=SCHEMA,
        triggers=("success", "fail", "timeout", "metric_improved", "plateau"),
        metric=cuda_timing.METRIC,
        device="cuda",
    )

    def __init__(self, library: str = "libcuda.so.1") -> None:
        self.library = library

    def measure(self, call: MeasureCall) -> Measurement:
        if not launch.program(call, "nvcc"):
            return launch.unavailable("nvcc")
        source = call.options.get("source", "kernel.cu")
        text = _source(call, source)
        if isinstance(text, Measurement):
            return text
        device = self._device(call)
        if not device.found and call.options.get("device", "auto") == "required":
            detail = f"no CUDA device: {device.detail}"
            return Measurement("unavailable", checks=(launch.check("device", False, device.code, detail),))
        if device.found and "problem" not in call.options:
            detail = "a device is to be used: name the problem whose inputs and reference are meant"
            return Measurement("checked", checks=(launch.check("problem", False, "no_problem", detail),))
        archs = list(call.options.get("arch", ["sm_80", "sm_90"]))
        if device.found and device.arch not in archs:
            archs.append(device.arch)
        assemblies: dict[str, Assembly] = {}
        for arch in archs:
            result = cuda_static.assemble(
                call, arch, source, call.options.get("flags", ()), call.options.get("timeout_s", 120.0)
            )
            if isinstance(result, Measurement):
                return result
            assemblies[arch] = result
        static = _static(call, assemblies, text, device)
        if not device.found or not all(item["ok"] for item in static.checks):
            return static
        return cuda_timing.measure(call, self.library, device, assemblies[device.arch], static)

    def _device(self, call: MeasureCall) -> cuda_timing.Device:
        wanted = call.options.get("device", "auto")
        if wanted == "static" or (wanted == "auto" and "problem" not in call.options):
            return cuda_timing.Device(code="not_asked", detail="static evidence was asked for")
        return cuda_timing.find(call, self.library)


def _source(call: MeasureCall, name: str) -> bytes | Measurement:
    try:
        text = static_checks.read(call.workspace, name, MAX_SOURCE)
    except OSError as error:
        detail = f"{name}: {error.strerror or error}"
        return Measurement("checked", checks=(launch.check("source", False, "unreadable", detail),))
    if text is None:
        return Measurement("checked", checks=(launch.check("source", False, "too_large", name),))
    return text


def _static(
    call: MeasureCall, assemblies: Mapping[str, Assembly], source: bytes, device: cuda_timing.Device
) -> Measurement:
    checks: list[dict[str, Any]] = []
    archs: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    version = ""
    for arch, assembly in assemblies.items():
        found += [item for item in assembly.diagnostics if item not in found]
        checks.append(launch.check(f"compile.{arch}", not assembly.code, assembly.code, assembly.detail))
        if assembly.code:
            continue
        version = version or assembly.nvcc
        kernel = _main(call, assembly)
        if kernel is None:
            detail = f'no entry function {_symbol(call)!r}; declare it `extern "C" __global__`'
            checks.append(launch.check(f"entry.{arch}", False, "missing_symbol", detail))
            continue
        archs[arch], fits = _figures(call, assembly, kernel)
        checks += fits
    return Measurement(
        "static",
        checks=tuple(checks),
        subject=Subject({"source": source}),
        diagnostics=tuple(found),
        evidence={
            "label": LABEL,
            "executed": False,
            "nvcc": version or (call.toolchain.versions.get("nvcc", "") if call.toolchain else ""),
            "device": {"found": device.found, "code": device.code, "detail": device.detail},
            "arch": archs,
        },
        wall_ms=sum(assembly.wall_ms for assembly in assemblies.values()),
        cpu_ms=sum(assembly.cpu_ms for assembly in assemblies.values()),
    )


def _symbol(call: MeasureCall) -> str:
    """What the problem's kernel is called, read from its text without running it; empty where unknown."""
    if "problem" not in call.options:
        return ""
    try:
        text = problems.text_of(call.options["problem"], call.problems)
        return problems.parse(problems.prototype_in(text)).symbol
    except problems.ProblemFault:
        return ""


def _main(call: MeasureCall, assembly: Assembly) -> Kernel | None:
    """The problem's entry function, or, with no problem, the first by name."""
    symbol = _symbol(call)
    if symbol:
        return assembly.kernels.get(symbol)
    return next(iter(assembly.kernels.values()), None)


def _figures(
    call: MeasureCall, assembly: Assembly, kernel: Kernel
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What may be reported of one architecture, and the checks that a launch of this shape could work."""
    arch = assembly.arch
    block = call.options.get("block")
    threads = kernel.max_threads or DEFAULT_THREADS
    if block:
        threads = 1
        for size in block:
            threads *= size
    shared = kernel.shared_bytes + call.options.get("dynamic_shared_bytes", 0)
    checks: list[dict[str, Any]] = []
    if threads > cuda_occupancy.MAX_THREADS or (kernel.max_threads and threads > kernel.max_threads):
        most = kernel.max_threads or cuda_occupancy.MAX_THREADS
        detail = f"a block of {threads} threads, at most {most}"
        return _named(kernel, assembly), [launch.check(f"fits.{arch}", False, "launch_bounds", detail)]
    if arch not in cuda_occupancy.ARCHS:  # a device newer than the table
        return _named(kernel, assembly), checks
    result = cuda_occupancy.occupancy(arch, threads, kernel.registers, shared)
    detail = f"{result.blocks} blocks of {threads} threads, limited by {result.limiter}"
    checks.append(launch.check(f"fits.{arch}", result.blocks > 0, "does_not_fit", detail))
    figures = _named(kernel, assembly)
    figures["occupancy"] = {
        "threads": threads,
        "blocks": result.blocks,
        "warps": result.warps,
        "theoretical": result.theoretical,
        "limiter": result.limiter,
    }
    return figures, checks


def _named(kernel: Kernel, assembly: Assembly) -> dict[str, Any]:
    others = {name: _resources(other) for name, other in assembly.kernels.items() if name != kernel.name}
    figures: dict[str, Any] = {"kernel": kernel.name, **_resources(kernel)}
    figures |= {"ptx_hash": assembly.ptx_hash, "sass_hash": assembly.sass_hash}
    return {**figures, "others": others} if others else figures


def _resources(kernel: Kernel) -> dict[str, int]:
    return {
        "registers": kernel.registers,
        "spill_stores": kernel.spill_stores,
        "spill_loads": kernel.spill_loads,
        "stack": kernel.stack,
        "shared_bytes": kernel.shared_bytes,
        "barriers": kernel.barriers,
        "max_threads": kernel.max_threads,
    }
