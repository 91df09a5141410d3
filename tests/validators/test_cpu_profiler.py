"""CpuProfiler on honest candidates: what it measures, what it records, how it decides, what voids it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cpu_calls import EXAMPLES, TENFOLD, Lab, N, code, verdict
from spak.cancel import Cancel
from spak.kernel.metric.decision import DEFAULTS, decide
from spak.ports import Child, Job, MeasureCall, Subject, Toolchain
from spak.sandbox.restricted import Restricted
from spak.validators import cpu_session, pairs
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_process import FILL, Process
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.cpu_session import Side
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

CERTAIN = {**DEFAULTS, "evidence": 1_000_000}
"""Chance alone meets it once in a million comparisons."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("profiler"))


def test_baseline_is_measured_alone(lab: Lab) -> None:
    binary = lab.compiled(EXAMPLES / "naive.c", "-O2")
    (lab.folder / "naive.c").write_bytes((EXAMPLES / "naive.c").read_bytes())
    measurement = lab.measure(binary, "baseline", source="naive.c")
    assert measurement.status == "measured", measurement.checks
    assert all(item["ok"] and item["code"] == "" for item in measurement.checks)
    assert not measurement.pairs
    times = measurement.samples["candidate"]
    metrics = measurement.metrics
    assert len(times) == metrics["windows"] == 16
    assert metrics["time_ns"] == statistics.median_low(times)
    assert metrics["time_min_ns"] == min(times)
    assert all(type(metrics[name]) is int for name in metrics if name != "err_max")
    assert 0 < metrics["err_max"] <= 4e-6
    assert 0 < metrics["bound_ns"] < metrics["time_min_ns"]
    assert metrics["flops_peak"] > 0
    assert measurement.subject.files == {
        "binary": (lab.folder / binary).read_bytes(),
        "source": (lab.folder / "naive.c").read_bytes(),
    }
    assert measurement.cpu_ms > 0 and measurement.wall_ms > 0


def test_a_tenth_of_the_work_is_an_improvement(lab: Lab) -> None:
    """The pairs that were taken are the pairs that the kernel decides on, to the last one."""
    measurement = lab.measure(lab.hack("honest"), rivals={"incumbent": lab.hack("honest", TENFOLD)})
    assert measurement.status == "measured", measurement.checks
    assert measurement.metrics["incumbent_ns"] > 2 * measurement.metrics["time_ns"]
    assert verdict(measurement).outcome == "improved"
    assert verdict(measurement).pairs == len(measurement.pairs) == 8
    for index, pair in enumerate(measurement.pairs):
        assert pair["process"] == index and pair["rival"] == "incumbent"  # it leads: each has its own
        assert len(pair["candidate"]) == len(pair["incumbent"]) == 3
        assert {pair["order"][at : at + 2] for at in (0, 2, 4)} <= {"ci", "ic"}
    seen = [ns for pair in measurement.pairs for ns in pair["candidate"]]
    assert measurement.metrics["time_ns"] == statistics.median_low(seen)
    assert "candidate" not in measurement.samples


def test_the_same_binary_is_no_improvement(lab: Lab) -> None:
    for _ in range(3):
        rivals = {"incumbent": lab.hack("honest")}
        measurement = lab.measure(lab.hack("honest"), rivals=rivals, rule=CERTAIN)
        assert measurement.status == "measured", measurement.checks
        found = verdict(measurement, rule=CERTAIN)
        assert found.outcome in ("not_improved", "undecided")
        assert len(measurement.pairs) == found.pairs


