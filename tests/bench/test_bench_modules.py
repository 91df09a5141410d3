"""Every module of the bench measures: its quick form gives each of its figures, and those that the docs print
are of the size that they print.

A quick form takes as little as shows that the module still works (bench.sizes), so a figure may differ from
the printed one by what machine and size do: within ten times, for figures that hardly depend on either.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem.removeprefix("bench_") for path in (ROOT / "bench").glob("bench_*.py"))
NEEDS = {"docker": "SPAK_TEST_ENGINE", "agents": "SPAK_TEST_AGENTS"}
"""Modules whose figures need what not every machine can run (a container engine) or should fetch (800 MB of
agents), with the variable that says so."""
UNREPORTED = {
    "seed 000: perplexity of generated code (target: low)",
    "door: commits of healthchecks held",
    "door: commits of httpx held",
    "harm in docker",
}
"""Figures that recorded answers do not have, of lists that are not in the repository, or of an engine."""
PRINTED = [
    ("docs/sandbox.md", r"One MiB of output with 20 values takes (\d+) ms", "redaction", "1 MiB of a log"),
    ("docs/graph.md", r"100 tasks take some \d+ to (\d+) ms", "graph", "layout of 100 tasks, work"),
    ("docs/graph.md", r"1,000 tasks \d+ to (\d+) ms", "graph", "layout of 1000 tasks, work"),
    ("bench/RESULTS.md", r"\| a worker, SQLite \| ([\d.]+) s", "growth", r"a worker, SQLite: .* records$"),
    (
        "bench/RESULTS.md",
        r"\| `spak resume`, with the start of the process \| ([\d.]+) s",
        "growth",
        "`spak resume`",
    ),
]
"""File, where its figure stands, the module that prints it, and a pattern of its row."""


@cache
def figures(name: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--json", name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


@pytest.mark.sandbox
@pytest.mark.parametrize("name", MODULES)
def test_a_module_gives_all_of_its_figures(name: str) -> None:
    absent = {row["name"] for row in figures(name) if row["ours"] is None} - UNREPORTED
    assert not absent or (name in NEEDS and NEEDS[name] not in os.environ)


@pytest.mark.parametrize(("file", "pattern", "name", "row"), PRINTED, ids=[row[3] for row in PRINTED])
def test_a_printed_figure_is_of_the_size_measured(file: str, pattern: str, name: str, row: str) -> None:
    text = (ROOT / file).read_text()
    printed = re.search(pattern, text)
    assert printed, f"{file} has no such figure any more: change the pattern with it"
    assert re.search(rf"bench (?:ARGS=)?\"?[\w ]*\b{name}\b|ARGS={name}\b", text), f"{file} names no command"
    measured = next(one["ours"] for one in figures(name) if re.search(row, one["name"]))
    assert float(printed[1]) / 10 <= measured <= float(printed[1]) * 10
