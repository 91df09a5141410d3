"""The tree of files with which anybody tries CudaProfiler's rules on a GPU: what ships, put together.

Takes a folder; writes `selftest.py`, the CUDA kernels, and the modules of ours that it uses, so that it
runs with a bare Python and the CUDA toolkit. Nothing of it is written twice: launches, pairs and the
decision are the files that a run uses.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from spak import data
from spak.kernel.metric import decision as metric_decision
from spak.validators import cuda_driver, pairs

FOLDER = "sandbox/gpu/selftest"
KERNELS = ("attention", "attention_tuned", "softmax", "softmax_tuned")
MODULES: tuple[ModuleType, ...] = (metric_decision, pairs, cuda_driver)


def write_tree(folder: Path) -> None:
    """Write the tree into a folder, which is made. Raises: OSError."""
    folder.mkdir(parents=True)
    (folder / "kernels").mkdir()
    for name in ("selftest.py", "hacks.cu"):
        (folder / name).write_bytes(data.path(f"{FOLDER}/{name}").read_bytes())
    for name in KERNELS:
        (folder / f"kernels/{name}.cu").write_bytes(data.path(f"specs/problems/{name}.cu").read_bytes())
    for module in MODULES:
        place = folder.joinpath(*module.__name__.split("."))
        place.parent.mkdir(parents=True, exist_ok=True)
        for package in (place.parent, *place.parent.parents):
            if package == folder:
                break
            (package / "__init__.py").touch()
        place.with_suffix(".py").write_text(inspect.getsource(module), encoding="utf-8")


def run(folder: Path, report: Path, options: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
    """Run a tree in a process of its own: its exit status and its report. What it says goes to stderr."""
    line = [sys.executable, "-I", "-B", str(folder / "selftest.py"), "-o", str(report), *options]
    done = subprocess.run(line, stdout=subprocess.DEVNULL, check=False)
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return done.returncode, found
