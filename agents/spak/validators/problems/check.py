"""Is a problem's file in order? What `spak problem check` finds before anything is measured by it.

Takes the file's text, a launcher and, where there is one, a kernel that should be right; gives findings,
each an error or a warning with a code of docs/errors.md. Two processes of the problem are asked, so that what
depends on a process, the time or the order of calls is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spak.ports import Job, Launcher, Limits, MeasureCall, Toolchain, Validator
from spak.validators import launch
from spak.validators.problems import planted
from spak.validators.problems.fault import ProblemFault
from spak.validators.problems.problem import Case, Problem, same
from spak.validators.problems.session import ANSWER_S, opened
from spak.validators.problems.signature import CPP, header

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "checked.py"
"""What the problem is called in the options of the measurement that tries the kernel."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that is wrong."""

    severity: Literal["error", "warning"]
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the check works with; `folder` is private and may be written."""

    launcher: Launcher
    toolchain: Toolchain
    limits: Limits
    folder: Path
    answer_s: float = ANSWER_S


def check(text: str, bench: Bench) -> list[Found]:
    """All findings about the file by itself; of what stops the check, the first. Raises: Cancelled."""
    try:
        with (
            opened(
                bench.launcher,
                bench.toolchain,
                bench.folder / "one",
                text,
                bench.limits,
                None,
                bench.answer_s,
            ) as one,
            opened(
                bench.launcher,
                bench.toolchain,
                bench.folder / "two",
                text,
                bench.limits,
                None,
                bench.answer_s,
            ) as two,
        ):
            problem = Problem.of(one)
            problem.steady()
            cases = list(_cases(problem, Problem.of(two)))
            problem.case_of([3, 3], problem.most, problem.kinds[0])
            return [*_tolerance(problem, cases)]
    except ProblemFault as fault:
        return [Found("error", fault.code, fault.detail)]


def _cases(problem: Problem, other: Problem) -> Iterator[tuple[Case, Case]]:
    """(case, an earlier one) of every kind at the timed size and at a small one.

    Raises: ProblemFault, `problem.changes` where the two processes differ.
    """
    small = min(max(7, problem.least), problem.most)
    for n in dict.fromkeys((small, problem.timed)):
        for kind in problem.kinds:
            before, case = problem.case_of([1, 1], n, kind), problem.case_of([2, 2], n, kind)
            if not same(case, other.case_of([2, 2], n, kind)):
                raise ProblemFault(
                    "problem.changes", f"another process gives something else for one seed (n = {n}, {kind})"
                )
            yield case, before


def _tolerance(problem: Problem, cases: Sequence[tuple[Case, Case]]) -> Iterator[Found]:
    prototype, tolerance = problem.prototype, problem.tolerance
    for case, _ in cases:
        for name, output in planted.right(case, prototype).items():
            errors, wrong = tolerance.errors(output, case.outputs[name])
            if wrong.any():
                yield Found(
                    "error", "problem.strict",
                    f"the reference itself, rounded to the type of {name}, is off by"
                    f" {errors[wrong].max():.3g} (n = {case.n}, {case.kind}); the tolerance is {tolerance}",
                    "allow at least half an ulp: rel 6e-8 for float, 1.2e-16 for double",
                )  # fmt: skip
                return
    for what, name in planted.passing(planted.WRONG, cases, prototype, tolerance):
        yield Found(
            "error", "problem.tolerance", f"a kernel that {what} passes: {name}",
            "make the tolerance smaller, or the inputs such that the answer depends on them",
        )  # fmt: skip
    for what, name in planted.passing(planted.ROUGH, cases, prototype, tolerance):
        yield Found(
            "warning", "problem.loose", f"a kernel whose answer {what} passes: {name}",
            "make the tolerance smaller unless that is exact enough",
        )  # fmt: skip


def kernel(text: str, source: str, bench: Bench, profiler: Validator, name: str = "kernel.c") -> list[Found]:
    """What is wrong with a kernel that should be right; the ending of `name` says its language.

    One in C or C++ is compiled after the prototype and measured, a Python file is measured as it is.

    Raises: Cancelled; UnavailableError `unavailable.compiler`.
    """
    place = bench.folder / "kernel"
    place.mkdir()
    place.chmod(0o777)
    options = {"problem": NAME, "role": "baseline"}
    if name.endswith(".py"):
        (place / "kernel.py").write_text(source, encoding="utf-8")
        options["source"] = "kernel.py"
    else:
        wrong = _compiled(text, source, bench, place, name.endswith(CPP))
        if wrong:
            return [wrong]
        options["binary"] = "kernel.so"
    call = MeasureCall(
        "check", "CpuProfiler", options, place,
        bench.launcher, limits=replace(bench.limits, wall_s=max(bench.limits.wall_s, 120.0)),
        toolchain=bench.toolchain, problems={NAME: text},
    )  # fmt: skip
    measured = profiler.measure(call)
    for item in measured.checks:
        if item["ok"] is not True:
            return [Found("error", "problem.kernel", f"the kernel fails: {item['code']}: {item['detail']}")]
    return []


def _compiled(text: str, source: str, bench: Bench, place: Path, cpp: bool) -> Found | None:
    """Compile the kernel to `kernel.so`; what is wrong with it, if anything. Raises: Cancelled."""
    with opened(
        bench.launcher, bench.toolchain, bench.folder / "three", text, bench.limits, None, bench.answer_s
    ) as session:
        problem = Problem.of(session)
    kernel = "kernel.cpp" if cpp else "kernel.c"
    (place / "prototype.h").write_text(header(problem.prototype, cpp), encoding="utf-8")
    (place / kernel).write_text(source, encoding="utf-8")
    program = "g++" if cpp else "gcc"
    argv = (
        bench.toolchain.programs.get(program, program),
        *("-O2", "-shared", "-fPIC", "-w", "-include", "prototype.h", "-o", "kernel.so", kernel, "-lm"),
    )
    built = bench.launcher.run(Job(argv, place, limits=bench.limits, binds=bench.toolchain.binds))
    if built.status == "exited" and not built.exit:
        return None
    lines = built.stderr.data.decode("utf-8", "replace").splitlines()
    output = launch.tail(built.stderr.data) or built.detail
    why = next((line for line in lines if "error" in line), output)
    message = f"the kernel does not compile as {problem.prototype.text}: {why}"
    return Found("error", "problem.symbol", message, "its signature has to be the prototype's")
