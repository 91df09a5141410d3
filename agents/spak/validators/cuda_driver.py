"""The CUDA driver API, called through ctypes: what launches and times a kernel. Stdlib only.

Sent as text to `python -I -B -c` inside a launcher that shows the device. Standard input holds one line of
JSON (the job) and then the bytes that its `blobs` measure out; standard output gets one line of JSON. Only
device code is foreign here: this process and its clock, the device's events, are ours.

One window: load the module afresh, so that no variable of the device outlives it; put the buffers at drawn
offsets; fill output and scratch with NaN; launch once on other inputs (the first launch pays for loading);
fill again, copy fresh inputs, evict the caches; record an event, launch, record an event; copy the output;
look whether the inputs are as they were; compare with the reference.

Prototypes follow cuda.h of toolkit 13.0; the `_v2` names are those that cuda.h maps the plain ones to.
"""

from __future__ import annotations

import ctypes
import json
import math
import random
import sys
from array import array
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

NOT_FOUND = (3, 34, 100, 101, 304, 802, 803, 804)
"""Codes that mean "no usable device here": not initialised, stub library, no device, invalid device, the
operating system refused, system not ready, driver mismatch, not supported on this device."""

ATTRIBUTES = {
    "sms": 16,
    "clock_khz": 13,
    "major": 75,
    "minor": 76,
    "l2_bytes": 38,
    "memory_clock_khz": 36,
    "bus_bits": 37,
}
MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

NAN_WORD = 0x7FC00000
ALIGN = 256
SLACK = 1 << 20
"""Bytes within which the offset of each buffer is drawn."""

Pointer = ctypes.c_uint64
Handle = ctypes.c_void_p
Size = ctypes.c_size_t
Int, UInt = ctypes.c_int, ctypes.c_uint


class Kind(NamedTuple):
    """A number's type: its C type, the code of `array`, its width in bytes."""

    c: Any
    code: str
    width: int


KINDS = {
    "float32": Kind(ctypes.c_float, "f", 4),
    "float64": Kind(ctypes.c_double, "d", 8),
    "int8": Kind(ctypes.c_int8, "b", 1),
    "uint8": Kind(ctypes.c_uint8, "B", 1),
    "int16": Kind(ctypes.c_int16, "h", 2),
    "int32": Kind(ctypes.c_int32, "i", 4),
    "int64": Kind(ctypes.c_int64, "q", 8),
}
"""By numpy's names, which a problem's prototype uses too."""

PROTOTYPES: dict[str, list[Any]] = {
    "cuInit": [UInt],
    "cuDriverGetVersion": [ctypes.POINTER(Int)],
    "cuDeviceGetCount": [ctypes.POINTER(Int)],
    "cuDeviceGet": [ctypes.POINTER(Int), Int],
    "cuDeviceGetName": [ctypes.c_char_p, Int, Int],
    "cuDeviceGetAttribute": [ctypes.POINTER(Int), Int, Int],
    "cuDevicePrimaryCtxRetain": [ctypes.POINTER(Handle), Int],
    "cuDevicePrimaryCtxRelease_v2": [Int],
    "cuCtxSetCurrent": [Handle],
    "cuCtxSynchronize": [],
    "cuModuleLoadData": [ctypes.POINTER(Handle), ctypes.c_char_p],
    "cuModuleGetFunction": [ctypes.POINTER(Handle), Handle, ctypes.c_char_p],
    "cuModuleUnload": [Handle],
    "cuFuncSetAttribute": [Handle, Int, Int],
    "cuMemAlloc_v2": [ctypes.POINTER(Pointer), Size],
    "cuMemFree_v2": [Pointer],
    "cuMemcpyHtoD_v2": [Pointer, ctypes.c_char_p, Size],
    "cuMemcpyDtoH_v2": [ctypes.c_void_p, Pointer, Size],
    "cuMemsetD32_v2": [Pointer, UInt, Size],
    "cuLaunchKernel": [Handle, *[UInt] * 7, Handle, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p],
    "cuEventCreate": [ctypes.POINTER(Handle), UInt],
    "cuEventRecord": [Handle, Handle],
    "cuEventSynchronize": [Handle],
    "cuEventElapsedTime": [ctypes.POINTER(ctypes.c_float), Handle, Handle],
    "cuEventDestroy_v2": [Handle],
    "cuGetErrorName": [Int, ctypes.POINTER(ctypes.c_char_p)],
}


