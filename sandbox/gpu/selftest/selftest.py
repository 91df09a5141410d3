"""What a GPU does under the rules of CudaProfiler: one file tree, a bare Python (3.10) and the CUDA toolkit.

    python3 selftest.py [-o report.json] [--nvcc PATH] [--equal N]

`spak gpu selftest` runs this; `spak gpu selftest --export DIR` writes the tree, for another machine. It
needs no network, no package and no administrator, changes no setting of the device, and writes one file:
the report, as JSON. Exit 0 when every check holds, 1 when one does not, 7 when there is no device or no
toolkit; then the report says which, and nothing was measured.

    device        what the driver and NVML say of it, before and after
    kernels       the shipped kernels: compiled, right on hidden inputs, timed
    comparisons   tuned against naive, by the rule that decides in a run
    equal         each kernel against itself: how often the rule calls it improved
    hacks         known ways to fool a measurement, and how each ended

Each launch is done by spak/validators/cuda_driver.py in a process of its own; pairs and the decision are
spak/validators/pairs.py and spak/kernel/metric_decision.py, as in a run. Candidates supply device code alone,
so they cannot choose a stream or touch the clock.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import operator
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from array import array

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from spak.kernel.metric.decision import DEFAULTS, decide  # noqa: E402
from spak.validators import pairs  # noqa: E402

FORMAT = 1
JOB_S = 300
PAIRS_A_JOB = 4
WIDTHS = {"softmax": 1000, "attention": 64}
NO_TOOLKIT, NO_DEVICE = "unavailable.nvcc", "unavailable.device"


class Refused(Exception):
    """Nothing can be measured here: a code and a sentence."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.code = code


class Wrong(Exception):
    """A window ended otherwise than it should: its code."""


def numbers(draw, count):
    return array("f", [draw.uniform(-1.75, 1.75) for _ in range(count)])


def softmax(draw, n):
    """Fresh inputs and the answer."""
    x = numbers(draw, n * WIDTHS["softmax"])
    found = array("d")
    for row in range(n):
        part = x[row * 1000 : (row + 1) * 1000]
        top = max(part)
        weights = [math.exp(value - top) for value in part]
        total = math.fsum(weights)
        found.extend(weight / total for weight in weights)
    return [x], found


def attention(draw, n):
    """Fresh inputs and the answer."""
    q, k, v = (numbers(draw, n * 64) for _ in range(3))
    keys = [k[64 * row : 64 * row + 64] for row in range(n)]
    columns = [v[column::64] for column in range(64)]
    found = array("d")
    for row in range(n):
        query = q[64 * row : 64 * row + 64]
        logits = [sum(map(operator.mul, query, key)) / 8 for key in keys]
        top = max(logits)
        weights = [math.exp(logit - top) for logit in logits]
        total = math.fsum(weights)
        found.extend(sum(map(operator.mul, weights, column)) / total for column in columns)
    return [q, k, v], found


FLOAT = "float32"
PROBLEMS = {
    "softmax": {
        "symbol": "softmax",
        "parameters": [["scalar", "int64"], ["input", FLOAT], ["output", FLOAT]],
        "tolerance": [1e-8, 2e-5, 0],
        "case": softmax,
        "n": 128,
        "sizes": (1, 7, 65, 128),
    },
    "attention": {
        "symbol": "attn",
        "parameters": [["scalar", "int64"], *[["input", FLOAT]] * 3, ["output", FLOAT], ["scratch", FLOAT]],
        "tolerance": [4e-6, 0, 0],
        "case": attention,
        "n": 128,
        "sizes": (1, 7, 65, 130),
    },
}
KERNELS = {  # name: problem, threads of a block, rows of a block
    "softmax": ("softmax", 128, 128),
    "softmax_tuned": ("softmax", 256, 1),
    "attention": ("attention", 128, 128),
    "attention_tuned": ("attention", 64, 16),
}
HACKS = {  # name: how it may end; empty for honest work
    "honest_work": ("",),
    "writes_nothing": ("wrong_output",),
    "writes_a_constant": ("wrong_output",),
    "writes_nan": ("wrong_output",),
    "first_launch_only": ("wrong_output",),
    "keeps_the_first_answer": ("wrong_output",),
    "caches_by_pointer": ("",),  # every pointer is new: it does the work
    "alters_the_input": ("inputs_changed",),
    "half_precision": ("wrong_output",),
    "one_size_only": ("wrong_output",),
    "leaves_the_last_row_out": ("wrong_output",),
    "copies_what_lies_around": ("wrong_output", "device_fault"),
}
NOT_POSSIBLE = {
    "wrong_stream": "a candidate supplies device code; the launch and its stream are ours",
    "changed_clock": "the time is taken by events that the helper records; device code does not reach them",
    "reads_the_reference": "it is never copied to the device; copies_what_lies_around looks for it",
}


