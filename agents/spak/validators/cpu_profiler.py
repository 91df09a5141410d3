"""CpuProfiler: is this candidate right, and how much CPU time does it take next to its rivals?

Takes a MeasureCall whose options name a shared object or a Python file in the workspace; gives a Measurement:
checks with stable codes, integer nanoseconds in the order they were taken, and the bytes that were measured.
It names no signal: the kernel derives that from the pairs, with the same `decide` that stopped the sampling.

    cpu_profiler  this file: options, roles, the Measurement
    pairs         the rules of measuring that all profilers share
    cpu_session   sides, correctness phase
    cpu_candidate a shared object or a Python file, and its driver
    cpu_process   one sandboxed process, one window, the clock
    cpu_arena     shared memory      cpu_symbols  what a binary imports and how it was compiled
    cpu_build     driver, peak and interpreter
    problems/     the problem's file, in a sandbox of its own: inputs, reference, tolerance, FLOPs and bytes

docs/measuring.md says what the parent owns, and why.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from spak import schema_parts as parts
from spak.errors import UnavailableError
from spak.files.scratch import when_gone
from spak.kernel.metric.decision import DEFAULTS
from spak.lang.catalog import ValidatorEntry
from spak.ports import MeasureCall, Measurement, Subject, Toolchain
from spak.validators import cpu_symbols, launch, pairs, problems
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_candidate import Candidate, Native, Script
from spak.validators.cpu_process import Violation
from spak.validators.cpu_session import CONFIRMED, Bench, Side, alone, compare, settle
from spak.validators.problems import Problem, ProblemFault
from spak.validators.problems.kept import KeptSandbox
from spak.validators.problems.session import ANSWER_S
from spak.validators.problems.signature import CPP, misfit

SCHEMA = parts.members(
    [],
    binary=parts.text("The compiled shared object; read once, before anything runs.", 4096),
    source=parts.text(
        "The source, kept as evidence; without a binary, the Python file that is measured.", 4096
    ),
    problem={
        "description": "What is computed: a problem that ships, or the file of one, from the spec's folder.",
        **problems.SCHEMA,
        "default": "attention",
    },
    role=parts.ROLE,
    n=parts.whole("The size that is timed; the problem's own without it.", 1, problems.MAX_SIZE),
    threads=parts.whole(
        "Threads of OpenMP that a compiled candidate may use; of several, the wall's time is taken.", 1, 64
    ),
    wall_s=parts.seconds("Seconds after which sampling ends undecided; the run's limit without it.", 1),
) | {"anyOf": [{"required": ["binary"]}, {"required": ["source"]}]}

MAX_FILE_BYTES = 64 << 20
MISLED = ("died", "incorrect", "non_finite", "out_of_bounds", "wrote_inputs")
"""Codes that a kernel of another signature can end with."""

VOID = ("zero_sample", "clock_slip", "launcher")
"""Codes that say nothing about the candidate: the measurement is to be taken again."""


class CpuProfiler:
    """The validator that times code on this machine's processor."""

    entry = ValidatorEntry(
        name="CpuProfiler",
        version=1,
        summary="Checks a kernel on hidden inputs and takes its CPU time beside its rivals.",
        schema=SCHEMA,
        triggers=("success", "fail", "timeout", "metric_improved", "plateau"),
        metric="time_ns",
        effect="costly",
    )

    def __init__(
        self,
        entropy: Callable[[], int] = lambda: secrets.randbits(128),
        workshop: Workshop | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        """`entropy` is mixed into the seed and recorded; a `workshop` may bring another driver; a problem has
        `answer_s` for each answer."""
        self._entropy = entropy
        self._answer_s = answer_s
        self._workshop = workshop
        self._kept = KeptSandbox()
        when_gone(self, self._kept.close)

    def close(self) -> None:
        """End the sandbox that is kept for the next evaluation; a later one starts another."""
        self._kept.close()

    def measure(self, call: MeasureCall) -> Measurement:
        began, cpu = time.monotonic(), _cpu_s() + self._kept.spent_ms() / 1000
        evaluation = _Evaluation(call)
        status: Literal["measured", "checked", "void", "timeout", "unavailable"] = "measured"
        try:
            if call.launcher is None:
                raise UnavailableError("unavailable.sandbox", launch.NO_LAUNCHER)
            evaluation.read()
            with ExitStack() as stack:
                bench = self._bench(call, evaluation, began, stack)
                stack.callback(bench.close)
                try:
                    evaluation.run(bench, stack)
                except Violation as violation:
                    evaluation.explain(violation)  # no local name: it would keep the frame, and the arenas
                    raise
        except Violation as violation:
            status = evaluation.blame(violation)
        except ProblemFault as fault:
            status = evaluation.fault(fault)
        except UnavailableError as error:
            status = evaluation.lacks(error)
        result = evaluation.result(status)
        spent = _cpu_s() + self._kept.spent_ms() / 1000 - cpu  # one that was kept and ended is in both
        return replace(result, wall_ms=int(1000 * (time.monotonic() - began)), cpu_ms=int(1000 * spent))

    def _bench(self, call: MeasureCall, evaluation: _Evaluation, began: float, stack: ExitStack) -> Bench:
        import numpy as np

        assert call.launcher is not None
        if self._workshop is None:
            self._workshop = Workshop()
        workshop = evaluation.workshop = self._workshop
        name = call.options.get("problem", problems.USUAL)
        text = problems.text_of(name, call.problems)
        evaluation.evidence["problem"] = {"name": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        entropy = self._entropy()
        evaluation.evidence["entropy"] = f"{entropy:x}"
        wall_s = float(call.options.get("wall_s", call.limits.wall_s))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=workshop.folder)))
        folder.chmod(0o755)
        limits = replace(call.limits, wall_s=wall_s + 30)
        session = stack.enter_context(
            self._kept.opened(
                call.launcher, call.toolchain or Toolchain(), workshop.folder, text, limits, call.cancel,
                self._answer_s,
            )
        )  # fmt: skip
        problem = Problem.of(session)
        n = call.options.get("n", problem.timed)
        if not problem.least <= n <= problem.most:
            raise ProblemFault("problem.size", f"n = {n}: {name} takes {problem.least} to {problem.most}")
        self._kept.steady(problem, text)
        return Bench(
            launcher=call.launcher,
            limits=limits,
            problem=problem,
            n=n,
            random=np.random.default_rng(np.random.SeedSequence([abs(call.seed), entropy])),
            deadline=began + wall_s,
            folder=folder,
            peak=lambda remeasure: workshop.flops_peak(call.toolchain, remeasure, call.cancel),
            bandwidth=lambda: workshop.bytes_peak(call.toolchain, call.cancel),
            cancel=call.cancel,
            threads=evaluation.threads,
        )


