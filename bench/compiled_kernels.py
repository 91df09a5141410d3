"""The naive kernels that ship, built with every combination of some options of gcc and timed: a table.

Each `specs/problems/NAME.c` is compiled at each point of SPACE and called with inputs of its problem at its
timed size. A point whose output misses the problem's tolerance is wrong and has no time (None): `-ffast-math`
may do that. Times are processor time, the least of REPEATS samples of at least SAMPLE_NS each.
"""

from __future__ import annotations

import ctypes
import itertools
import runpy
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spak import data
from spak.validators.problems import shipped
from spak.validators.problems.problem import Tolerance
from spak.validators.problems.prototype import Parameter, Prototype, parse

SPACE: Mapping[str, tuple[str, ...]] = {
    "LEVEL": ("-O1", "-O2", "-O3"),
    "TARGET": ("-mtune=generic", "-march=native"),
    "MATH": ("-fno-fast-math", "-ffast-math"),
    "UNROLL": ("-fno-unroll-loops", "-funroll-loops"),
    "VECTORS": ("-fno-tree-vectorize", "-ftree-vectorize"),
}
REPEATS, SAMPLE_NS = 5, 400_000
Table = dict[str, dict[str, int | None]]
"""Nanoseconds by kernel and point; None for a point that is wrong."""


def name_of(point: Mapping[str, Any]) -> str:
    """A point by its options, in the order of the space."""
    return " ".join(str(point[name]) for name in SPACE)


def kernels() -> list[str]:
    """The names of the kernels that ship."""
    return sorted(shipped())


def measured() -> Table:
    """Every point of the space for every kernel."""
    return {name: _kernel(name) for name in kernels()}


def _kernel(name: str) -> dict[str, int | None]:
    source = data.path("specs/problems") / f"{name}.c"
    given = runpy.run_path(str(source.with_suffix(".py")))
    prototype, size = parse(given["prototype"]), given["sizes"]["timed"]
    made = given["inputs"](np.random.default_rng(1), size, given["kinds"][0])
    shapes = given["shapes"](size)
    wanted = given["reference"](size, **made)
    outputs = prototype.of("output")
    expected = wanted if isinstance(wanted, dict) else {outputs[0].name: wanted}
    held = {
        item.name: _array(made.get(item.name), item, shapes)
        for item in prototype.parameters
        if item.role != "scalar"
    }
    call = [size if item.name == "n" else made[item.name] for item in prototype.of("scalar")]
    found: dict[str, int | None] = {}
    with tempfile.TemporaryDirectory(prefix="spak-kernels-") as folder:
        for number, values in enumerate(itertools.product(*SPACE.values())):
            binary = Path(folder) / f"k{number}.so"
            words = ["gcc", "-w", *values, "-shared", "-fPIC", "-include", "stdint.h", "-o", str(binary)]
            subprocess.run([*words, str(source), "-lm"], check=True, capture_output=True)
            run = _bound(binary, prototype, held, call)
            for item in outputs:
                held[item.name].fill(-1)
            run()
            tolerance = Tolerance.of(given["tolerance"])
            right = all(
                not tolerance.errors(held[item.name], np.asarray(expected[item.name]))[1].any()
                for item in outputs
            )
            point = name_of(dict(zip(SPACE, values, strict=True)))
            found[point] = min(_timed(run) for _ in range(REPEATS)) if right else None
    return found


def _array(values: Any, item: Parameter, shapes: Mapping[str, Any]) -> Any:
    """The memory of an input, an output or scratch, aligned as kernels want it."""
    shape = shapes[item.name] if values is None else values.shape
    size = int(np.prod(shape)) * item.width
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    made = raw[start : start + size].view(item.type).reshape(shape)
    if values is not None:
        made[...] = values
    return made


def _bound(binary: Path, prototype: Prototype, held: Mapping[str, Any], scalars: list[Any]) -> Any:
    function = getattr(ctypes.CDLL(str(binary)), prototype.symbol)
    function.restype = None
    left, args = list(scalars), []
    for item in prototype.parameters:
        if item.role == "scalar":
            args.append(
                {"long": ctypes.c_long, "int": ctypes.c_int, "float": ctypes.c_float}[item.c](left.pop(0))
            )
        else:
            args.append(ctypes.c_void_p(held[item.name].ctypes.data))
    return lambda: function(*args)


def _timed(run: Any) -> int:
    calls, before = 0, time.process_time_ns()
    while True:
        run()
        calls += 1
        spent = time.process_time_ns() - before
        if spent >= SAMPLE_NS:
            return max(spent // calls, 1)
