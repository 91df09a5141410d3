"""One hostile candidate for each known way to fool a measurement: `hacks/*.c`, and what becomes of it.

Two ends are good: a verdict with the code that names the offence, or honest work that shows no gain.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cpu_calls import HACKS, Lab, code, from_malloc
from spak.cancel import Cancel
from spak.ports import Measurement, Toolchain
from spak.validators.cpu_build import Workshop, compiler, run_trusted
from spak.validators.cpu_profiler import CpuProfiler
from spak.validators.problems import Prototype

pytestmark = pytest.mark.sandbox

CAUGHT = {
    "returns_at_once": "non_finite",
    "constant": "incorrect",
    "writes_nan": "non_finite",
    "writes_infinity": "non_finite",
    "first_call_only": "non_finite",
    "wrong_now_and_then": "incorrect non_finite",
    "lazy": "non_finite",
    "thread": "forbidden_call",
    "fork": "forbidden_call",
    "writes_parent": "forbidden_call",
    "priority": "forbidden_call",
    "opens_file": "forbidden_call",
    "writes_file": "forbidden_call",
    "alters_inputs": "wrote_inputs",
    "unprotects_inputs": "forbidden_call",
    "unprotects_early": "wrote_inputs",
    "one_size_only": "non_finite",
    "drops_keys": "incorrect non_finite",
    "whole_tiles_only": "non_finite",
    "scratch_as_zero": "non_finite incorrect",
    "stack_as_zero": "non_finite",
    "malloc_as_zero": "incorrect",
    "early_signal": "early_signal did_not_rest",  # or seen at work, on a busy machine
    "spins_after": "did_not_rest",
    "exits": "died",
    "crashes": "died",
    "hangs": "timeout",
    "bf16": "incorrect",
    "out_of_bounds": "out_of_bounds",
    "imports_system": "forbidden_symbol",
    "no_symbol": "missing_symbol",
}
NO_GAIN = ("cache_by_pointer", "cache_by_content", "spins_a_little", "floods_caches")
ELSEWHERE = {"honest", "guarded_online", "patches_clock", "skips_filter", "reads_file", "works_between"} | {
    "opens_memory"
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("hacks"))


def test_every_hack_has_a_test() -> None:
    assert {path.stem for path in HACKS.glob("*.c")} == {*CAUGHT, *NO_GAIN, *ELSEWHERE}


@pytest.mark.parametrize("name", CAUGHT)
def test_caught(lab: Lab, name: str) -> None:
    measurement = lab.measure(lab.hack(name), "baseline")
    assert code(measurement) in CAUGHT[name].split(), measurement.checks
    assert measurement.status == ("timeout" if name == "hangs" else "checked")
    assert not measurement.pairs


@pytest.mark.parametrize("name", NO_GAIN)
def test_no_gain(lab: Lab, name: str) -> None:
    """It gives right answers, so it is measured; what it does beside that is in its own windows."""
    measurement = lab.measure(lab.hack(name), rivals={"incumbent": lab.hack("honest")})
    if name in ("floods_caches", "spins_a_little") and code(measurement) == "did_not_rest":
        return  # on a busy machine its work after "done" lasts too long: the other good end
    _no_gain(measurement)
    if name in ("spins_a_little", "floods_caches"):
        assert measurement.metrics["time_ns"] > 1.1 * measurement.metrics["incumbent_ns"]


def test_patched_clock_shows_no_gain(lab: Lab) -> None:
    binary = lab.hack("patches_clock", f"-DOFFSET={from_malloc('clock_gettime')}")
    _no_gain(lab.measure(binary, rivals={"incumbent": lab.hack("honest")}))


def test_without_the_second_filter_the_first_holds(lab: Lab) -> None:
    binary = lab.hack("skips_filter", f"-DOFFSET={from_malloc('syscall')}")
    assert code(lab.measure(binary, "baseline")) == "forbidden_call"


def test_files_of_the_host_are_not_there(lab: Lab, tmp_path: Path) -> None:
    """It does nothing if it can read the file; it is right, so it could not."""
    answers = tmp_path / "answers"
    answers.write_text("known")
    measurement = lab.measure(lab.hack("reads_file", f'-DANSWERS="{answers}"'), "baseline")
    assert measurement.status == "measured", measurement.checks


def test_the_memory_of_the_judge_cannot_be_opened(lab: Lab) -> None:
    """It does nothing if it can open one of its files; it is right, so it could not."""
    measurement = lab.measure(lab.hack("opens_memory", f'-DJUDGE="{os.getpid()}"'), "baseline")
    assert measurement.status == "measured", measurement.checks


def test_fast_math_loses_the_guard_against_infinity(lab: Lab) -> None:
    plain = lab.measure(lab.hack("guarded_online"), "baseline")
    assert plain.status == "measured", plain.checks
    assert code(lab.measure(lab.hack("guarded_online", "-ffast-math"), "baseline")) == "non_finite"
    mended = lab.measure(lab.hack("guarded_online", "-ffast-math", "-fno-finite-math-only"), "baseline")
    assert mended.status == "measured", mended.checks


class Unfiltered(Workshop):
    """A driver without its filters: what the second belts see when the first is off."""

    def driver(
        self,
        toolchain: Toolchain | None,
        prototype: Prototype,
        cancel: Cancel | None = None,
        threads: int = 1,
    ) -> Path:
        source = (Path(__file__).parents[2] / "sandbox/guest/cpu_driver.c").read_text()
        assert source.count("    INSTALL(filter_") == 2
        text = self.folder / "open.c"
        text.write_text(source.replace("    INSTALL(filter_", "    (void)(filter_"))
        target = self.folder / "open"
        macros = [f"-D{macro}" for macro in prototype.macros()]
        run_trusted([compiler(toolchain), "-w", "-O2", *macros, "-o", str(target), str(text), "-ldl"])
        target.chmod(0o755)
        return target


@pytest.fixture(scope="module")
def unfiltered() -> CpuProfiler:
    return CpuProfiler(workshop=Unfiltered())


def test_work_between_calls_is_seen(lab: Lab, unfiltered: CpuProfiler) -> None:
    measurement = lab.measure(lab.hack("works_between"), "baseline", profiler=unfiltered)
    assert code(measurement) in ("idle_work", "did_not_rest"), measurement.checks  # busy machine: the latter


def test_the_clock_counts_threads(lab: Lab, unfiltered: CpuProfiler) -> None:
    rivals = {"incumbent": lab.hack("honest")}
    _no_gain(lab.measure(lab.hack("thread"), rivals=rivals, profiler=unfiltered))


def _no_gain(measurement: Measurement) -> None:
    """Measured, and nowhere near what the hack is after.

    Code laid out otherwise may differ by a few per cent, and a busy machine adds to that, so that the verdict
    itself is asked for only between equal binaries (test_cpu_profiler). A hack that works saves nearly all.
    """
    assert measurement.status == "measured", measurement.checks
    assert measurement.metrics["time_ns"] > 0.5 * measurement.metrics["incumbent_ns"]
