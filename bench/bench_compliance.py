"""Seed 001's eleven tests on our kernel, a mutant of it for each, and the named mutants of tests/mutants.

The tests and their mutants are those of `spak compliance --mutants`: a mutant counts as caught when its own
test fails and all others pass. The mutants of tests/mutants are one replaced line in kernel, runner, ledger,
tools or law; each is killed when the test that it names fails on it. pytest runs them here, and its report is
counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bench.sizes import QUICK, sized
from spak.compliance.kit import judge, judge_mutants

ROOT = Path(__file__).resolve().parents[1]
CASES, MUTANTS = sized([], [3, 11]), sized([], [3])
WHICH = sized("mutant", "polls_have_no_limit or git_push")
"""Of the tests in tests/mutants."""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    verdicts = judge(only=CASES)
    caught = judge_mutants(only=MUTANTS, others=not QUICK)
    killed, named = invariants()
    return [
        _row(f"tests of seed 001 passed, of {len(verdicts)}", sum(one.passed for one in verdicts), 11),
        _row(f"mutants caught by their test alone, of {len(caught)}", sum(one.caught for one in caught), 11),
        _row(f"named mutants of invariants killed, of {named}", killed, max(named, 40)),
    ]


def invariants() -> tuple[int, int]:
    """How many mutants of tests/mutants are killed, and how many there are. Raises: RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        report = Path(folder) / "report.xml"
        words = ["tests/mutants", "-q", "-n", "2", "-k", WHICH, f"--junitxml={report}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if not report.is_file():
            raise RuntimeError(f"pytest ended with {done.returncode}: {done.stderr[-500:]}")
        cases = [
            case
            for case in ElementTree.parse(report).iter("testcase")  # our own report
            if case.get("name", "").startswith("test_the_mutant_is_noticed")
        ]
    return sum(not len(case.findall("failure") + case.findall("error")) for case in cases), len(cases)


def _row(name: str, count: int, least: int) -> dict[str, Any]:
    return {"name": name, "ours": count, "floor": None, "unit": "", "aim": f">= {least}"}
