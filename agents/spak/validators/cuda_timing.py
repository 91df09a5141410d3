"""Timing a kernel on a device: what CpuProfiler does with CPU time, with the device's events.

Takes a call, a cubin and the device that was found; gives a Measurement of status `measured` with integer
nanoseconds in the order taken. A helper process (spak.validators.cuda_driver) does the launches inside the
launcher; inputs, sizes, orders and references come from here, and so does the decision when to stop.

    find       does the launcher show a device, and which
    correct    the problem's plan on hidden inputs, one launch each
    alone      windows of one side, for a baseline
    compare    pairs of three windows a side, interleaved in drawn order, until `decide` has an answer

A kernel is `extern "C" __global__` with the parameters of the problem's C prototype, in that order, launched
with `rows_per_block` of the n rows to a block.

This path has been exercised against a stand-in for the driver library, not yet on a device.
"""

from __future__ import annotations

import itertools
import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak import canon
from spak.files.scratch import Scratch
from spak.kernel.metric.decision import DEFAULTS
from spak.ports import MIB, MeasureCall, Measurement, Subject
from spak.validators import cuda_nvml, launch, pairs, problems
from spak.validators.cuda_static import Assembly
from spak.validators.problems import Case, Problem, ProblemFault

if TYPE_CHECKING:
    import numpy as np

METRIC = "time_ns"
PAIRS_A_ROUND = 4
ALONE = 24
CORES = {75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 103: 128, 120: 128}
"""FP32 lanes of a multiprocessor by compute capability (CUDA C++ Programming Guide, throughput table)."""

TENSOR = 16
"""How far above the FP32 lanes tensor cores may reach; nothing correct is faster than the bound with it."""

DECIDING = ("margin_num", "margin_den", "evidence", "max_pairs")


@dataclass(frozen=True, slots=True)
class Device:
    """What `find` saw; `code` says why there is none."""

    found: bool = False
    code: str = ""
    detail: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arch(self) -> str:
        """The architecture as nvcc names it."""
        return f"sm_{self.about['major']}{self.about['minor']}"

    def bound_ns(self, flops: int) -> int:
        """No correct answer of so many operations comes sooner; 0 when the device is not in the table."""
        lanes = CORES.get(10 * self.about["major"] + self.about["minor"], 0)
        rate = 2 * lanes * TENSOR * self.about["sms"] * self.about["clock_khz"] * 1000
        return flops * 1_000_000_000 // rate if rate else 0


