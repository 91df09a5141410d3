"""The table of validators: name to what makes one. A validator's module is imported when it is made.

A new validator is one module and one line here; its class has `entry` and `measure` (spak.ports.Validator).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from spak.ports import Validator


def _make(module: str, name: str) -> Validator:
    made: Validator = getattr(import_module(f"spak.validators.{module}"), name)()
    return made


VALIDATORS: dict[str, Callable[[], Validator]] = {
    "Command": partial(_make, "command", "Command"),
    "PyTest": partial(_make, "pytest_", "PyTest"),
    "Linter": partial(_make, "linter", "Linter"),
    "Compliance": partial(_make, "compliance", "Compliance"),
    "Judge": partial(_make, "judge", "Judge"),
    "Metric": partial(_make, "metric", "Metric"),
    "CpuProfiler": partial(_make, "cpu_profiler", "CpuProfiler"),
    "CudaProfiler": partial(_make, "cuda_profiler", "CudaProfiler"),
}

__all__ = ["VALIDATORS"]
