"""Small projects with a mistake, and searches for its repair in the real sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from spak.ports import PlanRequest, Search
from spak.proposers.repair.checks import Verdict
from spak.proposers.repair.search import Found, Options, find
from spak.proposers.repair.suspects import Suspects
from validator_calls import call

CLAMP = '''"""Numbers."""


def clamp(value, low, high):
    """The value, not below low and not above high."""
    if value < low:
        return low
    if value < high:  # the mistake
        return high
    return value
'''
RIGHT = CLAMP.replace("value < high", "value > high").replace("  # the mistake", "")
CASES = [
    (5, 0, 10, 5),
    (-1, 0, 10, 0),
    (11, 0, 10, 10),
    (3, 3, 3, 3),
    (0, 0, 5, 0),
    (4, 0, 5, 4),
    (7, 1, 9, 7),
    (-5, -3, 3, -3),
]
TESTS = f"""import pytest
from numbers_ import clamp


@pytest.mark.parametrize("value,low,high,wanted", {CASES})
def test_clamp(value, low, high, wanted):
    assert clamp(value, low, high) == wanted
"""

WRONG = 'def area(w, h):\n    return "no"\n'
AREA = """from mod import area


def test_a():
    assert area(2, 3) == 6


def test_b():
    assert area(0, 3) == 0


def test_c():
    assert area(1, 1) == 1


def test_d():
    assert callable(area)
"""


def project(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A folder with these files; with the planted mistake of `clamp` and its tests where none are named."""
    for name, text in (files or {"numbers_.py": CLAMP, "test_numbers.py": TESTS}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def searched(folder: Path, seed: int = 0, **options: Any) -> Found:
    """The end of a search in the folder."""
    return find(replace(call(folder, {}), seed=seed), Options(tests=(".",), **options))


def refused(found: Found) -> str:
    """The code of a refusal; empty for a patch."""
    return found.refusal.code if found.refusal is not None else ""


def bad(verdicts: tuple[Verdict, ...]) -> list[str]:
    """The checks that are not ok."""
    return [one.name for one in verdicts if not one.ok]


def suspects(folder: Path, **options: Any) -> Search:
    """What the proposer `suspects` gives in the folder."""
    request = PlanRequest("p", "t", "s", 0, 0, options, {}, {})
    return Suspects().search(request, call(folder, {}))
