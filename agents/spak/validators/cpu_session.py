"""A session of one evaluation: sides, the correctness phase, and the pairs that decide.

A side is a candidate or a rival with timed processes, started when first needed, four at a time. All
sides are treated alike, and correctness is tried in a process of its own, so that code cannot tell
whether it is the candidate or the incumbent and slow down for the next one. A couple of windows (one a
side) gets the same fresh inputs, since the two sides cannot talk; the order within the couple is drawn.

`pairs` says what a pair is and when sampling ends. Inputs are new for each couple and never a rearrangement
of earlier ones: a rearrangement can be undone by a candidate that knows of it, at a fraction of the work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.cancel import Cancel
from spak.ports import Launcher, Limits
from spak.validators import pairs
from spak.validators.cpu_arena import Arena
from spak.validators.cpu_candidate import Candidate
from spak.validators.cpu_process import Process, Violation, Window, inputs_for
from spak.validators.pairs import PROCESSES
from spak.validators.problems import Case, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

Outputs = Mapping[str, Any]
"""What a call wrote, by name."""
GRACE_S = 10.0
"""How long a call may outlive the evaluation's limit; the next one is not begun."""
ALONE = 4
"""Windows in each process when there is nobody to compare with."""
REPEATED = 200
"""Calls of the timed size in one process before an improvement counts."""
CONFIRMED = {"candidate": (50, 24), "final": (100, 200)}
"""How many inputs these calls are on, and how many sizes are drawn after them, by role."""
CONFIRM_NS = 10_000_000_000
"""A kernel so slow that its calls would take longer than this is called less often."""