@pytest.mark.findings("E5")
def test_a_candidate_that_wins_is_called_many_more_times(lab: Lab) -> None:
    """In the process that was timed last; one that does not win is not, nor is a baseline."""
    slow, quick, late = lab.hack("honest", TENFOLD), lab.hack("honest"), lab.hack("honest", "-DRIGHT=150")
    won = lab.measure(quick, rivals={"incumbent": slow})
    alone = lab.measure(quick)
    for seen in (won, alone):
        (found,) = [item for item in seen.checks if item["name"] == "confirmed"]
        assert found["ok"] and found["detail"].startswith("224 more calls")
    assert len(won.pairs) == 8
    for seen in (lab.measure(slow, rivals={"incumbent": quick}), lab.measure(quick, "baseline")):
        assert seen.status == "measured" and "confirmed" not in {item["name"] for item in seen.checks}
    for seen in (
        lab.measure(late, rivals={"incumbent": slow}),
        lab.measure(late, "final"),
        lab.measure(late),
    ):
        assert (seen.status, code(seen), seen.pairs) == ("checked", "incorrect", ()), seen.checks


def test_a_slow_kernel_is_called_less_often(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_session, "CONFIRM_NS", 1)
    seen = lab.measure(lab.hack("honest"))
    assert "0 more calls in a process that had been timed" in [item["detail"] for item in seen.checks]


def test_an_improvement_that_time_does_not_let_confirm_is_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirm = Side.confirm

    def late(side: Side, *asked: int) -> int:
        side.bench.deadline = 0
        return confirm(side, *asked)

    monkeypatch.setattr(Side, "confirm", late)
    seen = lab.measure(lab.hack("honest"), rivals={"incumbent": lab.hack("honest", TENFOLD)})
    assert (seen.status, code(seen), seen.pairs) == ("timeout", "timeout", ())


def test_a_hopeless_candidate_costs_one_pair(lab: Lab) -> None:
    measurement = lab.measure(lab.hack("honest", TENFOLD), rivals={"incumbent": lab.hack("honest")})
    assert measurement.status == "measured"
    assert len(measurement.pairs) == 1
    assert verdict(measurement).outcome == "undecided"


