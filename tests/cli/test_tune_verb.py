"""`spak tune`: a kernel of one's own becomes a run, a spec that can be kept, and a drop-in that builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_calls import EXAMPLES, Cli
from process_kit import WAIT_S
from spak import data

pytestmark = pytest.mark.sandbox

PROBLEMS = data.path("specs/problems")
GEMM = (PROBLEMS / "gemm.c").read_text()
SCALE = """
import numpy as np

prototype = "void scale(long n, float k, const float *x, float *y, float *scratch)"
sizes = {"least": 1, "most": 4096, "timed": 2048}
kinds = ["normal"]
tolerance = {"rel": 1e-5, "abs": 1e-6}


def shapes(n):
    return {"x": (n, 16), "y": (n, 16), "scratch": (n,)}


def flops(n):
    return 16 * n


def inputs(random, n, kind):
    return {"k": 2.5, "x": random.standard_normal((n, 16), dtype=np.float32)}


def reference(n, k, x):
    return k * np.sqrt(np.abs(x.astype(np.float64)))
"""
SCALED = """
#include <math.h>
// spak-flags: -O0
void scale(long n, float k, const float *x, float *y, float *scratch) {
    for (long i = 0; i < 16 * n; i++)
        y[i] = k * sqrtf(fabsf(x[i]));
}
"""


def shell(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=WAIT_S, check=False)


def test_a_kernel_becomes_a_drop_in_and_its_run_replays(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(GEMM)
    words = ("tune", "mine.c", "--problem", "gemm", "--evaluations", "3", "--seed", "4", "--against", "numpy")
    done = cli(*words, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["state"] == "succeeded" and found["metrics"]["speedup"] > 1.2
    assert cli("ledger", "verify", found["run"]).code == 0
    assert cli("replay", found["run"]).code == 0
    low, middle, high = found["against"]["ratio"]
    assert found["against"]["library"] == "numpy" and 0 < low <= middle <= high
    spec = tmp_path / "mine_tuner.spak"
    assert cli("check", "--strict", spec.name).code == 0 and cli("fmt", "--check", spec.name).code == 0

    folder = tmp_path / "mine_tuned"
    assert sorted(path.name for path in folder.iterdir()) == found["dropin"]["files"]
    (folder / "libgemm.so").unlink()
    assert shell("sh", "build.sh", folder=folder).stdout == "gemm: 6 of 6 cases are right\n"
    use = (
        "import numpy as np; from gemm import gemm; a = np.arange(9801.0).reshape(99, 99) % 7;"
        "assert (gemm(99, a, a.T) == a @ a.T).all(); gemm(99, a, a[1:])"
    )
    used = shell(sys.executable, "-c", use, folder=folder)
    assert "B has the shape (98, 99); (99, 99) is needed" in used.stderr
    source = folder / "gemm.c"
    source.write_text(source.read_text().replace("sum[r][v];", "sum[r][v] * 1.001f;"))
    wrong = shell("sh", "build.sh", folder=folder)
    assert wrong.returncode == 1 and "numbers are wrong" in wrong.stdout


def test_a_problem_of_ones_own_takes_the_flags_and_its_spec_is_kept(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "scale.c").write_text(SCALED)
    (tmp_path / "scale.py").write_text(SCALE)
    words = ("tune", "scale.c", "--problem", "scale.py")
    done = cli(*words, "--evaluations", "4", "--seed", "1")
    assert done.code == 0, done.err
    assert "no template ships for the problem" in done.err and "cases are right" in done.err
    assert "next: sh scale_tuned/build.sh" in done.err
    spec = tmp_path / "scale_tuner.spak"
    text = spec.read_text()
    assert "-ffast-math" in text
    spec.write_text(text.replace("evaluations: 4", "evaluations: 3").replace("Scale_Tuning", "Mine"))
    again = cli(*words, "--json")
    assert again.code == 0, again.err
    assert "exists and is run as it is" in again.err and "Mine" in spec.read_text()
    assert cli("tune", "scale.c", "--problem", "gemm", "--json").error == "tune.signature"
    assert cli(*words, "--evaluations", "5", "--json").error == "tune.spec"
    spec.write_text(spec.read_text().replace('"scale.py"', '"softmax"'))
    assert cli(*words, "--json").error == "tune.spec"
    (tmp_path / "scale_tuned" / "scale.c").write_text("int x;")
    spec.unlink()
    assert cli(*words, "--json").error == "usage.exists"


def test_a_run_that_something_else_ended_becomes_a_drop_in(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(GEMM)
    words = ("tune", "mine.c", "--problem", "gemm")
    stopped = cli(*words, "--evaluations", "3", "--seed", "4", "--timeout", "0")
    assert stopped.code == 6, stopped.err
    run = stopped.err.split()[-1]
    assert f"next: spak tune mine.c --problem gemm --resume {run}" in stopped.err
    assert not (tmp_path / "mine_tuned").exists()
    assert cli("resume", run, "--no-progress").code == 0
    assert cli("tune", "mine.c", "--problem", "softmax", "--resume", run, "--json").error == "tune.spec"
    assert cli(*words, "--resume", run, "--seed", "4", "--json").error == "usage.arguments"
    done = cli(*words, "--resume", run, "--json")
    assert done.code == 0, done.err
    assert done.json["run"] == run and done.json["dropin"]["test"] == "gemm: 6 of 6 cases are right"
    assert (tmp_path / "mine_tuned" / "libgemm.so").is_file()
    assert cli("tune", "mime.c", *words[2:], "--resume", run, "--json").error == "usage.file"
    assert not (tmp_path / "mime_tuned").exists(), "a name that is mistyped"


def test_several_threads_are_parameters_and_flags_of_the_drop_in(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(GEMM)
    words = ("tune", "mine.c", "--problem", "gemm", "--threads", "4")
    done = cli(*words, "--evaluations", "3", "--seed", "4", "--against", "numpy", "--json")
    assert done.code == 0, done.err
    assert done.json["metrics"]["threads"] == 4 and done.json["against"]["threads"] == 4
    spec = tmp_path / "mine_tuner.spak"
    assert "THREADS: [1, 4]" in spec.read_text() and "threads: 4" in spec.read_text()
    assert cli("check", "--strict", spec.name).code == 0 and cli("fmt", "--check", spec.name).code == 0
    assert "-fopenmp" in (tmp_path / "mine_tuned" / "build.sh").read_text()
    assert cli(*words, "--json").error == "tune.spec"


def test_marked_blocks_are_a_models_to_rewrite(cli: Cli, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "evolve_softmax" / "naive.c", tmp_path / "soft.c")
    answers = str(EXAMPLES / "answers" / "evolve_softmax.jsonl")
    words = ("tune", "soft.c", "--problem", "softmax", "--evaluations", "4")
    done = cli(*words, "--from", answers, "--json")
    assert done.code == 0, done.err
    assert "PROPOSER evolve" in (tmp_path / "soft_tuner.spak").read_text()
    kept = (tmp_path / "soft_tuned" / "softmax.c").read_text()
    assert "-O2 -O3 -march=native" in kept, "built as its candidate was"


@pytest.mark.parametrize(
    ("code", "source", "words"),
    [
        ("tune.problem", GEMM, ("--problem", "gem")),
        ("tune.problem", GEMM, ("--problem", "no/such.py")),
        ("tune.problem", GEMM, ("--problem", "../outside.py")),
        ("tune.compile", "void gemm(long n) { return 1 + ; }", ("--problem", "gemm")),
        ("tune.signature", GEMM.replace("long n", "int n"), ("--problem", "gemm")),
        ("tune.signature", GEMM.replace("gemm", "product"), ("--problem", "gemm")),
        ("tune.wrong", GEMM.replace("+=", "="), ("--problem", "gemm")),
        ("tune.threads", (PROBLEMS / "softmax.c").read_text(), ("--problem", "softmax", "--threads", "2")),
        ("tune.against", GEMM, ("--problem", "gemm", "--against", "fastlib")),
        ("unavailable.library", GEMM, ("--problem", "gemm", "--against", "torch")),
        ("usage.arguments", GEMM, ("--problem", "gemm", "--backend", "manual")),
        ("usage.file", None, ("--problem", "gemm")),
    ],
)
def test_what_cannot_be_tuned_is_refused_and_nothing_is_written(
    cli: Cli, tmp_path: Path, code: str, source: str | None, words: tuple[str, ...]
) -> None:
    if source is not None:
        (tmp_path / "mine.c").write_text(source)
    before = sorted(tmp_path.iterdir())
    done = cli("tune", "mine.c", *words, "--json")
    assert done.error == code, done.err
    assert done.code == (7 if code.startswith("unavailable") else 2)
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_wrong_is_said_of_the_file_that_was_given(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("\nvoid gemm(long n) { return 1 + ; }")
    assert "does not compile: mine.c:2" in cli("tune", "mine.c", "--problem", "gemm").err


def test_the_name_of_the_kernel_makes_names_of_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "my kernel.c").write_text(GEMM)
    assert cli("tune", "my kernel.c", "--problem", "gemm", "--json").error == "usage.arguments"
