"""Problems in the tests' own process: files that ship, or texts of the tests, without a sandbox."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from spak import data
from spak.validators.problems import Problem, ProblemFault, shipped

GUEST = "sandbox/guest/problem_guest.py"
GOOD = """
import numpy as np
prototype = "void scale(long n, float k, const float *x, float *y)"
sizes = {"least": 1, "most": 64, "timed": 32}
kinds = ["normal", "zeros"]
tolerance = {"abs": 1e-6, "rel": 1e-6}
def shapes(n): return {"x": (n, 4), "y": (n, 4)}
def flops(n): return 4 * n
def inputs(random, n, kind):
    x = random.standard_normal((n, 4), dtype=np.float32)
    return {"k": 2.0, "x": x * 0 if kind == "zeros" else x}
def reference(n, k, x):
    return k * x.astype(np.float64)
"""


def changed(*pairs: tuple[str, str]) -> str:
    """GOOD with texts replaced."""
    text = GOOD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


RETURNS = "    return k * x.astype(np.float64)"


def guest() -> ModuleType:
    """The guest as a module."""
    spec = importlib.util.spec_from_file_location("problem_guest", data.path(GUEST))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Inside:
    """Answers as the sandboxed process does, here."""

    def __init__(self, text: str) -> None:
        self._guest = guest()
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            try:
                self._module = self._guest.load(Path(file.name))
            except self._guest.Fault as fault:
                raise ProblemFault(fault.code, str(fault)) from fault

    def ask(self, do: str, **more: Any) -> tuple[dict[str, Any], bytes]:
        try:
            told, parts = getattr(self._guest, do)(self._module, more)
        except self._guest.Fault as fault:
            raise ProblemFault(fault.code, str(fault)) from fault
        return told, b"".join(parts)


def problem(name: str) -> Problem:
    """A problem that ships."""
    return Problem.of(Inside(shipped()[name]))  # type: ignore[arg-type]
