"""What NVML says of this machine's devices. No driver, no device: an empty list, never a made-up reading."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pynvml


def readings() -> list[dict[str, Any]]:
    """One for each device: name, uuid, and what the driver gives of memory, load, heat and power."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        count = pynvml.nvmlDeviceGetCount()
        return [_reading(pynvml.nvmlDeviceGetHandleByIndex(number)) for number in range(count)]
    except pynvml.NVMLError:
        return []
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _reading(device: Any) -> dict[str, Any]:
    asked: dict[str, Callable[[], Any]] = {
        "name": lambda: _text(pynvml.nvmlDeviceGetName(device)),
        "uuid": lambda: _text(pynvml.nvmlDeviceGetUUID(device)),
        "memory_used": lambda: pynvml.nvmlDeviceGetMemoryInfo(device).used,
        "memory_total": lambda: pynvml.nvmlDeviceGetMemoryInfo(device).total,
        "load_percent": lambda: pynvml.nvmlDeviceGetUtilizationRates(device).gpu,
        "celsius": lambda: pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU),
        "watts": lambda: pynvml.nvmlDeviceGetPowerUsage(device) / 1000,
    }
    found = {}
    for name, ask in asked.items():
        try:
            found[name] = ask()
        except pynvml.NVMLError:
            continue
    return found


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
