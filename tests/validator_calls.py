"""What the tests of validators share: a toolchain made of this interpreter's tools, and calls on a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from spak.ports import Launcher, MeasureCall, Measurement, Toolchain
from spak.sandbox.restricted import Restricted

FOUND = {name: shutil.which(name) for name in ("gcc", "g++", "clang", "clang++", "nvcc", "ptxas")}


def toolchain(**programs: str) -> Toolchain:
    """The running environment's python, pytest and ruff, and the system's compilers."""
    folder = Path(sys.executable).parent
    tools = {name: str(folder / name) for name in ("python", "pytest", "ruff")}
    tools.update({name: path for name, path in FOUND.items() if path})
    return Toolchain(
        programs={**tools, **programs},
        binds=(Path(sys.prefix), Path(os.path.realpath(sys.base_prefix))),
    )


def call(
    workspace: Path, options: dict[str, Any], *, launcher: Launcher | None = None, **more: Any
) -> MeasureCall:
    """A call as the runner makes it; the launcher is the real one unless another is given."""
    workspace.chmod(0o777)
    more.setdefault("toolchain", toolchain())
    return MeasureCall("m1", "test", options, workspace, launcher or Restricted(), **more)


def write(workspace: Path, **files: str) -> Path:
    """Files by name (`__` stands for a dot) in a folder that the sandbox may read."""
    for name, text in files.items():
        path = workspace / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    return workspace


def codes(measurement: Measurement) -> dict[str, str]:
    """Name to code of the checks that failed."""
    return {item["name"]: item["code"] for item in measurement.checks if not item["ok"]}


def stand_in(folder: Path, source: str, name: str, *defines: str) -> Path:
    """A library of `tests/validators` that says what a driver would say, compiled."""
    target = folder / name
    command = ["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", *defines]
    text = Path(__file__).parent / "validators" / source
    subprocess.run([*command, str(text), "-o", str(target), "-lm"], check=True)
    target.chmod(0o755)
    return target
