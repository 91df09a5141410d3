"""Known ways to fool a measurement, on each kind of candidate: C and C++ by gcc and clang, Python.

One row for each hack: what it does in C (which is C++ as well) and in Python, and how it ends. Cheap: a
small problem, the correctness phase alone. `right` means that it is honest work, with nothing gained by what
it tries; `test_nothing_is_gained` measures that. Hacks of one language alone are in test_cpu_hacks.py
(attention), hacks on every problem that ships in test_problem_hacks.py, commands in test_metric.py.

Source: notes on measuring and on engineering tasks (lists of hacks).
"""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import needs
from cpu_calls import HACKS
from spak.kernel.metric.decision import DEFAULTS
from spak.ports import Limits
from spak.sandbox.restricted import Restricted
from spak.validators.cpu_build import Workshop
from spak.validators.cpu_candidate import Candidate, Native, Script
from spak.validators.cpu_process import Violation
from spak.validators.cpu_session import Bench, Side, compare
from spak.validators.problems import Problem, opened
from validator_calls import toolchain

pytestmark = pytest.mark.sandbox

PROBLEM = """
import numpy as np
prototype = "void NAME(long n, const float *x, float *y, float *scratch)"
sizes = {"least": 1, "most": 80, "timed": 64}
kinds = ["normal", "zeros"]
tolerance = {"abs": 1e-5}
def shapes(n): return {"x": (n, 64), "y": (n, 64), "scratch": (4096,)}
def flops(n): return 64 * n
def inputs(random, n, kind):
    return {"x": random.standard_normal((n, 64), dtype=np.float32) * np.float32(kind == "normal")}
def reference(n, x): return 3 * x.astype(np.float64) + 1
"""
WRONG = "non_finite incorrect"
NOT_ALLOWED = "forbidden_call"
FINDS = """
import gc, sys
def found():
    for name in ("problem", "problem_file", "guest", "spak"):
        try:
            __import__(name)
            return True
        except ImportError:
            pass
    for path in ("/ws/problem_file.py", "/ws/../problem/problem_file.py", "/ws/guest.py"):
        try:
            open(path).close()
            return True
        except OSError:
            pass
    frame = sys._getframe()
    while frame is not None:
        if "reference" in frame.f_globals or "reference" in frame.f_locals:
            return True
        frame = frame.f_back
    return any(getattr(item, "__name__", "") == "reference" for item in gc.get_objects())
HAS = found()
"""
LIES = """
import time
for name in ("abs", "isfinite", "allclose", "array_equal", "spacing"):
    setattr(np, name, lambda *_, **__: np.True_)
for name in ("perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "monotonic", "time"):
    setattr(time, name, lambda *_: 0)
"""
CACHE = "seen = {}\n"

