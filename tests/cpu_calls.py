"""What the tests of CpuProfiler share: candidates compiled from C, and calls on the real launcher."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spak import data
from spak.kernel.metric.decision import DEFAULTS, Verdict, decide
from spak.ports import Launcher, MeasureCall, Measurement, Subject
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_profiler import CpuProfiler
from validator_calls import toolchain

HACKS = Path(__file__).parent / "validators" / "hacks"
EXAMPLES = data.path("specs/examples/attention_tuner")
TENFOLD = "-DWASTE=900"
"""Makes the honest candidate do ten times its work: slower on every machine, however busy it is."""
N = 128
"""Small, so that the adversarial suite is cheap; hostile candidates know it."""


class Lab:
    """A workspace with compiled candidates, a profiler and a launcher."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.profiler = CpuProfiler()
        self.launcher: Launcher = Restricted()

    def compiled(self, source: Path, *flags: str) -> str:
        """The name of the shared object in the workspace; the same text and flags are compiled once."""
        flags = flags or ("-O2", "-march=native")
        key = hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:8]
        name = f"{source.stem}-{key}.so"
        if not (self.folder / name).exists():
            command = [
                "gcc",
                "-shared",
                "-fPIC",
                "-w",
                *flags,
                "-o",
                str(self.folder / name),
                str(source),
                "-lm",
            ]
            subprocess.run(command, check=True)
        return name

    def hack(self, name: str, *flags: str) -> str:
        return self.compiled(HACKS / f"{name}.c", "-O2", "-march=native", *flags)

    def measure(
        self,
        binary: str,
        role: str = "candidate",
        rivals: Mapping[str, str] | None = None,
        profiler: CpuProfiler | None = None,
        launcher: Launcher | None = None,
        rule: Mapping[str, int] | None = None,
        **options: Any,
    ) -> Measurement:
        found = {
            name: Subject({"binary": (self.folder / file).read_bytes()})
            for name, file in (rivals or {}).items()
        }
        options = {"problem": "attention", "binary": binary, "role": role, "n": N, **options}
        call = MeasureCall(
            "m1", "CpuProfiler", options, self.folder, launcher or self.launcher,
            toolchain=toolchain(), seed=7, rivals=found, rule=rule or {},
        )  # fmt: skip
        return (profiler or self.profiler).measure(call)


def code(measurement: Measurement) -> str:
    """The code of the check that failed, or an empty string."""
    return next((item["code"] for item in measurement.checks if not item["ok"]), "")


def verdict(
    measurement: Measurement, rival: str = "incumbent", rule: Mapping[str, int] = DEFAULTS
) -> Verdict:
    """What the kernel makes of the recorded pairs."""
    return decide([pair for pair in measurement.pairs if pair["rival"] == rival], rule)


def from_malloc(name: str) -> int:
    """How far a function of the C library lies from malloc."""
    library = ctypes.CDLL("libc.so.6")
    at = [ctypes.cast(getattr(library, each), ctypes.c_void_p).value or 0 for each in (name, "malloc")]
    return at[0] - at[1]
