"""Every problem that ships, tuned here, beside the best call that a library offers for the same work.

Only when named (`make bench ARGS=libraries`): the first time it installs numpy, PyTorch and threadpoolctl of
requirements-libraries.lock, with their hashes, into `.venv-libraries` (3 GB where PyTorch comes with CUDA).
Each naive kernel is tuned by `spak tune`, EVALUATIONS candidates at most; what comes of it is then measured
beside each library in 41 interleaved pairs (spak.tuning.against). One thread; and, where the template shares
its work between threads, all cores on both sides, at the largest size, by the wall's time. Variables that
choose a library's kernel or its threads are taken out of the environment first.

    SPAK_BENCH_PROBLEMS=attention,gemm python -m bench libraries      only these

Figures: the lower end of the 95 % interval of the library's time over ours, so above 1 we are faster; the row
names the call, the kernels that the library chose (of numpy by threadpoolctl) and the whole interval. A row
whose library did not choose the widest kernel of the machine has no figure. The quick form tunes one problem
with two candidates and compares it with the numpy of this environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.bench_peers import installed
from bench.sizes import QUICK, sized
from spak import config, data
from spak.errors import UserError
from spak.files.scratch import Scratch
from spak.tuning import against
from spak.tuning.kernel import Facts, Place, session
from spak.tuning.spec import shared
from spak.validators.problems import shipped

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-libraries.lock", ROOT / ".venv-libraries"
EVALUATIONS = sized(40, 2)
LIBRARIES = sized(against.LIBRARIES, ("numpy",))
CHOOSES = ("OPENBLAS_", "MKL_", "OMP_", "GOTO_", "BLIS_", "ATEN_", "ONEDNN_", "DNNL_", "NPY_", "KMP_")
"""Beginnings of variables that choose kernels or threads."""


def rows() -> list[dict[str, Any]]:
    """A row for each problem and library."""
    for name in [name for name in os.environ if name.startswith(CHOOSES)]:
        del os.environ[name]
    settings, tools = config.settings(), config.toolchain()
    theirs = tools
    if not QUICK:
        python = installed(PLACE, LOCK)
        binds = tuple(dict.fromkeys((*tools.binds, PLACE)))
        theirs = replace(tools, programs={**tools.programs, "python": str(python)}, binds=binds)
    found = []
    for problem, threads in chosen():
        with Scratch("libraries") as folder:
            folder.chmod(0o755)
            place = Place(config.box(settings), tools, settings.limits, folder)
            kernel, speedup = tuned(problem, folder, threads)
            with session(problem, shipped()[problem], place) as opened:
                facts = Facts.of(problem, shipped()[problem], opened)
            for library in LIBRARIES:
                there = replace(place, toolchain=theirs)
                found.append(compared(problem, library, kernel, facts, there, speedup, threads))
                print(found[-1]["name"], file=sys.stderr, flush=True)
    return found


def chosen() -> list[tuple[str, int]]:
    """Problems with the number of threads: one, and all cores where the template knows threads."""
    named = os.environ.get("SPAK_BENCH_PROBLEMS", "").split(",")
    names = [name for name in sorted(shipped()) if named == [""] or name in named]
    cores = len(os.sched_getaffinity(0))
    several = [(name, cores) for name in names if cores > 1 and shared(name) is not None]
    return [*((name, 1) for name in names), *several][: sized(None, 1)]


def tuned(problem: str, folder: Path, threads: int) -> tuple[bytes, float]:
    """The shared object that `spak tune` makes of a naive kernel, and its speed-up; where nothing was faster,
    the naive kernel at -O2. Raises: RuntimeError."""
    source = folder / "naive.c"
    source.write_bytes((data.path("specs/problems") / f"{problem}.c").read_bytes())
    words = ["tune", str(source), "--problem", problem, "--evaluations", str(EVALUATIONS), "--json"]
    words += [] if threads == 1 else ["--threads", str(threads)]
    spak = Path(sys.executable).with_name("spak")
    done = subprocess.run([spak, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{problem}: {done.stderr[-400:]}")
    document: Mapping[str, Any] = json.loads(done.stdout)
    if document.get("dropin"):
        (library,) = Path(document["dropin"]["folder"]).glob("lib*.so")
        return library.read_bytes(), float(document["metrics"]["speedup"])
    target = folder / "naive.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
    return target.read_bytes(), 1.0


def compared(
    problem: str, library: str, kernel: bytes, facts: Facts, place: Place, speedup: float, threads: int
) -> dict[str, Any]:
    """A row: the lower end of the interval, or no figure where the comparison is void."""
    name = f"{problem}, {library}" + (f", {threads} threads" if threads > 1 else "")
    try:
        call = against.known(library, problem, place.toolchain)
        seen = against.compared(kernel, facts, call, place, threads=threads)
    except UserError as error:
        return _row(f"{name}: {error.message}", None)
    detail = (
        f"{seen.call} of {seen.version} on {seen.kernel or 'an unknown kernel'}:"
        f" {seen.ratio:.2f} ({seen.low:.2f} to {seen.high:.2f}), {seen.ours_ns / 1000:.1f} us beside"
        f" {seen.theirs_ns / 1000:.1f}; naive {speedup:.1f} times slower"
    )
    if seen.wide is False:
        return _row(f"{name}: void, not the widest kernel: {detail}", None)
    return _row(f"{name}: {detail}", round(seen.low, 3))


def _row(name: str, low: float | None) -> dict[str, Any]:
    return {"name": name, "ours": low, "floor": 1.0, "unit": "x", "aim": ">= 0.97"}