class Fault(Exception):
    """The measurement cannot go on; `status` and `code` say whose doing it was."""

    def __init__(self, status: str, check: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status: Any = status
        self.check = check
        self.code = code


def find(call: MeasureCall, library: str) -> Device:
    """Ask the driver inside the launcher for its first device; never raises for the lack of one."""
    if not launch.program(call, "python"):
        return Device(code="toolchain", detail="the toolchain has no python to run the helper with")
    try:
        answer = _ask(call, {"library": library, "windows": [], "blobs": []}, b"")
    except Fault as fault:
        return Device(code=fault.code, detail=str(fault))
    if answer["status"] != "ok":
        return Device(code=answer["status"], detail=answer["detail"])
    return Device(True, "", answer["device"]["name"], answer["device"])


def measure(
    call: MeasureCall, library: str, device: Device, assembly: Assembly, static: Measurement
) -> Measurement:
    """The Measurement on a device: the static one's checks and evidence, and what was timed."""
    with ExitStack() as stack:
        return _measured(call, _Bench(call, library, device, assembly, stack), device, assembly, static)


def _measured(
    call: MeasureCall, bench: _Bench, device: Device, assembly: Assembly, static: Measurement
) -> Measurement:
    checks = list(static.checks)
    status: Any = "measured"
    try:
        bench.open()
        worst = bench.correct()
        checks.append(launch.check("correct", True, detail=f"largest error {worst:.3g}"))
        role = call.options.get("role", "candidate")
        rivals = [name for name in pairs.RIVALS[role] if name in call.rivals]
        for name in rivals:
            bench.compare(name)
        if not rivals:
            bench.alone()
        bench.judge_speed()
        checks.append(launch.check("timed", True))
    except Fault as fault:
        checks.append(launch.check(fault.check, False, fault.code, str(fault)))
        status = fault.status
    except ProblemFault as problem:
        checks.append(launch.check("problem", False, problem.code, problem.detail))
        status = "void"
    measured = status == "measured"
    evidence = {**static.evidence, "label": "measured on a device", "executed": True}
    evidence |= {"device": {"found": True, **device.about}, "nvml": bench.readings}
    return replace(
        static,
        status=status,
        checks=tuple(checks),
        metrics=bench.metrics() if measured else {},
        pairs=tuple(bench.pairs) if measured else (),
        samples={} if bench.pairs else {"candidate": tuple(bench.times["candidate"])},
        subject=Subject(
            {"binary": assembly.cubin, "launch": canon.dumps(launch_of(call)), **static.subject.files}
        ),
        evidence=evidence,
        wall_ms=static.wall_ms + bench.wall_ms,
        cpu_ms=static.cpu_ms + bench.cpu_ms,
    )


def launch_of(call: MeasureCall) -> dict[str, Any]:
    """The shape of a kernel's launch: part of what is measured, since a rival may have another."""
    return {
        "block": [*call.options.get("block", [128]), 1, 1][:3],
        "rows_per_block": call.options.get("rows_per_block", 1),
        "shared_bytes": call.options.get("dynamic_shared_bytes", 0),
    }


class _Bench:
    """One evaluation on a device: draws cases, sends rounds to the helper, keeps the samples."""

    problem: Problem

    def __init__(
        self, call: MeasureCall, library: str, device: Device, assembly: Assembly, stack: ExitStack
    ) -> None:
        import numpy as np

        self.call = call
        self.library = library
        self.device = device
        self._stack = stack
        self.n = 0
        self.rule = {**DEFAULTS, **{key: call.rule[key] for key in DECIDING if key in call.rule}}
        self.random: np.random.Generator = np.random.default_rng([abs(call.seed), secrets.randbits(64)])
        self.cubins = {"candidate": assembly.cubin}
        self.launches = {"candidate": launch_of(call)}
        self.times: dict[str, list[int]] = {"candidate": []}
        self.pairs: list[dict[str, Any]] = []
        self.readings: list[dict[str, Any]] = []
        self.error = 0.0
        self.wall_ms = self.cpu_ms = 0

    def open(self) -> None:
        """Start the problem's own sandbox. Raises: ProblemFault."""
        assert self.call.launcher is not None
        folder = self._stack.enter_context(Scratch("cuda"))
        folder.chmod(0o755)
        text = problems.text_of(self.call.options["problem"], self.call.problems)
        session = problems.opened(
            self.call.launcher,
            self.call.toolchain,
            folder / "problem",
            text,
            self.call.limits,
            self.call.cancel,
        )
        self.problem = Problem.of(self._stack.enter_context(session))
        self.n = self.call.options.get("n", self.problem.timed)
        if not self.problem.least <= self.n <= self.problem.most:
            least, most = self.problem.least, self.problem.most
            raise ProblemFault("problem.size", f"n = {self.n}: the problem takes {least} to {most}")

    def correct(self) -> float:
        """The largest error over the problem's plan. Raises: Fault of the candidate."""
        cases = [
            self.problem.case(self.random, n, kind) for n, kind in self.problem.plan(self.random, self.n)
        ]
        for start in range(0, len(cases), 12):
            self._round(cases[start : start + 12], ["candidate"] * len(cases[start : start + 12]))
        return self.error

    def alone(self) -> None:
        cases = [self.problem.case(self.random, self.n) for _ in range(ALONE)]
        self.times["candidate"] += self._round(cases, ["candidate"] * ALONE)

    def compare(self, rival: str) -> None:
        """Pairs until the rule has decided; what was sampled beyond that is dropped, not looked at."""
        binary = self.call.rivals[rival].files.get("binary")
        if binary is None:
            raise Fault("void", f"rival.{rival}", "no_binary", "the rival was never built for a device")
        self.cubins[rival] = binary
        shape = self.call.rivals[rival].files.get("launch")
        self.launches[rival] = json.loads(shape) if shape else self.launches["candidate"]
        self.times.setdefault(rival, [])
        for pair in pairs.until_decided(self._pairs(rival), lambda: False, self.rule):
            self.pairs.append(pair)
            self.times["candidate"] += pair["candidate"]
            self.times[rival] += pair["incumbent"]

    def _pairs(self, rival: str) -> Iterator[dict[str, Any]]:
        """Pair after pair, some of them in one process of the helper. Raises: Fault."""
        sampling = pairs.Sampling(
            draw=lambda: self.problem.case(self.random, self.n),
            coin=lambda: bool(self.random.integers(2)),
            late=lambda: False,
        )
        for process in itertools.count():
            draws = [pairs.Draw.of(sampling) for _ in range(min(PAIRS_A_ROUND, self.rule["max_pairs"]))]
            windows = [window for draw in draws for window in draw.windows]
            sides = ["candidate" if letter == "c" else rival for letter, _ in windows]
            times = iter(self._round([case for _, case in windows], sides))
            for draw in draws:
                taken = list(itertools.islice(times, len(draw.windows)))
                if min(taken) <= 0:
                    raise Fault("void", "timed", "zero_sample", "a window of 0 ns")
                yield draw.pair(rival, process, taken)

    def _round(self, cases: Sequence[Case], sides: Sequence[str]) -> list[int]:
        """One helper process: a window for each case and side, in order. Raises: Fault.

        A window warms up on the case two places before, which is never its own: both sides of a couple share
        one, and what a kernel keeps of the warm-up must not help it.
        """
        prototype, tolerance = self.problem.prototype, self.problem.tolerance
        blobs: list[bytes] = []
        places: dict[int, int] = {}
        items: list[dict[str, Any]] = []
        for case in cases:
            if id(case) not in places:
                shapes = self.problem.shapes(case.n)
                places[id(case)] = len(items)
                first = len(blobs)
                blobs += [array.tobytes() for array in case.inputs.values()]
                second = len(blobs)
                blobs += [array.tobytes() for array in case.outputs.values()]
                items.append(
                    {
                        "n": case.n,
                        "scalars": [case.scalars[item.name] for item in prototype.of("scalar")],
                        "inputs": list(range(first, second)),
                        "references": list(range(second, len(blobs))),
                        "outputs": [array.size for array in case.outputs.values()],
                        "scratch": sum(math.prod(shapes[item.name]) for item in prototype.of("scratch")),
                    }
                )
        named = {}
        for side in dict.fromkeys(sides):
            named[side] = len(blobs)
            blobs.append(self.cubins[side])
        order = [places[id(case)] for case in cases]
        job = {
            "library": self.library,
            "symbol": prototype.symbol,
            "parameters": [[item.role, item.type] for item in prototype.parameters],
            "seed": int(self.random.integers(2**53)),
            "launches": {side: self.launches[side] for side in named},
            "flush_bytes": 2 * self.device.about.get("l2_bytes", 0),
            "tolerance": [tolerance.abs, tolerance.rel, tolerance.ulp],
            "cases": items,
            "sides": named,
            "windows": [
                [side, case, order[index - 2]]
                for index, (side, case) in enumerate(zip(sides, order, strict=True))
            ],
            "blobs": [len(blob) for blob in blobs],
        }
        self._watch()
        answer = _ask(self.call, job, b"".join(blobs))
        self._watch()
        self.wall_ms += answer["wall_ms"]
        self.cpu_ms += answer["cpu_ms"]
        return self._read(answer, sides)

    def _read(self, answer: Mapping[str, Any], sides: Sequence[str]) -> list[int]:
        windows = answer.get("windows", [])
        if windows and windows[-1]["code"]:
            self._blame(windows[-1]["side"], windows[-1]["code"], "on hidden inputs")
        if answer["status"] == "unavailable":
            raise Fault("unavailable", "device", "device_lost", answer["detail"])
        if answer["status"] != "ok":
            side = sides[min(len(windows), len(sides) - 1)]
            self._blame(side, "device_fault", f"{answer['detail']} in window {len(windows) + 1}")
        self.error = max(
            [self.error, *(window["err"] for window in windows if window["side"] == "candidate")]
        )
        return [int(window["ns"]) for window in windows]

    def _blame(self, side: str, code: str, detail: str) -> None:
        """A rival that was right when it won and is not now says that the measurement is worthless."""
        status = "checked" if side == "candidate" else "void"
        raise Fault(status, "candidate" if side == "candidate" else f"rival.{side}", code, detail)

    def _watch(self) -> None:
        """Read the device's state. Raises: Fault when something holds its clock down."""
        state = cuda_nvml.reading()
        if state is None:
            return
        self.readings.append(state)
        if state.get("slowed"):
            raise Fault("void", "clock", "throttled", ", ".join(state["slowed"]))

    def judge_speed(self) -> None:
        """Raises: Fault for a window of 0 ns or one that no correct answer could have."""
        times = self.times["candidate"]
        bound = self.device.bound_ns(self.problem.flops(self.n))
        if min(times) <= 0:
            raise Fault("void", "timed", "zero_sample", "a window of 0 ns")
        if min(times) < bound:
            raise Fault("checked", "bound", "too_fast", f"{min(times)} ns, the bound is {bound} ns")

    def metrics(self) -> dict[str, int | float]:
        """Integers but for the error; medians are published, minima decide."""
        of = pairs.Figures.of(self.times["candidate"])
        found: dict[str, int | float] = {
            "err_max": self.error,
            METRIC: of.median,
            "time_min_ns": of.least,
            "time_low_ns": of.low,
            "time_high_ns": of.high,
            "spread_ppm": of.spread_ppm,
            "windows": len(self.times["candidate"]),
        }
        bound = self.device.bound_ns(self.problem.flops(self.n))
        if bound:
            found |= {"bound_ns": bound, "bound_ppm": bound * 1_000_000 // of.least}
        for name, taken in self.times.items():
            if name != "candidate" and taken:
                rival = pairs.Figures.of(taken)
                found |= {f"{name}_ns": rival.median, f"{name}_spread_ppm": rival.spread_ppm}
        return found


def _ask(call: MeasureCall, job: Mapping[str, Any], blobs: bytes) -> dict[str, Any]:
    """What the helper answers to a job. Raises: Fault when it does not."""
    guest = Path(__file__).with_name("cuda_driver.py").read_text(encoding="utf-8")
    outcome = launch.run(
        call,
        (launch.program(call, "python"), "-I", "-B", "-c", guest),
        timeout_s=call.options.get("timeout_s", 120.0),
        stdin=json.dumps(job).encode() + b"\n" + blobs,
        output_bytes=4 * MIB,
    )
    if outcome.status == "timeout":
        raise Fault("timeout", "candidate", "timeout", "the device did not finish in time")
    if outcome.status == "launcher":
        raise Fault("unavailable", "ran", "launcher", outcome.detail)
    try:
        answer: dict[str, Any] = json.loads(outcome.stdout.data)
    except ValueError:
        detail = f"the helper ended with {outcome.status} {outcome.exit}: {launch.tail(outcome.stderr.data)}"
        raise Fault("void", "helper", "helper", detail) from None
    return {**answer, "wall_ms": outcome.wall_ms, "cpu_ms": outcome.cpu_ms}