def test_inputs_lie_in_one_arena_during_windows_only(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides get the same inputs, one after the other, and may start, which is not timed, in between."""
    seen: list[tuple[int, int]] = []
    started, called = Process._start, Process.call

    def empty(process: Process) -> None:
        assert (process._inputs.bytes == FILL).all()
        seen.append((id(process._inputs), id(process._outputs)))

    def start(process: Process, child: Child) -> None:
        empty(process)
        started(process, child)
        empty(process)

    def call(process: Process, *given: Any, **more: Any) -> Any:
        empty(process)
        try:
            return called(process, *given, **more)
        finally:
            empty(process)

    monkeypatch.setattr(Process, "_start", start)
    monkeypatch.setattr(Process, "call", call)
    monkeypatch.setattr(pairs, "_hopeless", lambda *_: False)  # else noise may end it after the first pair
    measurement = lab.measure(
        lab.hack("honest"), rivals={"incumbent": lab.hack("honest")}, rule={**CERTAIN, "max_pairs": 4}
    )
    assert measurement.status == "measured" and len(measurement.pairs) == 4, measurement.checks
    assert len({inputs for inputs, _ in seen}) == 1
    assert len({outputs for _, outputs in seen}) >= 8  # of each process that lives at once


def test_final_is_compared_with_baseline_and_runner_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "ROUNDS", 1)  # noise adds no rounds here; the next test is about them
    best, other, first = lab.hack("honest"), lab.hack("honest", TENFOLD), lab.hack("honest", "-DWASTE=1900")
    rivals = {"baseline": first, "runner_up": other, "incumbent": other}
    measurement = lab.measure(best, "final", rivals=rivals)
    assert [pair["rival"] for pair in measurement.pairs] == sorted(
        pair["rival"] for pair in measurement.pairs
    )
    assert {pair["rival"] for pair in measurement.pairs} == {"baseline", "runner_up"}
    assert verdict(measurement, "baseline").outcome == "improved"
    assert verdict(measurement, "runner_up").outcome == "improved"
    assert measurement.metrics["baseline_ns"] > measurement.metrics["time_ns"]
    assert measurement.metrics["runner_up_ns"] > measurement.metrics["time_ns"]
    times = [ns for pair in measurement.pairs if pair["rival"] == "runner_up" for ns in pair["incumbent"]]
    median, least = statistics.median_low(times), min(times)
    assert measurement.metrics["runner_up_ns"] == median
    assert measurement.metrics["runner_up_spread_ppm"] == (median - least) * 1_000_000 // least


def test_a_final_figure_has_an_interval_and_is_that_of_its_quietest_round(lab: Lab) -> None:
    """How many rounds there are depends on the machine; which one is published does not."""
    found = lab.measure(lab.hack("honest"), "final", rivals={"baseline": lab.hack("honest", TENFOLD)})
    rounds, metrics = found.evidence["rounds"], found.metrics
    assert 1 <= metrics["rounds"] == len(rounds) <= pairs.ROUNDS
    noise = [max(side["spread_ppm"] for side in taken.values()) for taken in rounds]
    assert noise[-1] == min(noise)
    assert noise[-1] <= pairs.SPREAD_PPM or len(rounds) == pairs.ROUNDS
    for side, name in (("candidate", "time"), ("baseline", "baseline")):
        assert rounds[-1][side]["median"] == metrics[f"{name}_ns"]
        assert metrics[f"{name}_low_ns"] <= metrics[f"{name}_ns"] <= metrics[f"{name}_high_ns"]


def test_a_shorter_rule_of_the_program_is_kept(lab: Lab) -> None:
    call = MeasureCall(
        "m1",
        "CpuProfiler",
        {"binary": lab.hack("honest"), "n": N},
        lab.folder,
        lab.launcher,
        toolchain=toolchain(),
        rivals={"incumbent": _subject(lab, lab.hack("honest", TENFOLD))},
        rule={"max_pairs": 2},
    )
    measurement = lab.profiler.measure(call)
    assert len(measurement.pairs) == 2
    assert decide(measurement.pairs, {**DEFAULTS, "max_pairs": 2}).outcome == "undecided"


def test_a_rival_that_fails_makes_the_measurement_void(lab: Lab) -> None:
    measurement = lab.measure(lab.hack("honest"), rivals={"incumbent": lab.hack("bf16")})
    assert measurement.status == "void"
    assert measurement.checks[-1]["name"] == "rival.incumbent" and code(measurement) == "incorrect"
    assert not measurement.pairs


class Boastful(Workshop):
    """A roof so low that honest work is above it."""

    def flops_peak(
        self, toolchain: Toolchain | None, again: bool = False, cancel: Cancel | None = None
    ) -> int:
        return 10_000_000


class Moody(Workshop):
    """A roof that is too low at first sight only, as after a clock that slipped."""

    seen = 0

    def flops_peak(
        self, toolchain: Toolchain | None, again: bool = False, cancel: Cancel | None = None
    ) -> int:
        self.seen += 1
        return 10_000_000 if self.seen <= 2 else 10**12


@pytest.mark.parametrize(
    ("workshop", "status", "expected"), [(Boastful, "checked", "over_bound"), (Moody, "void", "clock_slip")]
)
def test_above_the_roof(lab: Lab, workshop: type[Workshop], status: str, expected: str) -> None:
    profiler = CpuProfiler(workshop=workshop())
    measurement = lab.measure(lab.hack("honest"), "baseline", profiler=profiler)
    assert (measurement.status, code(measurement)) == (status, expected)


class Elsewhere:
    """A child that tells a process id which is not the candidate's."""

    def __init__(self, child: Child, pid: int) -> None:
        self._child, self.pid = child, pid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._child, name)


class Sidestep(Restricted):
    """A launcher whose children's clocks stand still."""

    sleeper = 0

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Any:
        return Elsewhere(super().start(job, pass_fds, seccomp_extra), self.sleeper)


def test_a_clock_that_stands_still_is_void(lab: Lab) -> None:
    launcher = Sidestep()
    rest, wake = os.pipe()
    launcher.sleeper = os.fork()
    if launcher.sleeper == 0:
        os.close(wake)
        os.read(rest, 1)
        os._exit(0)
    try:
        measurement = lab.measure(lab.hack("honest"), "baseline", launcher=launcher)
    finally:
        os.close(wake)
        os.close(rest)
        os.waitpid(launcher.sleeper, 0)
    assert (measurement.status, code(measurement)) == ("void", "zero_sample")


