"""The trusted programs of the profiler: driver and FMA peak, compiled from `sandbox/guest` on first use, and
the Python that runs candidates in that language.

Takes the paths of programs; gives paths of binaries in a private folder that goes when the owner does, the
measured peaks, and where the interpreter and its packages are. It never compiles or runs a candidate.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from pathlib import Path

from spak import data
from spak.cancel import TURN_S, Cancel, check
from spak.errors import UnavailableError
from spak.files.scratch import Scratch
from spak.ports import Toolchain
from spak.validators.cpu_candidate import Interpreter
from spak.validators.problems import Prototype

FLAGS = ("-std=gnu11", "-Wall", "-Wextra")
TIMEOUT_S = 60
PACKAGES = ("numpy", "numba", "llvmlite")
"""What a candidate in Python may import beside the standard library, where it is installed."""
_LOOK = """
import importlib.util, json, os, sys
found = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin:
        found[name] = os.path.dirname(os.path.dirname(spec.origin))
print(json.dumps([os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix), found]))
"""


class Workshop:
    """A private folder with the compiled driver; the peak is measured once and on demand again."""

    def __init__(self) -> None:
        self._scratch = Scratch("cpu")
        self.folder, self.close = self._scratch.path, self._scratch.close
        self.folder.chmod(0o755)  # the sandbox's uid reads the driver
        self._peak = self._loads = 0
        self._interpreters: dict[str, Interpreter] = {}

    def interpreter(self, toolchain: Toolchain | None, cancel: Cancel | None = None) -> Interpreter:
        """The Python for candidates, with the packages that they may import and no other.

        Raises: UnavailableError `unavailable.python`; Cancelled.
        """
        python = toolchain.programs.get("python", "") if toolchain else ""
        if python not in self._interpreters:
            self._interpreters[python] = _interpreter(python, cancel)
        return self._interpreters[python]

    def driver(
        self,
        toolchain: Toolchain | None,
        prototype: Prototype,
        cancel: Cancel | None = None,
        threads: int = 1,
    ) -> Path:
        """The child driver for a prototype. Raises: UnavailableError `unavailable.compiler`; Cancelled."""
        macros = [f"-D{macro}" for macro in prototype.macros()]
        if threads > 1:
            macros += [f"-DTHREADS={threads}", "-fopenmp"]
        name = hashlib.sha256(repr(macros).encode()).hexdigest()[:8]
        return self._built(toolchain, cancel, "cpu_driver", "-O2", *macros, name=f"cpu_driver-{name}")

    def flops_peak(
        self, toolchain: Toolchain | None, remeasure: bool = False, cancel: Cancel | None = None
    ) -> int:
        """FLOP per second of CPU time of one core; the highest seen by this workshop. Raises: Cancelled."""
        if self._peak == 0 or remeasure:
            self._measure_peaks(toolchain, cancel)
        return self._peak

    def bytes_peak(self, toolchain: Toolchain | None, cancel: Cancel | None = None) -> int:
        """Bytes per second of CPU time that one core loads from its nearest cache. Raises: Cancelled."""
        if self._loads == 0:
            self._measure_peaks(toolchain, cancel)
        return self._loads

    def _measure_peaks(self, toolchain: Toolchain | None, cancel: Cancel | None) -> None:
        flags = ("-O3", "-march=native", "-ffp-contract=fast")
        program = self._built(toolchain, cancel, "cpu_peak", *flags)
        flops, loads = map(int, run_trusted([str(program)], cancel).split())
        self._peak, self._loads = max(self._peak, flops), max(self._loads, loads)

    def _built(
        self,
        toolchain: Toolchain | None,
        cancel: Cancel | None,
        source_name: str,
        *flags: str,
        name: str = "",
    ) -> Path:
        name = name or source_name
        target = self.folder / name
        if not target.exists():
            source = data.path(f"sandbox/guest/{source_name}.c")
            aside = self.folder / f"{name}.new"
            line = [compiler(toolchain), *FLAGS, *flags, "-o", str(aside), str(source), "-ldl"]
            run_trusted(line, cancel)
            aside.chmod(0o755)
            aside.rename(target)
        return target


def _interpreter(python: str, cancel: Cancel | None) -> Interpreter:
    lacking = "CpuProfiler needs Python with numpy to run a candidate in that language"
    if not python:
        raise UnavailableError("unavailable.python", lacking, "make setup")
    try:
        program, base, found = json.loads(run_trusted([python, "-I", "-c", _LOOK, *PACKAGES], cancel))
    except (UnavailableError, ValueError) as error:
        raise UnavailableError("unavailable.python", f"{lacking}: {error}", "run spak doctor") from error
    if "numpy" not in found:
        raise UnavailableError("unavailable.python", lacking, f"{python} -m pip install numpy")
    shown = [Path(base)]
    for name, folder in found.items():
        shown += [place for place in (Path(folder, name), Path(folder, f"{name}.libs")) if place.exists()]
    return Interpreter(
        program=program,
        folders=tuple(dict.fromkeys(found.values())),
        binds=tuple(place for place in shown if not place.is_relative_to("/usr")),
        packages=tuple(found),
    )


def compiler(toolchain: Toolchain | None) -> str:
    """The path of gcc. Raises: UnavailableError `unavailable.compiler`."""
    found = (toolchain.programs.get("gcc") if toolchain else None) or shutil.which(
        "gcc", path="/usr/bin:/bin"
    )
    if found is None:
        raise UnavailableError(
            "unavailable.compiler", "CpuProfiler needs gcc to build its driver", "install gcc (make setup)"
        )
    return found


def run_trusted(argv: list[str], cancel: Cancel | None = None) -> str:
    """Standard output of a trusted program, which is ended when the work is cancelled.

    Raises: UnavailableError `unavailable.compiler` when it fails; Cancelled.
    """
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            argv, stdout=pipe, stderr=pipe, text=True, env={"PATH": "/usr/bin:/bin"}
        ) as process:
            try:
                output, errors = _outputs(process, cancel)
            except BaseException:
                process.kill()
                raise
    except (OSError, TimeoutError) as error:
        raise UnavailableError(
            "unavailable.compiler", f"{Path(argv[0]).name} did not run: {error}", "run spak doctor"
        ) from error
    if process.returncode:
        detail = errors.strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        raise UnavailableError(
            "unavailable.compiler", f"{Path(argv[0]).name} failed: {detail[0]}", "run spak doctor"
        )
    return output


def _outputs(process: subprocess.Popen[str], cancel: Cancel | None) -> tuple[str, str]:
    """Both outputs of a program, whole. Raises: TimeoutError, Cancelled; it still runs then."""
    ends = time.monotonic() + TIMEOUT_S
    while True:
        check(cancel)
        try:
            return process.communicate(timeout=TURN_S)
        except subprocess.TimeoutExpired as error:
            if time.monotonic() >= ends:
                raise TimeoutError(f"not done after {TIMEOUT_S} s") from error