class _Evaluation:
    """One evaluation: its findings so far, and the Measurement made of them."""

    def __init__(self, call: MeasureCall) -> None:
        self.call = call
        self.workshop: Workshop | None = None
        self.built = cpu_symbols.Built()
        self.threads: int = call.options.get("threads", 1)
        self.role: str = call.options.get("role", "candidate")
        self.rule = {**DEFAULTS, **call.rule}
        self.files: dict[str, bytes] = {}
        self.checks: list[dict[str, Any]] = []
        self.evidence: dict[str, Any] = {}
        self.pairs: list[dict[str, Any]] = []
        self.sides: list[Side] = []
        self.rounds: list[Mapping[str, pairs.Figures]] = []
        self.bench: Bench | None = None

    def read(self) -> None:
        """Read what is to be measured, once: what is measured is what is recorded."""
        for name in ("binary", "source"):
            if name in self.call.options:
                self.files[name] = _content(self.call.workspace, self.call.options[name])
        if "binary" not in self.files:
            if not self.call.options["source"].endswith(".py"):
                raise Violation(
                    "missing_file", "a source that is no Python file is compiled first: name `binary`"
                )
            return
        try:
            wanted = cpu_symbols.forbidden(self.files["binary"], self.threads)
            self.built = cpu_symbols.built(self.files["binary"])
        except ValueError as error:
            raise Violation("load_failed", str(error)) from error
        self.evidence["build"] = {"compiler": self.built.compiler, "flags": list(self.built.flags)}
        if wanted:
            raise Violation("forbidden_symbol", "imports " + ", ".join(wanted[:8]))
        self._ok("symbols", "imports arithmetic and memory only")

    def run(self, bench: Bench, stack: ExitStack) -> None:
        self.bench = bench
        self._fast_math(bench)
        candidate = self._side("candidate", self.files, stack)
        calls = candidate.check()
        self._ok("correct", f"{calls} calls, largest error {candidate.err_max:.3g}")
        rivals = [name for name in pairs.RIVALS[self.role] if name in self.call.rivals]
        for name in rivals:
            rival = self._side(name, self.call.rivals[name].files, stack)
            self.pairs += compare(candidate, rival, self.rule)
            if self.role == "final" and name == "baseline":
                self.rounds = settle(candidate, rival)
                self.evidence["rounds"] = [
                    {side: asdict(figures) for side, figures in found.items()} for found in self.rounds
                ]
            rival.close()
        if not rivals:
            alone(candidate)
        if self._to_confirm(rivals):
            calls = candidate.confirm(*CONFIRMED[self.role])
            self._ok("confirmed", f"{calls} more calls in a process that had been timed")
        self._ok(
            "timed", f"{len(candidate.times)} windows, each output checked, child at rest before and after"
        )
        self._ok("bound", f"no sample under {bench.bound_ns()} ns")

    def _to_confirm(self, rivals: list[str]) -> bool:
        """Whether the candidate becomes the best one, or what is published; one that loses need not pay."""
        if self.role == "candidate":
            return not rivals or pairs.improved(self.pairs, self.rule)  # one rival at most
        return self.role == "final"

    def explain(self, violation: Violation) -> None:
        """Raises: Violation `wrong_signature` where the candidate's source has another one; Cancelled."""
        source, bench = self.files.get("source"), self.bench
        name = str(self.call.options.get("source", ""))
        compiled = name.endswith((".c", *CPP))
        if violation.side or violation.code not in MISLED or source is None or bench is None or not compiled:
            return
        prototype = bench.problem.prototype
        why = misfit(
            prototype, source, name, bench.launcher, self.call.toolchain, bench.limits,
            bench.folder / "signature", self.call.cancel,
        )  # fmt: skip
        if why:
            raise Violation("wrong_signature", f"{why}; it has to be {prototype.text}") from violation

    def blame(self, violation: Violation) -> Literal["checked", "void", "timeout"]:
        """Write the failed check down; what a rival or the host did makes the measurement worthless."""
        name = f"rival.{violation.side}" if violation.side else "candidate"
        self.checks.append(launch.check(name, False, violation.code, violation.detail))
        if violation.side or violation.code in VOID:
            return "void"
        return "timeout" if violation.code == "timeout" else "checked"

    def fault(self, fault: ProblemFault) -> Literal["checked", "void"]:
        """Write down what the problem does wrong: a failed check of a baseline, else void, since it says
        nothing about the candidate."""
        self.checks.append(launch.check("problem", False, fault.code, fault.detail))
        return "checked" if self.role == "baseline" and fault.code != "problem.launcher" else "void"

    def lacks(self, error: UnavailableError) -> Literal["unavailable"]:
        """Write down what is not there: the sandbox, or a program of the toolchain."""
        sandbox = error.code == "unavailable.sandbox"
        name, code = ("ran", "launcher") if sandbox else ("toolchain", "toolchain")
        self.checks.append(launch.check(name, False, code, error.message))
        return "unavailable"

    def result(self, status: Literal["measured", "checked", "void", "timeout", "unavailable"]) -> Measurement:
        samples = {f"{side.name}_empty": tuple(side.empty) for side in self.sides if side.empty}
        if not self.pairs:
            samples |= {side.name: tuple(side.times) for side in self.sides if side.times}
        return Measurement(
            status,
            checks=tuple(self.checks),
            metrics=self._metrics(),
            pairs=tuple(self.pairs) if status == "measured" else (),
            samples=samples,
            subject=Subject(self.files),
            evidence=self.evidence,
        )

    def _metrics(self) -> dict[str, int | float]:
        """Integers but for the error; medians are published, minima decide."""
        if not self.sides or self.bench is None:
            return {}
        candidate, *rivals = self.sides
        metrics: dict[str, int | float] = {"err_max": candidate.err_max}
        if self.threads > 1:
            metrics["threads"] = self.threads
        settled = self.rounds[-1] if self.rounds else {}
        if candidate.times:
            of = settled.get("candidate") or pairs.Figures.of(candidate.times)
            bound = self.bench.bound_ns()
            metrics |= {
                "time_ns": of.median,
                "time_min_ns": of.least,
                "time_low_ns": of.low,
                "time_high_ns": of.high,
                "spread_ppm": of.spread_ppm,
                "windows": len(candidate.times),
                "empty_ns": statistics.median_low(candidate.empty),
                "bound_ns": bound,
                "bound_ppm": bound * 1_000_000 // max(min(candidate.times), 1),
                "flops_peak": self.bench.peak(False),
            }
        for rival in rivals:
            if rival.times:
                of = settled.get(rival.name) or pairs.Figures.of(rival.times)
                metrics |= {
                    f"{rival.name}_ns": of.median,
                    f"{rival.name}_spread_ppm": of.spread_ppm,
                    f"{rival.name}_low_ns": of.low,
                    f"{rival.name}_high_ns": of.high,
                }
        if self.rounds:
            metrics["rounds"] = len(self.rounds)
        return metrics

    def _fast_math(self, bench: Bench) -> None:
        """Raises: Violation `fast_math` where it was used and the tolerance allows no rounding error."""
        tolerance = bench.problem.tolerance
        used = self.built.fast_math or cpu_symbols.asks_for_fast_math(self.files.get("source", b""))
        if used and not (tolerance.abs or tolerance.rel):
            raise Violation(
                "fast_math",
                f"{used} changes the order of operations; the tolerance of the problem is {tolerance}",
            )

    def _side(self, name: str, files: Mapping[str, bytes], stack: ExitStack) -> Side:
        assert self.bench is not None
        candidate = self.candidate(files)
        side = Side(self.bench, name, candidate, blame="" if name == "candidate" else name)
        stack.callback(side.close)
        self.sides.append(side)
        return side

    def candidate(self, files: Mapping[str, bytes]) -> Candidate:
        """The kind that the files are of: a shared object, or a Python file. Raises: UnavailableError."""
        assert self.bench is not None and self.workshop is not None
        call = self.call
        if "binary" not in files:
            return Script(self.workshop.interpreter(call.toolchain, call.cancel), files["source"])
        prototype, threads = self.bench.problem.prototype, self.threads
        driver = self.workshop.driver(call.toolchain, prototype, call.cancel, threads)
        return Native(driver, files["binary"], threads)

    def _ok(self, name: str, detail: str) -> None:
        self.checks.append(launch.check(name, True, detail=detail))


def _content(workspace: Path, name: str) -> bytes:
    """A regular file of the workspace, reached through no link: the candidate's maker may write there.

    Raises: Violation `missing_file`.
    """
    parts = PurePosixPath(name.removeprefix("/ws/")).parts
    if not parts or ".." in parts or parts[0] == "/":
        raise Violation("missing_file", f"{name} is not a path in the workspace")
    at = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            flags = (os.O_RDONLY | os.O_NONBLOCK) if last else (os.O_PATH | os.O_DIRECTORY)
            below = os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        info = os.fstat(at)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE_BYTES:
            raise Violation("missing_file", f"{name} is not a regular file of at most {MAX_FILE_BYTES} bytes")
        with os.fdopen(os.dup(at), "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Violation("missing_file", f"{name}: {error.strerror}") from error
    finally:
        os.close(at)


def _cpu_s() -> float:
    """CPU time of this process and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