class DriverError(Exception):
    """A call of the driver did not answer CUDA_SUCCESS; code -1: the library or a symbol is missing."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call = call
        self.code = code
        self.name = name


class Driver:
    """The loaded library; `driver("cuInit", 0)` calls and checks."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
            self._calls: dict[str, Callable[..., int]] = {}
            for name, arguments in PROTOTYPES.items():
                function = getattr(self._library, name)
                function.argtypes, function.restype = arguments, Int
                self._calls[name] = function
        except (OSError, AttributeError) as error:
            raise DriverError("dlopen", -1, str(error)) from error

    def __call__(self, name: str, *arguments: Any) -> None:
        code = self._calls[name](*arguments)
        if code != 0:
            raise DriverError(name, code, self._name(code))

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        known = self._calls["cuGetErrorName"](code, ctypes.byref(text)) == 0
        return text.value.decode("ascii", "replace") if known and text.value else f"CUDA_ERROR_{code}"

    def out(self, kind: Any, name: str, *arguments: Any) -> Any:
        """The value of a call's first parameter, which it fills in."""
        value = kind()
        self(name, ctypes.byref(value), *arguments)
        return value.value


class Device:
    """The first device with its primary context; use as a context manager."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        driver("cuInit", 0)
        if driver.out(Int, "cuDeviceGetCount") < 1:
            raise DriverError("cuDeviceGetCount", 100, "CUDA_ERROR_NO_DEVICE")
        self.ordinal: int = driver.out(Int, "cuDeviceGet", 0)

    def describe(self) -> dict[str, Any]:
        """Name, driver, compute capability and clocks of the device."""
        name = ctypes.create_string_buffer(256)
        self.driver("cuDeviceGetName", name, 256, self.ordinal)
        found: dict[str, Any] = {
            "name": name.value.decode("utf-8", "replace"),
            "driver": self.driver.out(Int, "cuDriverGetVersion"),
        }
        for key, attribute in ATTRIBUTES.items():
            try:
                found[key] = self.driver.out(Int, "cuDeviceGetAttribute", attribute, self.ordinal)
            except DriverError:
                found[key] = 0
        return found

    def __enter__(self) -> Device:
        context = self.driver.out(Handle, "cuDevicePrimaryCtxRetain", self.ordinal)
        try:
            self.driver("cuCtxSetCurrent", context)
        except DriverError:
            self.driver("cuDevicePrimaryCtxRelease_v2", self.ordinal)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.driver("cuDevicePrimaryCtxRelease_v2", self.ordinal)


class Bench:
    """Memory, events and the windows of one job."""

    def __init__(self, driver: Driver, job: dict[str, Any], blobs: list[bytes]) -> None:
        self.driver = driver
        self.job = job
        self.blobs = blobs
        self.draw = random.Random(job["seed"])
        self.cleanup: list[tuple[str, Any]] = []
        outputs = [kind for role, kind in job["parameters"] if role == "output"]
        self.arena_bytes = SLACK * (len(job["parameters"]) + 1) + max(
            sum(len(blobs[blob]) for blob in case["inputs"])
            + sum(KINDS[kind].width * count for kind, count in zip(outputs, case["outputs"], strict=True))
            + 8 * case["scratch"]
            for case in job["cases"]
        )
        try:
            self.arena = self._own("cuMemFree_v2", driver.out(Pointer, "cuMemAlloc_v2", self.arena_bytes))
            self.flush_bytes = max(job.get("flush_bytes", 0), 4)
            self.flush = self._own("cuMemFree_v2", driver.out(Pointer, "cuMemAlloc_v2", self.flush_bytes))
            self.events = [
                self._own("cuEventDestroy_v2", driver.out(Handle, "cuEventCreate", 0)) for _ in range(2)
            ]
        except DriverError:
            self.close()
            raise

    def _own(self, release: str, thing: Any) -> Any:
        self.cleanup.append((release, thing))
        return thing

    def close(self) -> None:
        """Give everything back, newest first. After a fault of the device the calls fail; that is no news."""
        while self.cleanup:
            release, thing = self.cleanup.pop()
            try:
                self.driver(release, thing)
            except DriverError:
                continue

    def window(self, side: str, case: int, warm: int) -> dict[str, Any]:
        """One timed launch: `{side, case, ns, err, code}`; code is empty when the output is right."""
        cubin = self.blobs[self.job["sides"][side]]
        module = self.driver.out(Handle, "cuModuleLoadData", cubin)
        try:
            function = self.driver.out(Handle, "cuModuleGetFunction", module, self.job["symbol"].encode())
            launch = self.job["launches"][side]
            if launch["shared_bytes"] > 0:
                self.driver("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, launch["shared_bytes"])
            self._launch(function, launch, self._place(warm), warm)
            self.driver("cuCtxSynchronize")
            pointers = self._place(case)
            self.driver("cuMemsetD32_v2", self.flush, self.draw.getrandbits(32), self.flush_bytes // 4)
            self.driver("cuCtxSynchronize")
            start, stop = self.events
            self.driver("cuEventRecord", start, None)
            self._launch(function, launch, pointers, case)
            self.driver("cuEventRecord", stop, None)
            self.driver("cuEventSynchronize", stop)
            elapsed = self.driver.out(ctypes.c_float, "cuEventElapsedTime", start, stop)
            code, error = self._compare(pointers, case)
            self.driver("cuCtxSynchronize")
        finally:
            try:
                self.driver("cuModuleUnload", module)
            except DriverError:
                pass  # the fault that brought us here has destroyed the context
        return {"side": side, "case": case, "ns": round(elapsed * 1_000_000), "err": error, "code": code}

    def _place(self, case: int) -> dict[int, int]:
        """Pointers of inputs, outputs and scratch of a case by parameter, filled."""
        item = self.job["cases"][case]
        counts = {name: iter(item[f"{name}s"]) for name in ("input", "output")}
        counts["scratch"] = iter([item["scratch"]])
        pointers: dict[int, int] = {}
        at = self.arena
        for index, (role, kind) in enumerate(self.job["parameters"]):
            if role == "scalar":
                continue
            blob = next(counts[role])
            size = len(self.blobs[blob]) if role == "input" else KINDS[kind].width * blob
            at += ALIGN * self.draw.randrange(SLACK // ALIGN)
            at = -(-at // ALIGN) * ALIGN
            pointers[index] = at
            at += size
            if role == "input":
                self.driver("cuMemcpyHtoD_v2", pointers[index], self.blobs[blob], size)
            else:
                self.driver("cuMemsetD32_v2", pointers[index], NAN_WORD, -(-size // 4))
        return pointers

    def _launch(self, function: int, launch: dict[str, Any], pointers: dict[int, int], case: int) -> None:
        item = self.job["cases"][case]
        scalars = iter(item["scalars"])
        values: list[Any] = [
            KINDS[kind].c(next(scalars)) if role == "scalar" else Pointer(pointers[index])
            for index, (role, kind) in enumerate(self.job["parameters"])
        ]
        parameters = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
        )
        grid = -(-item["n"] // launch["rows_per_block"])
        block, shared = launch["block"], launch["shared_bytes"]
        self.driver("cuLaunchKernel", function, grid, 1, 1, *block, shared, None, parameters, None)

    def _compare(self, pointers: dict[int, int], case: int) -> tuple[str, float | None]:
        item = self.job["cases"][case]
        found = []
        outputs, references = iter(item["outputs"]), iter(item["references"])
        for index, (role, kind) in enumerate(self.job["parameters"]):
            if role == "output":
                output = array(KINDS[kind].code, bytes(KINDS[kind].width * next(outputs)))
                address, _ = output.buffer_info()
                self.driver("cuMemcpyDtoH_v2", address, pointers[index], KINDS[kind].width * len(output))
                reference = array("d" if kind.startswith("float") else "q")
                reference.frombytes(self.blobs[next(references)])
                found.append((output, reference))
        inputs = iter(item["inputs"])
        for index, (role, _) in enumerate(self.job["parameters"]):
            if role == "input":
                blob = self.blobs[next(inputs)]
                seen = ctypes.create_string_buffer(len(blob))
                self.driver("cuMemcpyDtoH_v2", seen, pointers[index], len(blob))
                if seen.raw != blob:
                    return "inputs_changed", None
        worst = 0.0
        allowed, relative, steps = self.job["tolerance"]
        for output, reference in found:
            digits = {"f": 24, "d": 53}.get(output.typecode, 0) if steps else 0
            for got, wanted in zip(output, reference, strict=True):
                error = abs(got - wanted)
                most = allowed + relative * abs(wanted)
                if digits:
                    most = max(most, steps * math.ldexp(1, math.frexp(wanted)[1] - digits))
                if not error <= most:  # also when it is NaN
                    return "wrong_output", error if error < float("inf") else None
                worst = max(worst, error)
        return "", worst


def answer(job: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
    """What the device says to a job: `status` is ok, unavailable or error. Without windows it only looks."""
    try:
        device = Device(Driver(job["library"]))
        found = device.describe()
    except DriverError as error:
        status = "unavailable" if error.code in (*NOT_FOUND, -1) else "error"
        return {"status": status, "call": error.call, "code": error.code, "detail": str(error)}
    windows: list[dict[str, Any]] = []
    try:
        if job["windows"]:
            with device:
                bench = Bench(device.driver, job, blobs)
                try:
                    for side, case, warm in job["windows"]:
                        windows.append(bench.window(side, case, warm))
                        if windows[-1]["code"]:
                            break
                finally:
                    bench.close()
    except DriverError as error:
        return {
            "status": "error",
            "call": error.call,
            "code": error.code,
            "detail": str(error),
            "device": found,
            "windows": windows,
        }
    return {"status": "ok", "device": found, "windows": windows}


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Read one job from `source`, do it, and write the answer as a line of JSON."""
    job = json.loads(source.readline())
    blobs = [source.read(size) for size in job["blobs"]]
    target.write(json.dumps(answer(job, blobs)).encode() + b"\n")
    target.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