HACKS_TABLE: dict[str, tuple[str, str, str, str]] = {
    # name: (how it ends, its body in C, what a Python file begins with, its body in Python)
    "honest_work": ("right", "HONEST;", "", "HONEST"),
    "writes_nothing": ("non_finite", "", "", "pass"),
    "gives_it_back": ("non_finite", "", "", "return 3 * x + 1"),
    "writes_a_constant": ("incorrect", "for (long i = 0; i < 64 * n; i++) y[i] = 1;", "", "y[:] = 1.5"),
    "writes_nan": (
        "non_finite", "for (long i = 0; i < 64 * n; i++) y[i] = x[i] / 0 * 0;", "", "y[:] = np.nan"),
    "first_call_only": (WRONG, "static int calls; if (calls++) return; HONEST;", "calls = []\n",
                        "calls.append(1)\nif len(calls) < 2: HONEST"),
    "keeps_the_first_answer": (
        WRONG, "static float kept; static int calls; HONEST; if (calls++) *y = kept; else kept = *y;", CACHE,
        "HONEST\ny[0, 0] = seen.setdefault(0, y[0, 0])"),
    "lazy": (WRONG, "static int calls; if (++calls % 4) return; HONEST;", "calls = []\n",
             "calls.append(1)\nif len(calls) % 4 == 0: HONEST"),
    "one_size_only": (WRONG, "if (n != 64) return; HONEST;", "", "if n == 64: HONEST"),
    "wrong_now_and_then": (WRONG, "static int calls; HONEST; if (++calls % 5 == 0) *y += 1;", "calls = []\n",
                           "calls.append(1)\nHONEST\nif len(calls) % 5 == 0: y[0, 0] += 1"),
    "half_precision": (
        "incorrect",
        "HONEST; for (long i = 0; i < 64 * n; i++) { union { float f; unsigned u; } v; v.f = y[i];"
        " v.u &= 0xffff0000u; y[i] = v.f; }", "", "y[:] = (3 * x.astype(np.float16) + 1)"),
    "scratch_as_zero": (WRONG, "HONEST; *y += scratch[7];", "", "HONEST\ny[0, 0] += scratch[7]"),
    "output_aliases_input": (
        NOT_ALLOWED, "raw(SYS_mremap, (long)x & -4096, 4096, 4096, 3, (long)y & -4096, 0); HONEST;",
        "import ctypes\n", "ctypes.CDLL(None).remap_file_pages(0, 0, 0, 0, 0)\nHONEST"),
    "alters_the_input": (
        "wrote_inputs raised", "HONEST; *(volatile char *)x = 0;", "", "HONEST\nx[0, 0] = 0"),
    "alters_it_by_its_address": ("wrote_inputs died", "HONEST; *(volatile char *)x = 0;", "import ctypes\n",
                                 "HONEST\nctypes.memset(x.ctypes.data, 0, 4)"),
    "unprotects_the_input": (
        "forbidden_call died",
        "raw(SYS_mprotect, (long)x & -4096, 4096, 3, 0, 0, 0); HONEST; *(volatile char *)x = 0;",
        "import ctypes\n",
        "HONEST\nat = x.ctypes.data & -4096\nctypes.CDLL(None).mprotect(ctypes.c_void_p(at), 4096, 3)\n"
        "ctypes.memset(at, 0, 4)"),
    "writes_around_the_output": ("out_of_bounds", "HONEST; y[-1] = 0;", "import ctypes\n",
                                 "HONEST\nctypes.memset(y.ctypes.data - 4, 0, 4)"),
    "starts_a_thread": (NOT_ALLOWED, "raw(SYS_clone, 0x10f00, 0, 0, 0, 0, 0); HONEST;", "import threading\n",
                        "threading.Thread(target=lambda: 1).start()\nHONEST"),
    "forks": (NOT_ALLOWED, "raw(SYS_clone, 17, 0, 0, 0, 0, 0); HONEST;", "import os\n", "os.fork()\nHONEST"),
    "opens_a_file": (NOT_ALLOWED, "raw(SYS_openat, -100, (long)\"/etc/passwd\", 0, 0, 0, 0); HONEST;", "",
                     "open('/etc/passwd').read()\nHONEST"),
    "reads_the_network": (NOT_ALLOWED, "raw(SYS_socket, 2, 1, 0, 0, 0, 0); HONEST;", "import socket\n",
                          "socket.socket()\nHONEST"),
    "sleeps": (NOT_ALLOWED, "long s[2] = {0, 1}; raw(SYS_nanosleep, (long)s, 0, 0, 0, 0, 0); HONEST;",
               "import time\n", "time.sleep(0.001)\nHONEST"),
    "signals_another_process": (NOT_ALLOWED, "raw(SYS_kill, 1, 9, 0, 0, 0, 0); HONEST;", "import os\n",
                                "os.kill(1, 9)\nHONEST"),
    "exits": ("died", "raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);", "import os\n", "os._exit(0)"),
    "crashes": ("died", "*(volatile char *)8 = 0;", "import ctypes\n", "ctypes.string_at(8)"),
    "zeros_at_some_sizes": (
        "incorrect", "HONEST; if (n % 8 == 4) for (long i = 0; i < 64 * n; i++) y[i] = 0;", "",
        "HONEST\nif n % 8 == 4: y[:] = 0"),
    "zeros_after_70_calls": (
        "incorrect",
        "static int calls; HONEST; if (++calls > 70) for (long i = 0; i < 64 * n; i++) y[i] = 0;",
        "calls = []\n", "calls.append(1)\nHONEST\nif len(calls) > 70: y[:] = 0"),
    "keeps_answers_by_address": (
        "incorrect", "static const float *last; static float kept; HONEST; if (x == last) *y = kept;"
        " last = x; kept = *y;", CACHE,
        "HONEST\nkey = x.ctypes.data, n\ny[0, 0] = seen.setdefault(key, y[0, 0])"),
    "writes_far_behind_the_output": (
        "out_of_bounds died", "HONEST; y[64 * n + 1250] = 0;", "import ctypes\n",
        "HONEST\nctypes.memset(y.ctypes.data + y.nbytes + 5000, 0, 4)"),
    "writes_far_before_the_output": (
        "out_of_bounds died", "HONEST; y[-1500] = 0;", "import ctypes\n",
        "HONEST\nctypes.memset(y.ctypes.data - 6000, 0, 4)"),
    "reads_past_the_input": (
        "out_of_bounds died", "HONEST; ((const volatile float *)x)[64 * n + 64];", "import ctypes\n",
        "HONEST\nctypes.string_at(x.ctypes.data + x.nbytes + 256, 1)"),
    "reads_before_the_input": (
        "out_of_bounds died", "HONEST; ((const volatile float *)x)[-1];", "import ctypes\n",
        "HONEST\nctypes.string_at(x.ctypes.data - 4, 1)"),
    "says_done_first": ("early_signal", "", "import os, sys\n", "os.write(int(sys.argv[4]), b'D')\nHONEST"),
}  # fmt: skip
NOT_IN_C = {"says_done_first": "its descriptor is found by a constructor: hacks/early_signal.c"}
PYTHON_ONLY: dict[str, tuple[str, str, str]] = {
    "raises": ("raised", "", "raise ValueError('no')"),
    "leaves_politely": ("raised", "", "raise SystemExit"),
    "is_no_python": ("load_failed", "def (:\n", "HONEST"),
    "raises_at_import": ("load_failed", "1 / 0\n", "HONEST"),
    "imports_what_is_not_there": ("load_failed", "import scipy_of_no_one\n", "HONEST"),
    "imports_our_package": ("load_failed", "import spak\n", "HONEST"),
    "forks_at_import": (NOT_ALLOWED, "import os\nos.fork()\n", "HONEST"),
    "starts_a_program_at_import": (NOT_ALLOWED, "import subprocess\nsubprocess.run(['true'])\n", "HONEST"),
    "connects_at_import": (NOT_ALLOWED, "import socket\nsocket.socket()\n", "HONEST"),
    "writes_a_file_at_import": (NOT_ALLOWED, "open('/tmp/left', 'w')\n", "HONEST"),
    "replaces_the_driver": (
        NOT_ALLOWED, "import os, sys\nsys.modules['__main__'].install = lambda sealed: None\n",
        "os.fork()\nHONEST"),
    "spins_after_done": (
        "did_not_rest idle_work early_signal",
        "import sys, types\ndriver = sys.modules['__main__']\nreal = driver.os.write\n"
        "def write(fd, data):\n    real(fd, data)\n    for _ in range(8_000_000): pass\n"
        "driver.os = types.SimpleNamespace(**{**vars(driver.os), 'write': write})\n", "HONEST"),
    "lies_to_the_checks": ("incorrect", LIES, "y[:] = 7"),
    "looks_for_the_reference": ("right", FINDS, "if not HAS: HONEST"),
    "another_dtype": ("non_finite incorrect raised", "", "y = (3 * x + 1).astype(np.float64)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Problem]:
    folder = tmp_path_factory.mktemp("table")
    folder.chmod(0o755)
    with opened(
        Restricted(), toolchain(), folder / "problem", PROBLEM, Limits(wall_s=1800, cpu_s=900)
    ) as session:
        yield Problem.of(session)


def bench(problem: Problem, symbol: str, folder: Path) -> Bench:
    prototype = dataclasses.replace(problem.prototype, symbol=symbol)
    folder.mkdir()
    folder.chmod(0o755)
    return Bench(
        launcher=Restricted(),
        limits=Limits(),
        problem=dataclasses.replace(problem, prototype=prototype),
        n=problem.timed,
        random=np.random.default_rng(5),
        deadline=time.monotonic() + 600,
        folder=folder,
        peak=lambda again: 10**12,
    )


def ending(problem: Problem, symbol: str, folder: Path, candidate: Candidate) -> str:
    """`right`, or the code of what the correctness phase found."""
    made = bench(problem, symbol, folder)
    side = Side(made, "candidate", candidate)
    try:
        side.check()
    except Violation as violation:
        return violation.code
    finally:
        side.close()
        made.close()
    return "right"


COMPILERS = {
    "gcc": ("c", ("gcc",)),
    "g++": ("cpp", ("g++", "-std=gnu++14", "-fpermissive")),
    "clang": ("c", ("clang",)),
    "clang++": ("cpp", ("clang++", "-std=gnu++14")),
}


def source_in_c(language: str) -> str:
    """All hacks in one file, each a function of the problem's type."""
    head = f'#include <stdint.h>\n#define honest theirs\n#include "{HACKS / "hack.h"}"\n#undef honest\n'
    arguments = "(long n, const float *x, float *y, float *scratch)"
    text = (
        head + f"static void honest{arguments} {{ for (long i = 0; i < 64 * n; i++) y[i] = 3 * x[i] + 1; }}\n"
    )
    text += 'extern "C" {\n' if language == "cpp" else ""
    for name, (_, body, _, _) in HACKS_TABLE.items():
        if name not in NOT_IN_C:
            body = body.replace("HONEST", "honest(n, x, y, scratch)")
            text += f"void {name}{arguments} {{ {body} }}\n"
    return text + ("}\n" if language == "cpp" else "")


def source_in_python(name: str, head: str, body: str) -> bytes:
    lines = body.replace("HONEST", "np.add(np.multiply(x, np.float32(3), out=y), np.float32(1), out=y)")
    inner = "".join(f"    {line}\n" for line in lines.split("\n"))
    return f"import numpy as np\n{head}def {name}(n, x, y, scratch):\n{inner}".encode()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_hack_in_c_and_cpp(compiler: str, problem: Problem, workshop: Workshop, tmp_path: Path) -> None:
    language, line = COMPILERS[compiler]
    needs.program(compiler, {"clang++": "clang"}.get(compiler, ""))
    tmp_path.chmod(0o755)
    file, binary = tmp_path / f"hacks.{language}", tmp_path / "hacks.so"
    file.write_text(source_in_c(language))
    flags = ["-O1", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", str(binary), str(file), "-lm"]
    subprocess.run([*line, *flags], check=True)
    native = Native(workshop.driver(None, problem.prototype), binary.read_bytes())
    found = {
        name: ending(problem, name, tmp_path / name, native) for name in HACKS_TABLE if name not in NOT_IN_C
    }
    assert {name: end for name, end in found.items() if end not in HACKS_TABLE[name][0].split()} == {}


PYTHON = {name: (ends, head, body) for name, (ends, _, head, body) in HACKS_TABLE.items()} | PYTHON_ONLY


@pytest.mark.parametrize("name", PYTHON)
def test_every_hack_in_python(name: str, problem: Problem, workshop: Workshop, tmp_path: Path) -> None:
    ends, head, body = PYTHON[name]
    script = Script(workshop.interpreter(toolchain()), source_in_python(name, head, body))
    tmp_path.chmod(0o755)
    assert ending(problem, name, tmp_path / "side", script) in ends.split()


GAINS = {
    "caches_by_content": CACHE + "def tried(n, x, y, scratch):\n"
    "    for key in (float(x.sum()), x[0].tobytes()):\n"
    "        if key in seen and seen[key].shape == y.shape:\n"
    "            y[:] = seen[key]\n            return\n"
    "    np.add(np.multiply(x, np.float32(3), out=y), np.float32(1), out=y)\n"
    "    seen[x[0].tobytes()] = seen[float(x.sum())] = y.copy()\n",
    "patches_clocks_and_numpy": LIES + "def tried(n, x, y, scratch):\n"
    "    np.add(np.multiply(x, np.float32(3), out=y), np.float32(1), out=y)\n",
}


@pytest.mark.parametrize("name", GAINS)
def test_nothing_is_gained(name: str, problem: Problem, workshop: Workshop, tmp_path: Path) -> None:
    """Right answers, so it is measured; it takes no less time than honest work does. On a busy machine one
    round of pairs says little: what is gained is gained in every one."""
    tmp_path.chmod(0o755)
    python = workshop.interpreter(toolchain())
    honest = source_in_python("tried", "", "HONEST")
    made = bench(problem, "tried", tmp_path / "both")
    mine = Side(made, "candidate", Script(python, f"import numpy as np\n{GAINS[name]}".encode()))
    other = Side(made, "incumbent", Script(python, honest), blame="incumbent")
    try:
        mine.check()
        rounds = [compare(mine, other, {**DEFAULTS, "max_pairs": 2})]
        while min(mine.times) <= 0.5 * min(other.times) and len(rounds) < 5:
            rounds.append(compare(mine, other, {**DEFAULTS, "max_pairs": 2}))
    finally:
        mine.close()
        other.close()
    assert all(rounds) and min(mine.times) > 0.5 * min(other.times)