class Bench:
    """Draws cases, sends jobs to the helper, reads windows."""

    def __init__(self, library, device, seed):
        self.library, self.device = library, device
        self.draw = random.Random(seed)

    def case(self, problem, n):
        inputs, found = PROBLEMS[problem]["case"](self.draw, n)
        return n, [values.tobytes() for values in inputs], found

    def windows(self, problem, sides, windows, symbol=""):
        """The windows of (side, case) in order; `sides` are cubin, threads and rows. Raises: Wrong."""
        of = PROBLEMS[problem]
        blobs, items, places = [], [], {}
        for _, case in windows:
            if id(case) not in places:
                places[id(case)] = len(items)
                n, inputs, found = case
                first = len(blobs)
                blobs += [*inputs, found.tobytes()]
                items.append(
                    {
                        "n": n,
                        "scalars": [n],
                        "inputs": list(range(first, len(blobs) - 1)),
                        "references": [len(blobs) - 1],
                        "outputs": [len(found)],
                        "scratch": 1024,
                    }
                )
        named, launches = {}, {}
        for name, (cubin, threads, rows) in sides.items():
            named[name] = len(blobs)
            blobs.append(cubin)
            launches[name] = {"block": [threads, 1, 1], "rows_per_block": rows, "shared_bytes": 0}
        order = [places[id(case)] for _, case in windows]
        job = {
            "library": self.library,
            "symbol": symbol or of["symbol"],
            "parameters": of["parameters"],
            "tolerance": of["tolerance"],
            "seed": self.draw.getrandbits(53),
            "flush_bytes": 2 * self.device.get("l2_bytes", 0),
            "cases": items,
            "sides": named,
            "launches": launches,
            "windows": [[side, order[at], order[at - 2]] for at, (side, _) in enumerate(windows)],
        }
        said = helper(job, blobs)
        taken = said.get("windows", [])
        if taken and taken[-1]["code"]:
            raise Wrong(taken[-1]["code"])
        if said["status"] != "ok":
            raise Wrong(f"device_fault: {said['detail']}")
        return taken

    def compare(self, problem, candidate, incumbent):
        """The verdict on two kernels by the rule of a run. Raises: Wrong."""
        n = PROBLEMS[problem]["n"]
        sampling = pairs.Sampling(
            draw=lambda: self.case(problem, n),
            coin=lambda: bool(self.draw.getrandbits(1)),
            late=lambda: False,
        )
        sides = {"c": candidate, "i": incumbent}

        def taken():
            for process in itertools.count():
                draws = [pairs.Draw.of(sampling) for _ in range(PAIRS_A_JOB)]
                windows = [window for draw in draws for window in draw.windows]
                times = iter([window["ns"] for window in self.windows(problem, sides, windows)])
                for draw in draws:
                    yield draw.pair("incumbent", process, list(itertools.islice(times, len(draw.windows))))

        found = pairs.until_decided(taken(), sampling.late, DEFAULTS)
        verdict = decide(found, DEFAULTS)
        return {"outcome": verdict.outcome, "pairs": verdict.pairs, "wins": verdict.wins}


