"""Each problem that ships: its naive kernel as a drop-in that builds, beside what numpy offers for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from process_kit import WAIT_S
from spak import config, data
from spak.errors import RunError
from spak.files.scratch import Scratch
from spak.tuning import against, dropin
from spak.tuning.kernel import Facts, Place, session
from spak.validators.problems import Case, shipped

pytestmark = pytest.mark.sandbox

USE = """
import sys, numpy as np
sys.path.insert(0, ".")
module = __import__(sys.argv[1])
problem = {}
exec(open(sys.argv[1] + "_problem.py").read(), problem)
given = problem["inputs"](np.random.default_rng(3), 9, problem["kinds"][0])
wanted = problem["reference"](n=9, **given)
found = getattr(module, sys.argv[1])(n=9, **given)
if not isinstance(wanted, dict):
    wanted, found = {"": wanted}, (found,)
assert all(np.allclose(one, other, 1e-4, 1e-4) for one, other in zip(found, wanted.values(), strict=True))
"""


@pytest.fixture
def place() -> Iterator[Place]:
    settings = config.settings()
    with Scratch("test") as folder:
        folder.chmod(0o755)
        yield Place(config.box(settings), config.toolchain(), settings.limits, folder)


def known(name: str, place: Place) -> tuple[Facts, list[Case], dict[int, dict[str, tuple[int, ...]]]]:
    with session(name, shipped()[name], place) as problem:
        found = dropin.cases(problem)
        shapes = {case.n: dict(problem.shapes(case.n)) for case in found}
        return Facts.of(name, shipped()[name], problem), found, shapes


@pytest.mark.parametrize("name", sorted(shipped()))
def test_its_naive_kernel_is_a_drop_in_and_numpy_does_the_same(
    name: str, place: Place, tmp_path: Path
) -> None:
    source = (data.path("specs/problems") / f"{name}.c").read_bytes()
    facts, found, shapes = known(name, place)
    made = dropin.files(source, facts, found, shapes, "a test", "gcc", ["-fno-math-errno"])
    said, library = dropin.tried(made, facts, place)
    assert said == f"{facts.prototype.symbol}: {len(found)} of {len(found)} cases are right"
    for file, content in {**made, f"lib{facts.prototype.symbol}.so": library}.items():
        (tmp_path / file).write_bytes(content)
    words = [sys.executable, "-c", USE, facts.prototype.symbol]
    used = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert used.returncode == 0, used.stderr
    call = against.known("numpy", name, place.toolchain)
    compared = against.compared(library, facts, call, place, pairs=1)
    assert compared.wrong == {} and compared.low > 0


def test_a_wrong_kernel_is_neither_handed_over_nor_compared(place: Place) -> None:
    source = (data.path("specs/problems") / "softmax.c").read_bytes().replace(b"/=", b"*=")
    facts, found, shapes = known("softmax", place)
    made = dropin.files(source, facts, found, shapes, "a test", "gcc", [])
    with pytest.raises(RunError) as caught:
        dropin.tried(made, facts, place)
    assert caught.value.code == "tune.dropin" and "numbers are wrong" in caught.value.message
    target = place.folder / "wrong.so"
    words = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", target, "-lm"]
    subprocess.run(words, input=source, check=True)
    call = against.known("numpy", "softmax", place.toolchain)
    with pytest.raises(RunError) as other:
        against.compared(target.read_bytes(), facts, call, place, pairs=1)
    assert other.value.code == "tune.compare" and "the kernel is not right" in other.value.message


def test_integers_and_ulps_are_judged_as_the_tolerance_says(place: Place) -> None:
    """The bounds of the C test: exact integers, and steps of the output's type."""
    from spak.validators.problems import Tolerance

    facts, found, shapes = known("reduction", place)
    source = (data.path("specs/problems") / "reduction.c").read_bytes()
    near = replace(facts, tolerance=Tolerance(ulp=1e4))
    made = dropin.files(source, near, found, shapes, "a test", "gcc", [])
    assert "nextafterf(" in made["test_reduction.c"].decode()
    assert "cases are right" in dropin.tried(made, near, place)[0]
