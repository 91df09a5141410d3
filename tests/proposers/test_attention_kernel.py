"""The attention kernel of the examples: every point of its space that is drawn compiles and is right."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spak.proposers import space as spaces
from spak.tools.instantiate import MARK, render

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "specs" / "examples" / "attention_tuner"
CHECK = Path(__file__).parent / "attention_check.py"
SPACE: Mapping[str, Any] = {
    "LAYOUT": ["PACKED", "DOT"],
    "ORDER": ["ROWS_FIRST", "KEYS_FIRST"],
    "SOFTMAX": ["FULL", "ONLINE"],
    "ROWS": [1, 2, 4, 6, 8],
    "TILE": [16, 32, 48, 64, 96, 128, 192, 256],
    "WIDTH": [4, 8, 16],
    "SCOREVECS": [1, 2, 3],
    "UNROLL": [1, 2, 4, 8],
    "OUTVECS": [1, 2, 4, 8],
    "EXP": ["EXPF", "P5", "P7"],
    "PRESCALE": [0, 1],
    "FLAGS": ["-O2 -march=native", "-O3 -march=native", "-O3 -march=native -ffast-math", "-O2"],
    "require": [
        "OUTVECS * WIDTH <= 64",
        "ORDER == 'ROWS_FIRST' or SOFTMAX == 'ONLINE'",
        "LAYOUT == 'DOT' or TILE % (SCOREVECS * WIDTH) == 0",
        "LAYOUT == 'PACKED' or TILE % SCOREVECS == 0",
    ],
}
PARSED = spaces.parse(SPACE)


def drawn(count: int) -> list[int]:
    rng = random.Random("attention")
    found: list[int] = []
    while len(found) < count:
        number = PARSED.untried(rng, frozenset(found))
        assert number is not None
        found.append(number)
    return found


def build(source: bytes, folder: Path) -> Path:
    """Compile as the `cc` tool does, with the flags of the first line."""
    head = source.split(b"\n", 1)[0].decode()
    flags = head.removeprefix(MARK).split() if head.startswith(MARK) else ["-O2"]
    file, library = folder / "kernel.c", folder / "kernel.so"
    file.write_bytes(source)
    options = ["-Wall", "-Wextra", "-Wno-psabi", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, *flags, "-o", library, file, "-lm"], check=True)
    return library


def check(library: Path, seed: int) -> float:
    done = subprocess.run(
        [sys.executable, CHECK, library, str(seed)],
        env={"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return float(done.stdout)


def test_the_space_is_large() -> None:
    assert PARSED.size == 593_280


@pytest.mark.parametrize("number", drawn(18))
def test_a_point_is_right(number: int, tmp_path: Path) -> None:
    template = (SOURCES / "tiled.c").read_bytes()
    assert check(build(render(template, PARSED.point(number)), tmp_path), number % 1000) <= 4e-6


@pytest.mark.parametrize("name", ["naive.c", "tiled.c"])
def test_as_it_lies_without_vectors_of_the_machine(name: str, tmp_path: Path) -> None:
    assert check(build((SOURCES / name).read_bytes(), tmp_path), 1) <= 4e-6


def test_the_check_can_fail(tmp_path: Path) -> None:
    source = (SOURCES / "naive.c").read_bytes().replace(b"dot / 8.0f", b"dot / 8.001f")
    with pytest.raises(AssertionError, match="error"):
        check(build(source, tmp_path), 1)


@pytest.mark.parametrize(
    "params",
    [
        {"LAYOUT": "packed"},
        {"ORDER": "KEYS_FIRST"},
        {"TILE": 64, "SCOREVECS": 3},
        {"WIDTH": 32},
        {"UNROLL": 3},
        {"OUTVECS": 16},
        {"EXP": "P6"},
        {"ROWS": 0},
    ],
)
def test_an_invalid_point_does_not_compile(params: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "kernel.c"
    file.write_bytes(render((SOURCES / "tiled.c").read_bytes(), params))
    done = subprocess.run(["gcc", "-fsyntax-only", file], capture_output=True, text=True)
    assert done.returncode != 0 and "#error" in done.stderr


def test_every_macro_is_a_parameter() -> None:
    text = (SOURCES / "tiled.c").read_text()
    assert set(re.findall(r"^#ifndef (\w+)$", text, re.MULTILINE)) == (
        set(PARSED.choices) - {"FLAGS"} | {"HEADS", "CAUSAL", "THREADS"}
    )  # these say which problem it is, and are added where it is tuned for several cores
    assert "#include" not in text
