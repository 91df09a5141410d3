"""Which tests a search may see, and which lines it suspects.

Takes what the guest said of each test; gives a Split, drawn by the seed so that at most 60 % of the tests
that pass are visible, and the suspicion of each line: Ochiai over the visible tests, in thousandths. `table`
and `limits` are what the guest is given of a function and of time. Pure.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

from spak.proposers.repair.functions import Function

Outcome = Literal["pass", "fail", "flaky", "skip"]
FIRST_S, TIMES, SECOND_S = 0.05, 10, 1.5
"""The short limit: at least so long, and so many times the slowest passing test; and the long one."""
STEP = 10
"""Suspicion is rounded to this many thousandths, so that nearly equal lines keep the order of the text."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A test as it ran before any change."""

    name: str
    outcome: Outcome
    said: str
    cpu_ms: float
    lines: Mapping[str, frozenset[int]]

    @property
    def file(self) -> str:
        """The file that it is written in."""
        return self.name.partition("::")[0]

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Ran:
        """A test from what the guest said of it."""
        runs = ["fail" if run in ("late", "died") else run for run in message["runs"]]
        outcome: Outcome = "skip"
        if len(set(runs)) > 1:
            outcome = "flaky"
        elif runs[0] in ("pass", "fail"):
            outcome = "pass" if runs[0] == "pass" else "fail"
        lines = {path: frozenset(found) for path, found in message["lines"].items()}
        said = str(message["said"]) or ("it does not end in time" if "late" in message["runs"] else "")
        return cls(message["test"], outcome, said, float(message["cpu_ms"]), lines)

    def touches(self, path: str, first: int, last: int) -> bool:
        """Whether it ran a line of a function's body."""
        return any(first < line <= last or first == last == line for line in self.lines.get(path, ()))


@dataclass(frozen=True, slots=True)
class Split:
    """What a search sees, and what only its result is checked with."""

    visible: tuple[Ran, ...]
    hidden: tuple[Ran, ...]


def split(tests: Iterable[Ran], asked: Sequence[str], percent: int, seed: int, answered: str = "") -> Split:
    """Tests drawn in each file, passing and failing apart; a failing test that was asked for is visible, and
    at least one failing test is. Those of the file `answered` are all visible, and change nothing else."""
    visible: list[Ran] = []
    hidden: list[Ran] = []
    groups: dict[tuple[str, str], list[Ran]] = {}
    for test in tests:
        if answered and test.file == answered:
            visible.append(test)
            continue
        groups.setdefault((test.outcome, "" if test.outcome == "fail" else test.file), []).append(test)
    for (outcome, _), group in sorted(groups.items()):
        drawn = sorted(group, key=lambda one: (one.name not in asked, _drawn(seed, one.name)))
        count = len(drawn) * percent // 100
        if outcome == "fail":
            count = max(count, 1, sum(one.name in asked for one in drawn))
        visible += drawn[:count]
        hidden += drawn[count:]
    return Split(tuple(visible), tuple(hidden))


def _drawn(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()


def suspicion(tests: Sequence[Ran]) -> dict[str, dict[int, int]]:
    """Thousandths by file and line: how well running the line goes with failing (Ochiai)."""
    failing = [test for test in tests if test.outcome == "fail"]
    passing = [test for test in tests if test.outcome == "pass"]
    bad, good = _counts(failing), _counts(passing)
    found: dict[str, dict[int, int]] = {}
    for (path, line), count in sorted(bad.items()):
        ran = count + good.get((path, line), 0)
        exact = isqrt(count * count * 1_000_000 // (len(failing) * ran))
        found.setdefault(path, {})[line] = (exact + STEP // 2) // STEP * STEP
    return found


def _counts(tests: Sequence[Ran]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for test in tests:
        for path, lines in test.lines.items():
            for line in lines:
                found[path, line] = found.get((path, line), 0) + 1
    return found


def editable(path: str, text: str, test_files: Iterable[str]) -> str:
    """Empty where a repair may change the file, else why not: a test, a configuration, a generated file."""
    name, parts = posixpath.basename(path), path.split("/")
    if (
        path in test_files
        or name.startswith("test_")
        or name.endswith("_test.py")
        or {"tests", "test"} & set(parts[:-1])
    ):
        return "a test"
    if name in ("conftest.py", "setup.py", "noxfile.py", "sitecustomize.py", "usercustomize.py"):
        return "a configuration"
    if not name.endswith(".py"):
        return "not Python"
    head = "\n".join(text.split("\n")[:5]).lower()
    return "a generated file" if "generated" in head or "do not edit" in head else ""


def table(function: Function, parts: Split) -> dict[str, Any]:
    """What the guest knows of a function: its place and its tests, failing and short ones first."""

    def touching(tests: Sequence[Ran]) -> list[str]:
        found = [
            test
            for test in tests
            if test.outcome == "fail" or test.touches(function.path, function.first, function.last)
        ]
        return [
            test.name
            for test in sorted(
                found, key=lambda one: (one.outcome != "fail", round(one.cpu_ms, -1), one.name)
            )
        ]

    visible = touching(parts.visible)
    failing = {test.name for test in parts.visible if test.outcome == "fail"}
    return {
        "path": function.path,
        "qual": function.qual,
        "heads": list(function.heads),
        "line": function.first,
        "visible": visible,
        "tried": visible,
        "hidden": touching(parts.hidden),
        "passing": [name for name in visible if name not in failing],
    }


def limits(parts: Split) -> tuple[float, float]:
    """The short and the long limit of an edit's CPU seconds: both relative to the visible tests that pass."""
    passing_ms = [test.cpu_ms for test in parts.visible if test.outcome == "pass"]
    first_s = max(FIRST_S, TIMES * max(passing_ms, default=0.0) / 1000) + 2 * sum(passing_ms) / 1000
    return first_s, max(SECOND_S, 3 * first_s)
