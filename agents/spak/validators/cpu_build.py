"""The two trusted programs of the profiler, compiled from `sandbox/guest` on first use: driver and FMA peak.

Takes the compiler's path; gives paths of binaries in a private folder that goes when the owner does, and the
measured peak. It never compiles or runs a candidate.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path

from spak import data
from spak.errors import UnavailableError
from spak.ports import Toolchain

FLAGS = ("-std=gnu11", "-Wall", "-Wextra")
TIMEOUT_S = 60


class Workshop:
    """A private folder with the compiled driver; the peak is measured once and on demand again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spak-cpu-"))
        self.folder.chmod(0o755)  # the sandbox's uid reads the driver
        self.close = weakref.finalize(self, shutil.rmtree, self.folder, True)
        self._peak = 0

    def driver(self, toolchain: Toolchain | None) -> Path:
        """The child driver. Raises: UnavailableError `unavailable.compiler`."""
        return self._built(toolchain, "cpu_driver", "-O2")

    def flops_peak(self, toolchain: Toolchain | None, again: bool = False) -> int:
        """FLOP per second of CPU time of one core; the highest seen by this workshop."""
        if self._peak == 0 or again:
            program = self._built(toolchain, "cpu_peak", "-O3", "-march=native", "-ffp-contract=fast")
            self._peak = max(self._peak, int(run_trusted([str(program)])))
        return self._peak

    def _built(self, toolchain: Toolchain | None, name: str, *flags: str) -> Path:
        target = self.folder / name
        if not target.exists():
            source = data.path(f"sandbox/guest/{name}.c")
            aside = self.folder / f"{name}.new"
            run_trusted([compiler(toolchain), *FLAGS, *flags, "-o", str(aside), str(source), "-ldl"])
            aside.chmod(0o755)
            aside.rename(target)
        return target


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


def run_trusted(argv: list[str]) -> str:
    """Standard output of a trusted program. Raises: UnavailableError `unavailable.compiler` when it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, env={"PATH": "/usr/bin:/bin"}
        )
    except subprocess.CalledProcessError as error:
        detail = error.stderr.strip().splitlines()[-1:] or [f"exit {error.returncode}"]
        raise UnavailableError(
            "unavailable.compiler", f"{Path(argv[0]).name} failed: {detail[0]}", "run spak doctor"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(
            "unavailable.compiler", f"{Path(argv[0]).name} did not run: {error}", "run spak doctor"
        ) from error
    return done.stdout