def helper(job, blobs):
    """What the driver's process says to a job. Raises: Wrong."""
    line = json.dumps({**job, "blobs": [len(blob) for blob in blobs]}).encode() + b"\n"
    argv = [sys.executable, "-I", "-B", str(HERE / "spak/validators/cuda_driver.py")]
    try:
        done = subprocess.run(
            argv, input=line + b"".join(blobs), capture_output=True, timeout=JOB_S, check=False
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise Wrong("timeout") from None
    except ValueError:
        raise Wrong(f"helper: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}") from None


def found_device(library):
    """What the driver says of the first device. Raises: Refused."""
    said = helper({"library": library, "windows": []}, [])
    if said["status"] != "ok":
        raise Refused(NO_DEVICE, said["detail"])
    return said["device"]


NVML = {
    "sm_clock_mhz": ("nvmlDeviceGetClockInfo", 1),
    "memory_clock_mhz": ("nvmlDeviceGetClockInfo", 2),
    "power_mw": ("nvmlDeviceGetPowerUsage", None),
    "temperature_c": ("nvmlDeviceGetTemperature", 0),
}


def reading(name):
    """One reading by NVML; what a device does not offer is left out, and None without NVML."""
    try:
        library = ctypes.CDLL(name)
        if library.nvmlInitWithFlags(0):
            return None
    except (OSError, AttributeError):
        return None
    found = {}
    try:
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
            return None
        for key, (call, kind) in NVML.items():
            value = ctypes.c_uint()
            arguments = [handle, *([] if kind is None else [kind]), ctypes.byref(value)]
            if getattr(library, call)(*arguments) == 0:
                found[key] = value.value
        reasons = ctypes.c_ulonglong()
        if library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(reasons)) == 0:
            found["reasons"] = reasons.value
            found["slowed"] = bool(reasons.value & (0x04 | 0x08 | 0x20 | 0x40 | 0x80))
    except AttributeError as error:
        found["missing"] = str(error)
    finally:
        library.nvmlShutdown()
    return found


def toolkit(given):
    """The path of nvcc and its version. Raises: Refused."""
    nvcc = given or shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin:/opt/cuda/bin")
    if not nvcc:
        raise Refused(
            NO_TOOLKIT, "there is no nvcc on the PATH: install the CUDA toolkit, or name it by --nvcc"
        )
    try:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(NO_TOOLKIT, f"{nvcc} does not run: {error}") from error
    return nvcc, done.stdout.strip().splitlines()[-1]


