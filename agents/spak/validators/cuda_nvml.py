"""What NVML says of a device while it is measured: clocks, power, temperature, throttling.

Gives a reading as plain numbers, or None where there is no NVML, no driver or no device. A value that a
device does not offer is left out, not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SLOWED = {
    "power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
}
"""nvmlClocksEventReasons bits that mean "the device could not run at its clock"; idle (0x1), settings (0x2),
sync boost (0x10) and display clocks (0x100) are choices."""


def reading(index: int = 0) -> dict[str, Any] | None:
    """One reading of a device, `slowed` naming what holds its clock down."""
    try:
        import pynvml
    except ImportError:
        return None
    nvml: Any = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        return _read(nvml, index)
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def _read(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    wanted: dict[str, Callable[[], Any]] = {
        "name": lambda: nvml.nvmlDeviceGetName(handle),
        "driver": lambda: nvml.nvmlSystemGetDriverVersion(),
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "power_mw": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
    }
    found: dict[str, Any] = {}
    for name, ask in wanted.items():
        try:
            value = ask()
        except nvml.NVMLError:
            continue
        found[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if "reasons" in found:
        found["slowed"] = [name for name, bit in SLOWED.items() if found["reasons"] & bit]
    return found
