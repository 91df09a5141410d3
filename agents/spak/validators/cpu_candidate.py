"""What is measured, by its kind: a shared object or a Python file, each with the driver that calls it.

A candidate decides nothing: the window, the clock and the verdict are the same for both (cpu_process).

    Native    a shared object, whatever language it was compiled from; sandbox/guest/cpu_driver.c
    Script    a Python file with numpy or numba; sandbox/guest/python_driver.py

    prepare   writes the driver and what it loads into the folder of a side
    argv      the command line; the descriptors are those of inputs, outputs, go and done
    message   one call: the slots of all parameters, and the shapes of the pointers among them
    warms     it compiles itself in its first calls, which come before the time is taken
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from spak import data
from spak.validators.problems import Prototype

DRIVER = "sandbox/guest/python_driver.py"
SIDES = 8
"""Sides of a shape in a message to the Python driver."""
SEAL = -1
"""The shift of a message that installs the Python driver's second filter."""

_EXITS = {
    81: ("load_failed", "it cannot be loaded"),
    82: ("missing_symbol", "it does not define the symbol"),
    83: ("wrote_inputs", "a write to the inputs, which are read-only"),
    85: ("raised", "it raised an exception"),
    86: ("wrong_signature", "its function takes other parameters"),
    87: ("out_of_bounds", "it read or wrote before or behind its inputs and outputs"),
    159: ("forbidden_call", "a system call that a kernel has no use for"),
}
"""Exit statuses of the drivers, and of the signal of their filters (128 + SIGSYS)."""


@dataclass(frozen=True, slots=True)
class Native:
    """A shared object."""

    driver: Path
    binary: bytes
    threads: int = 1
    warms: ClassVar[bool] = False
    binds: ClassVar[tuple[Path, ...]] = ()

    @property
    def env(self) -> Mapping[str, str]:
        """The settings of OpenMP's library: its threads sleep when they have nothing to do."""
        several = {"OMP_NUM_THREADS": str(self.threads), "OMP_WAIT_POLICY": "passive", "OMP_DYNAMIC": "false"}
        return several if self.threads > 1 else {}

    def prepare(self, folder: Path) -> None:
        """Write driver and object into the folder."""
        shutil.copy(self.driver, folder / "driver")
        library = folder / "kernel.so"
        library.write_bytes(self.binary)
        library.chmod(0o555)

    def argv(self, fds: tuple[int, ...], prototype: Prototype) -> tuple[str, ...]:
        """The driver, its descriptors, the object and its symbol."""
        return ("/ws/driver", *map(str, fds), "/ws/kernel.so", prototype.symbol)

    def message(self, slots: list[bytes], shift: int, shapes: list[tuple[int, ...]]) -> bytes:
        """Slots and shift; a shared object knows its shapes."""
        return b"".join(slots) + shift.to_bytes(8, "little", signed=True)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and the packages that candidates may import, as places inside the sandbox."""

    program: str
    folders: tuple[str, ...]
    """What is added to the path: the parents of the packages."""
    binds: tuple[Path, ...]
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A Python file; it sees the standard library and the interpreter's packages, nothing of ours."""

    python: Interpreter
    text: bytes
    warms: ClassVar[bool] = True
    env: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )

    @property
    def binds(self) -> tuple[Path, ...]:
        """The interpreter's own, read-only."""
        return self.python.binds

    def prepare(self, folder: Path) -> None:
        """Write driver and candidate into the folder."""
        for name, content in (("driver.py", data.path(DRIVER).read_bytes()), ("candidate.py", self.text)):
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o444)

    def argv(self, fds: tuple[int, ...], prototype: Prototype) -> tuple[str, ...]:
        """The driver, its descriptors, the file, its function, the parameters and the packages."""
        parameters = [[item.name, item.role, item.type] for item in prototype.parameters]
        needed = [
            name for name in self.python.packages if re.search(rb"\b" + name.encode() + rb"\b", self.text)
        ]
        return (
            *(self.python.program, "-I", "-S", "-B", "/ws/driver.py"),
            *map(str, fds),
            *("/ws/candidate.py", prototype.symbol, json.dumps(parameters)),
            json.dumps({"folders": self.python.folders, "needed": needed}),
        )

    def message(self, slots: list[bytes], shift: int, shapes: list[tuple[int, ...]]) -> bytes:
        """Slots, shift, and eight sides for each pointer."""
        sides = [side for shape in shapes for side in (*shape, *[0] * (SIDES - len(shape)))]
        return b"".join(slots) + b"".join(
            number.to_bytes(8, "little", signed=True) for number in (shift, *sides)
        )


Candidate = Native | Script


def meaning(exit_status: int) -> tuple[str, str] | None:
    """The code and the words of a driver's exit status, if it is one of its own."""
    return _EXITS.get(exit_status)


__all__ = ["SEAL", "Candidate", "Interpreter", "Native", "Script", "meaning"]
