"""The templates on Arm, by GNU vectors: built by a cross compiler, run by qemu, right on the problem's cases.

No figure comes of it: an emulator says nothing about speed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from process_kit import WAIT_S
from spak import config, data
from spak.files.scratch import Scratch
from spak.tuning import dropin
from spak.tuning.kernel import Facts, Place, session
from spak.validators.problems import shipped

pytestmark = pytest.mark.sandbox

COMPILER, PACKAGE = "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
FOLDER = data.path("specs/problems")
POINTS: dict[str, list[str]] = {
    "attention": ["-DWIDTH=4 -DROWS=4 -DTILE=48 -DSCOREVECS=3", "-DWIDTH=8 -DLAYOUT=DOT -DSOFTMAX=ONLINE"],
    "attention_causal": ["-DHEADS=8 -DCAUSAL=1 -DWIDTH=4 -DORDER=KEYS_FIRST -DSOFTMAX=ONLINE -DEXP=P7"],
    "attention_heads": ["-DHEADS=8 -DWIDTH=4 -DTHREADS=2 -fopenmp"],
    "gemm": ["-DWIDTH=4 -DVECTORS=3", "-DWIDTH=8 -DORDER=ACROSS"],
    "dot_int8": ["", "-DPRODUCT=NARROW -DWIDTH=16"],
}
"""Points of spaces besides the defaults, which every template is tried with."""


@pytest.fixture
def place() -> Iterator[Place]:
    settings = config.settings()
    with Scratch("test") as folder:
        folder.chmod(0o755)
        yield Place(config.box(settings), config.toolchain(), settings.limits, folder)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_template_is_right_on_arm(name: str, place: Place, tmp_path: Path) -> None:
    needs.program(COMPILER, PACKAGE)
    needs.program("qemu-aarch64", "qemu-user")
    with session(name, shipped()[name], place) as problem:
        found = [case for case in dropin.cases(problem) if case.n < problem.timed]
        shapes = {case.n: dict(problem.shapes(case.n)) for case in found}
        facts = Facts.of(name, shipped()[name], problem)
    source = (FOLDER / f"{name}_template.c").read_bytes()
    made = dropin.files(source, facts, found, shapes, "a test", COMPILER, [])
    for file, content in made.items():
        (tmp_path / file).write_bytes(content)
    symbol = facts.prototype.symbol
    for point in POINTS.get(name, [""]):
        line = [COMPILER, "-O2", "-static", *point.split(), "-o", "kernel", f"test_{symbol}.c", f"{symbol}.c"]
        subprocess.run([*line, "-lm"], cwd=tmp_path, check=True)
        emulated = ["qemu-aarch64", "./kernel", "cases.bin"]
        done = subprocess.run(
            emulated, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, (point, done.stdout, done.stderr)
        assert done.stdout == f"{symbol}: {len(found)} of {len(found)} cases are right\n"