@pytest.mark.parametrize("name", ["absent.so", "../outside.so", "/etc/passwd", "link.so", "folder"])
def test_only_files_of_the_workspace_are_read(lab: Lab, name: str) -> None:
    (lab.folder / "folder").mkdir(exist_ok=True)
    link = lab.folder / "link.so"
    if not link.is_symlink():
        link.symlink_to(lab.folder / lab.hack("honest"))
    measurement = lab.measure(name, "baseline")
    assert (measurement.status, code(measurement)) == ("checked", "missing_file")
    assert not measurement.subject.files


def test_what_is_no_shared_object_does_not_load(lab: Lab) -> None:
    (lab.folder / "text.so").write_text("int x;")
    whole = (lab.folder / lab.hack("honest")).read_bytes()
    (lab.folder / "half.so").write_bytes(whole[: len(whole) // 2])
    for name in ("text.so", "half.so"):
        measurement = lab.measure(name, "baseline")
        assert (measurement.status, code(measurement)) == ("checked", "load_failed")


def test_time_that_is_up_ends_the_sampling(lab: Lab) -> None:
    """An undecided comparison, not an error: the naive kernel at 512 cannot make its pairs in a second."""
    naive = lab.compiled(EXAMPLES / "naive.c", "-O2")
    measurement = lab.measure(naive, rivals={"incumbent": naive}, n=512, wall_s=1)
    assert measurement.status in ("measured", "timeout")
    assert verdict(measurement).outcome in ("undecided", "not_improved")


def test_nothing_runs_without_a_launcher(lab: Lab) -> None:
    call = MeasureCall("m1", "CpuProfiler", {"binary": lab.hack("honest")}, lab.folder, None)
    measurement = lab.profiler.measure(call)
    assert (measurement.status, code(measurement)) == ("unavailable", "launcher")
    assert not measurement.metrics


def test_a_compiler_that_fails_is_named(lab: Lab) -> None:
    profiler = CpuProfiler()
    call = MeasureCall(
        "m1",
        "CpuProfiler",
        {"binary": lab.hack("honest")},
        lab.folder,
        lab.launcher,
        toolchain=toolchain(gcc="/bin/false"),
    )
    measurement = profiler.measure(call)
    assert (measurement.status, code(measurement)) == ("unavailable", "toolchain")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """No descriptor, process or file outlives an evaluation; the problem's sandbox ends with the profiler.

    In a process of its own: descriptors of other tests come and go.  A leak of each evaluation, or of each
    of one kind, grows by one a round; a sandbox that was replaced on a busy machine does not.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seen = pool.submit(_seen_by_rounds, str(tmp_path), 4).result()
    none, first, last, closed = seen["none"], seen["first"], seen["last"], seen["closed"]
    assert last[0] < first[0] + 4 and last[1] < first[1] + 4, seen
    assert closed[0] <= none[0] and closed[1] <= none[1], seen
    assert set(seen["files"]) == {"cpu_driver", "cpu_peak"}


def _seen_by_rounds(folder: str, rounds: int) -> dict[str, Any]:
    """Descriptors and children before, after the first and last round, and after all is closed."""
    lab = Lab(Path(folder))
    lab.hack("honest")  # the first compiler starts what the rest of this process keeps
    lab.profiler.close()
    seen: dict[str, Any] = {"none": _held()}
    for at in range(1 + rounds):
        for name in ("honest", "exits", "bf16"):
            lab.measure(lab.hack(name), "baseline")
        seen["last" if at else "first"] = _held()
    lab.profiler.close()
    workshop = lab.profiler._workshop
    assert workshop is not None
    seen["files"] = [path.name.partition("-")[0] for path in workshop.folder.iterdir()]
    workshop.close()
    seen["closed"] = _held()
    return seen


def _held() -> tuple[int, int]:
    """Open descriptors and children of this process."""
    gc.collect()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(list(Path("/proc/self/fd").iterdir())), len(children)


def _subject(lab: Lab, name: str) -> Subject:
    return Subject({"binary": (lab.folder / name).read_bytes()})