@dataclass(slots=True)
class Bench:
    """What one evaluation works with."""

    launcher: Launcher
    limits: Limits
    problem: Problem
    n: int
    random: np.random.Generator
    deadline: float
    folder: Path
    peak: Callable[[bool], int]
    """The FMA peak in flop/s; measured again when asked with True."""
    bandwidth: Callable[[], int] = lambda: 1 << 62
    """Bytes per second that the core loads from its nearest cache."""
    cancel: Cancel | None = None
    threads: int = 1
    """How many a candidate may use; of several, the wall's time is taken."""
    _inputs: Arena | None = None

    def inputs(self) -> Arena:
        """Where all processes of the evaluation find their inputs.

        One for both sides: neither has the better pages, and to make one costs more CPU time than a window.
        It holds inputs during a window only, in which the other processes sleep: what one of them uses
        meanwhile is `idle_work`.
        """
        if self._inputs is None:
            self._inputs = inputs_for(self.problem)
        return self._inputs

    def close(self) -> None:
        """Give the arena back, after all processes have ended."""
        inputs, self._inputs = self._inputs, None
        if inputs is not None:
            inputs.close()

    def bound_ns(self, remeasure: bool = False) -> int:
        """The time under which no correct answer of this size was computed by its cores: its operations at
        the highest rate of the narrowest type, its bytes at the rate of the nearest cache."""
        flops, rate = self.problem.flops(self.n), self.peak(remeasure) * self.problem.prototype.speed
        moved = self.problem.traffic(self.n) * 1_000_000_000 // self.bandwidth()
        return max(flops * 1_000_000_000 // rate, moved) // self.threads

    def late(self) -> bool:
        """Whether the time of the measurement is over."""
        return time.monotonic() > self.deadline


@dataclass(slots=True)
class Side:
    """A candidate or a rival, its processes, and what was seen of it."""

    bench: Bench
    name: str
    candidate: Candidate
    blame: str = ""
    """Empty for the candidate; a rival's name marks its faults as not the candidate's."""
    times: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    err_max: float = 0.0
    _folder: Path | None = None
    _processes: dict[int, Process] = field(default_factory=dict)

    def check(self) -> int:
        """The correctness phase, in a process of its own; gives the number of calls. Raises: Violation."""
        plan = self.bench.problem.plan(self.bench.random, self.bench.n)
        with self._blamed():
            process = self._started()
            try:
                for case in self._cases(plan):
                    self._watched(process, case)
            finally:
                process.close()
        return len(plan)

    def confirm(self, inputs: int, sizes: int) -> int:
        """Many more checked calls in the process that was timed last, which cannot tell that its windows are
        over: 200 of the timed size on so many inputs, then one for each of the sizes that are drawn.

        An input is given when it is new, then again or the one before it, as is drawn; in half of these calls
        the outputs hold the answer that it had before. Gives how many calls there were. Raises: Violation.
        """
        bench, problem = self.bench, self.bench.problem
        most, each = CONFIRM_NS // statistics.median_low(self.times), REPEATED // inputs
        repeated = [(bench.n, problem.kinds[0])] * min(inputs, most // each)
        drawn = problem.sizes(bench.random, min(sizes, most))
        process = next(reversed(self._processes.values()))
        with self._blamed():
            before: tuple[Case, Outputs | None] = problem.case(bench.random, bench.n), None
            for case in self._cases(repeated):
                now = case, self._watched(process, case)
                for draw in bench.random.integers(4, size=each - 1):
                    again, answer = before if draw % 2 else now
                    self._watched(process, again, answer if draw > 1 else None)
                before = now
            for case in self._cases(drawn):
                self._watched(process, case)
        return len(repeated) * each + len(drawn)

    def time(self, index: int, case: Case) -> int:
        """One timed window in the process of that index, its output checked. Raises: Violation."""
        with self._blamed():
            process = self._processes.get(index)
            if process is None:
                if len(self._processes) >= PROCESSES:
                    self._processes.pop(next(iter(self._processes))).close()  # the oldest
                process = self._processes[index] = self._started()
                least = self.bench.problem.least
                self._window(process, self.bench.problem.case(self.bench.random, least))  # first touches
                self.empty.append(self._window(process, self.bench.problem.case(self.bench.random, least)))
            ns = self._window(process, case)
            if ns <= 0:
                raise Violation("zero_sample", "the process's clock did not move during a call")
            if ns < self.bench.bound_ns() and ns < self.bench.bound_ns(remeasure=True):
                raise self._too_good(process, ns)
        self.times.append(ns)
        return ns

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _started(self) -> Process:
        bench = self.bench
        if self._folder is None:
            self._folder = bench.folder / self.name
            self._folder.mkdir()
            self._folder.chmod(0o755)
            self.candidate.prepare(self._folder)
        process = Process(
            bench.launcher, self._folder, self.candidate, bench.problem, bench.inputs(), bench.limits,
            bench.deadline + GRACE_S, bench.cancel, bench.threads,
        )  # fmt: skip
        if self.candidate.warms:
            try:
                for n in dict.fromkeys((bench.problem.least, bench.n)):
                    case = bench.problem.case(bench.random, n)
                    self._judge(process.call(bench.random, case, warm=True), case)
                process.seal()
            except BaseException:
                process.close()
                raise
        return process

    def _cases(self, plan: list[tuple[int, str]]) -> Iterator[Case]:
        """Fresh cases of these sizes and kinds. Raises: Violation when time is up."""
        for n, kind in plan:
            if self.bench.late():
                raise Violation("timeout", "the time limit of the evaluation passed")
            yield self.bench.problem.case(self.bench.random, n, kind)

    def _watched(self, process: Process, case: Case, begin: Outputs | None = None) -> Outputs:
        """A checked call; what it wrote."""
        window = process.call(self.bench.random, case, watched=True, begin=begin)
        self._judge(window, case)
        return window.outputs

    def _window(self, process: Process, case: Case) -> int:
        window = process.call(self.bench.random, case)
        self._judge(window, case)
        return window.ns

    def _too_good(self, process: Process, ns: int) -> Violation:
        """A sample under the bound, looked into: a claim that repeats, or a clock that slipped once."""
        bench = self.bench
        windows = [self._window(process, bench.problem.case(bench.random, bench.n)) for _ in range(3)]
        code = "over_bound" if statistics.median(windows) < bench.bound_ns() else "clock_slip"
        return Violation(code, f"{ns} ns, then {windows}: the bound is {bench.bound_ns()} ns")

    def _judge(self, window: Window, case: Case) -> None:
        """Raises: Violation when the output is not the answer."""
        import numpy as np

        where, tolerance = f"n = {case.n}, {case.kind} inputs", self.bench.problem.tolerance
        if not window.inputs_kept:
            raise Violation("wrote_inputs", f"the inputs changed: {where}")
        for name, output in window.outputs.items():
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise Violation("non_finite", f"NaN, infinite or never written: {name}, {where}")
        for name, output in window.outputs.items():
            errors, wrong = tolerance.errors(output, case.outputs[name])
            if wrong.any():
                self.bench.problem.stands_by(case)  # or it is the problem that is wrong
                off = float(errors[wrong].max())
                raise Violation("incorrect", f"error {off:.3g}, tolerance {tolerance}: {name}, {where}")
            self.err_max = max(self.err_max, float(errors.max(initial=0.0)))
        if not window.inside:
            raise Violation("out_of_bounds", f"wrote around the output: {where}")

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except Violation as violation:
            violation.side = violation.side or self.blame
            raise


def alone(side: Side) -> None:
    """Windows of one side with nobody to compare with, in all its processes. Raises: Violation."""
    bench = side.bench
    for turn in range(ALONE):
        for index in range(PROCESSES):
            if turn and bench.late():
                return
            side.time(index, bench.problem.case(bench.random, bench.n))


def compare(candidate: Side, rival: Side, rule: Mapping[str, int]) -> list[dict[str, Any]]:
    """Pairs until the rule has decided (spak.validators.pairs). Raises: Violation of either side."""
    warms = candidate.candidate.warms or rival.candidate.warms  # a new process compiles again, for seconds
    sampling = replace(_sampling(candidate.bench), renew=not warms)
    return pairs.compare(sampling, candidate.time, rival.time, rival.name, rule)


def settle(candidate: Side, baseline: Side) -> list[Mapping[str, pairs.Figures]]:
    """The figures of a final measurement and of the baseline next to it, the ones to publish last.

    A round is repeated in new processes, since a spread is often a property of where a process lies in
    memory. Raises: Violation of either side.
    """
    bench = candidate.bench

    def again() -> Mapping[str, list[int]]:
        taken: dict[str, list[int]] = {}
        for side in (candidate, baseline):
            side.close()
            taken[side.name] = []
        for turn in range(ALONE * PROCESSES):
            for letter, case in pairs.Draw.of(replace(_sampling(bench), couples=1)).windows:
                side = candidate if letter == "c" else baseline
                taken[side.name].append(side.time(turn % PROCESSES, case))
        return taken

    first = {side.name: list(side.times) for side in (candidate, baseline)}
    return pairs.settled(first, again, bench.late)


def _sampling(bench: Bench) -> pairs.Sampling[Case]:
    return pairs.Sampling(
        draw=lambda: bench.problem.case(bench.random, bench.n),
        coin=lambda: bool(bench.random.integers(2)),
        late=bench.late,
    )
