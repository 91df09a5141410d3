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
