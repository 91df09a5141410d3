"""A kernel beside a library's call for the same work: interleaved pairs on one core, and a ratio.

Takes a shared object, the problem's facts and a Call; gives a Comparison. The functions of a library for the
problems that ship are the files `specs/problems/libraries/NAME_calls.py`; of several, the fastest correct one
is compared. Both sides are called from Python with one thread, in a sandboxed process without any variable
that chooses a library's kernel (sandbox/guest/against_guest.py). Where the kernel was tuned for several
threads the library may use as many, the largest size is timed, and the time is the wall's.
"""

from __future__ import annotations

import ast
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spak import data
from spak.errors import RunError, UnavailableError, UsageError
from spak.ports import MIB, Job, Toolchain
from spak.tuning.kernel import Facts, Place, session
from spak.validators.pairs import Figures
from spak.validators.problems import FOLDER, Problem

GUEST = "sandbox/guest/against_guest.py"
PAIRS = 41
CASES = 3
WALL_S = 300.0
LIBRARIES = ("numpy", "torch")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """A library's functions for a problem, and the interpreter that has the library."""

    library: str
    problem: str
    python: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The library's time over the kernel's, above 1 where the kernel is faster: the median over the pairs,
    with its interval of 95 %."""

    library: str
    version: str
    call: str
    kernel: str
    """The kernels that the library chose for this machine; empty where that is not known."""
    wide: bool | None
    """Whether those are the widest for this processor; None where it is not known."""
    low: float
    ratio: float
    high: float
    ours_ns: int
    theirs_ns: int
    threads: int
    wrong: Mapping[str, str]
    """Other calls of the library that are not right for the problem, and why."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` has it."""
        return {
            "library": self.library,
            "version": self.version,
            "call": self.call,
            "kernel": self.kernel,
            "widest": self.wide,
            "ratio": [self.low, self.ratio, self.high],
            "ours_ns": self.ours_ns,
            "theirs_ns": self.theirs_ns,
            "threads": self.threads,
        }


def calls(library: str) -> Path:
    """The file of a library's functions."""
    return data.path(f"{FOLDER}/libraries/{library}_calls.py")


def known(library: str, problem: str, toolchain: Toolchain) -> Call:
    """What a problem is compared with.

    Raises: UsageError `tune.against`; UnavailableError `unavailable.library`.
    """
    if library not in LIBRARIES:
        raise UsageError(
            "tune.against", f"no library is called {library!r}", f"one of {', '.join(LIBRARIES)}"
        )
    defined = [
        node.name
        for node in ast.parse(calls(library).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    if problem not in defined:
        hint = f"it has one for {', '.join(defined)}"
        raise UsageError("tune.against", f"no call of {library} is known for the problem {problem}", hint)
    python = toolchain.programs.get("python", "")
    argv = [python, "-I", "-c", f"import importlib.util as u; raise SystemExit(not u.find_spec({library!r}))"]
    if not python or subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, timeout=60).returncode:
        hint = f"install it where spak is: pip install {library}"
        raise UnavailableError("unavailable.library", f"{library} is not installed", hint)
    return Call(library, problem, python)


def compared(
    shared: bytes, facts: Facts, call: Call, place: Place, pairs: int = PAIRS, threads: int = 1
) -> Comparison:
    """The kernel beside the library's call, both with so many threads.

    Raises: RunError `tune.compare`; UnavailableError; SpecError."""
    work = place.folder / f"against-{call.library}"
    work.mkdir()
    work.chmod(0o755)
    with session(facts.name, facts.text, place) as problem:
        plan = _plan(problem, work / "cases.npz", problem.most if threads > 1 else problem.timed)
    plan |= {
        "library": call.library, "problem": call.problem, "pairs": pairs, "threads": threads,
        "seed": time.time_ns(),
    }  # fmt: skip
    (work / "pairs.json").write_text(json.dumps(plan))
    (work / "kernel.so").write_bytes(shared)
    (work / "calls.py").write_bytes(calls(call.library).read_bytes())
    (work / "guest.py").write_bytes(data.path(GUEST).read_bytes())
    for file in work.iterdir():
        file.chmod(0o555)
    argv = (call.python, "-I", "-B", *(f"/ws/{name}" for name in _FILES))
    limits = replace(place.limits, wall_s=WALL_S, output_bytes=max(place.limits.output_bytes, 4 * MIB))
    env = dict.fromkeys(THREADS, str(threads))
    done = place.launcher.run(
        Job(argv, work, writable=False, limits=limits, env=env, binds=place.toolchain.binds)
    )
    if done.status == "launcher":
        raise UnavailableError(
            "unavailable.sandbox", done.detail or "the sandbox did not start", "spak doctor"
        )
    answer = _answer(done.stdout.data)
    if answer is None or "error" in answer:
        words = done.stderr.data.decode("utf-8", "replace").strip().splitlines()
        why = (answer or {}).get("error") or (words[-1] if words else f"{done.status}, exit {done.exit}")
        raise RunError("tune.compare", f"{call.library} cannot be compared with: {why}", "spak doctor")
    return _comparison(answer, threads)


_FILES = ("guest.py", "pairs.json", "cases.npz", "kernel.so", "calls.py")


def _comparison(answer: Mapping[str, Any], threads: int) -> Comparison:
    pairs = [(int(mine), int(theirs)) for mine, theirs in answer["pairs"]]
    found = Figures.of([theirs * PPM // max(mine, 1) for mine, theirs in pairs])
    return Comparison(
        library=answer["library"],
        version=answer["version"],
        call=answer["call"],
        kernel=answer["kernel"],
        wide=answer["wide"],
        low=found.low / PPM,
        ratio=found.median / PPM,
        high=found.high / PPM,
        ours_ns=Figures.of([mine for mine, _ in pairs]).median,
        theirs_ns=Figures.of([theirs for _, theirs in pairs]).median,
        threads=threads,
        wrong=dict(answer["wrong"]),
    )


def _plan(problem: Problem, path: Path, n: int) -> dict[str, Any]:
    """Cases of a size and the usual kind, as space_guest.py has them. Raises: ProblemFault; OSError."""
    import numpy as np

    draw = np.random.default_rng()
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    cases = []
    for index in range(CASES):
        case = problem.case(draw, n)
        shapes = {name: list(shape) for name, shape in problem.shapes(case.n).items()}
        cases.append({"scalars": {"n": case.n, **case.scalars}, "shapes": shapes})
        arrays |= {f"{index}/in/{name}": value for name, value in case.inputs.items()}
        for item in problem.prototype.of("output"):
            arrays[f"{index}/out/{item.name}"] = case.outputs[item.name]
            if item.floating:
                allowed = problem.tolerance.allowed(case.outputs[item.name], item.type)
                arrays[f"{index}/allowed/{item.name}"] = allowed
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return {
        "symbol": problem.prototype.symbol,
        "parameters": [[item.name, item.role, item.type] for item in problem.prototype.parameters],
        "cases": cases,
    }


def _answer(printed: bytes) -> dict[str, Any] | None:
    lines = printed.splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