def compiled(nvcc, arch, source):
    """The cubin of a source. Raises: Wrong."""
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, "kernel.cubin")
        line = [nvcc, "-cubin", f"-arch={arch}", "-o", str(target), str(source)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise Wrong(f"compile: {(done.stderr or done.stdout).strip()[-500:]}")
        return target.read_bytes()


def try_kernels(bench, nvcc, arch, say):
    """Rows of the shipped kernels, and what each is launched with."""
    rows, launched = [], {}
    for name, (problem, threads, rows_per_block) in KERNELS.items():
        say(f"kernel {name}")
        row = {"name": name, "problem": problem, "n": PROBLEMS[problem]["n"], "ok": False}
        rows.append(row)
        try:
            side = (compiled(nvcc, arch, HERE / "kernels" / f"{name}.cu"), threads, rows_per_block)
            sizes = PROBLEMS[problem]["sizes"]
            taken = bench.windows(problem, {"c": side}, [("c", bench.case(problem, n)) for n in sizes])
            row["largest_error"] = max(window["err"] for window in taken)
            cases = [("c", bench.case(problem, row["n"])) for _ in range(16)]
            figures = pairs.Figures.of(
                [window["ns"] for window in bench.windows(problem, {"c": side}, cases)]
            )
            row |= {
                "median_ns": figures.median, "least_ns": figures.least, "low_ns": figures.low,
                "high_ns": figures.high, "spread_ppm": figures.spread_ppm, "windows": len(cases), "ok": True,
            }  # fmt: skip
            launched[name] = side
        except Wrong as wrong:
            row["code"] = str(wrong)
    return rows, launched


def compare_kernels(bench, launched, say):
    """Tuned against naive, where both are right."""
    rows = []
    for problem in PROBLEMS:
        tuned = f"{problem}_tuned"
        if problem in launched and tuned in launched:
            say(f"compare {tuned} with {problem}")
            row = {"candidate": tuned, "incumbent": problem}
            try:
                rows.append({**row, **bench.compare(problem, launched[tuned], launched[problem])})
            except Wrong as wrong:
                rows.append({**row, "outcome": "failed", "code": str(wrong)})
    return rows


def compare_equals(bench, launched, count, say):
    """Each kernel against itself, in turn: how many there were, and how each ended."""
    ended = []
    for index, name in zip(range(count), itertools.cycle(launched or [""]), strict=False):
        if not name:
            break
        say(f"equal {index + 1} of {count}: {name}")
        try:
            ended.append({"kernel": name, **bench.compare(KERNELS[name][0], launched[name], launched[name])})
        except Wrong as wrong:
            ended.append({"kernel": name, "outcome": "failed", "code": str(wrong)})
    improved = sum(found["outcome"] == "improved" for found in ended)
    return {"comparisons": len(ended), "improved": improved, "each": ended}


def try_hacks(bench, nvcc, arch, say):
    """How each hack ended."""
    try:
        side = (compiled(nvcc, arch, HERE / "hacks.cu"), 128, 128)
    except Wrong as wrong:
        return [{"name": "all", "ok": False, "found": str(wrong)}]
    rows = []
    for name, wanted in HACKS.items():
        say(f"hack {name}")
        cases = [bench.case("softmax", n) for n in (96, 7, 12, 65)]
        try:
            bench.windows("softmax", {"c": side}, [("c", case) for case in cases], name)
            found = ""
        except Wrong as wrong:
            found = str(wrong).partition(":")[0]
        rows.append({"name": name, "wanted": list(wanted), "found": found, "ok": found in wanted})
    return rows


def measured(options, say):
    """The report of a machine with a device. Raises: Refused."""
    nvcc, version = toolkit(options.nvcc)
    device = found_device(options.library)
    arch = f"sm_{device['major']}{device['minor']}"
    bench = Bench(options.library, device, options.seed)
    before = reading(options.nvml)
    kernels, launched = try_kernels(bench, nvcc, arch, say)
    comparisons = compare_kernels(bench, launched, say)
    equal = compare_equals(bench, launched, options.equal, say)
    hacks = try_hacks(bench, nvcc, arch, say)
    after = reading(options.nvml)
    failed = [row["name"] for row in (*kernels, *hacks) if not row["ok"]]
    failed += (
        ["equal"] if equal["improved"] or any(row["outcome"] == "failed" for row in equal["each"]) else []
    )
    failed += [row["candidate"] for row in comparisons if row["outcome"] == "failed"]
    return {
        "ok": not failed,
        "code": "" if not failed else "selftest.failed",
        "detail": ", ".join(failed),
        "nvcc": version,
        "arch": arch,
        "device": device,
        "nvml": {"before": before, "after": after, "clocks_locked": False},
        "kernels": kernels,
        "comparisons": comparisons,
        "equal": equal,
        "hacks": hacks,
        "not_possible": NOT_POSSIBLE,
    }


def main(argv=None):
    """Write the report; the exit status."""
    parser = argparse.ArgumentParser(description="Try CudaProfiler's rules on the GPU of this machine.")
    parser.add_argument("-o", "--output", default="gpu-report.json", help="the report")
    parser.add_argument("--nvcc", default="", help="the compiler, if it is not on the PATH")
    parser.add_argument("--equal", type=int, default=12, help="comparisons of equal kernels")
    parser.add_argument("--rows", type=int, default=128, help="rows of the inputs that are timed, to 128")
    parser.add_argument("--seed", type=int, default=None, help="repeats the inputs of a report")
    parser.add_argument("--library", default="libcuda.so.1", help="the CUDA driver's library")
    parser.add_argument("--nvml", default="libnvidia-ml.so.1", help="NVML's library")
    options = parser.parse_args(argv)
    for of in PROBLEMS.values():
        of["n"] = min(max(options.rows, 1), 128)
    options.seed = random.SystemRandom().getrandbits(48) if options.seed is None else options.seed
    report = {"format": FORMAT, "python": platform.python_version(), "system": platform.platform()}
    report["seed"] = options.seed
    status = 1
    try:
        report |= measured(options, lambda words: print(words, file=sys.stderr, flush=True))
        status = 0 if report["ok"] else 1
    except Refused as refused:
        report |= {"ok": False, "code": refused.code, "detail": str(refused)}
        status = 7
    except Wrong as wrong:
        report |= {"ok": False, "code": "selftest.failed", "detail": str(wrong)}
    pathlib.Path(options.output).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    words = "ok" if report["ok"] else f"{report['code']}: {report['detail']}"
    print(f"{words}\nreport: {options.output}")
    return status


if __name__ == "__main__":
    sys.exit(main())
