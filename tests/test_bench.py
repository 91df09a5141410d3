"""The bench's own arithmetic: verdicts against aims, and modules that say what they measure."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_main", BENCH / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("ours", "floor", "aim", "verdict"),
    [
        (1.1, 1.0, "<= 1.1", "PASS"),
        (1.2, 1.0, "<= 1.1", "MISSED"),
        (20_000, None, ">= 20,000", "PASS"),
        (0.5, 1.0, ">= 0.8 of floor", "MISSED"),
        (0.9, 1.0, ">= 0.8 of floor, 2 MB/s", "PASS"),
        (0.5, 1.0, "< 0.5", "MISSED"),
        (7, 7, "", ""),
        (None, None, "<= 1.5 of floor", "NOT MEASURED"),
    ],
)
def test_a_verdict_compares_with_the_aim(
    bench: ModuleType, ours: float | None, floor: float | None, aim: str, verdict: str
) -> None:
    assert bench.verdict({"name": "x", "ours": ours, "floor": floor, "aim": aim}) == verdict


def test_an_aim_that_is_no_comparison_is_an_error(bench: ModuleType) -> None:
    with pytest.raises(ValueError, match="about 3"):
        bench.verdict({"name": "x", "ours": 1, "floor": 1, "aim": "about 3"})


def test_a_table_has_a_line_per_figure(bench: ModuleType) -> None:
    row = {
        "name": "replay",
        "ours": 32547.0,
        "floor": None,
        "unit": "records/s",
        "aim": ">= 1",
        "verdict": "PASS",
    }
    lines = bench.table([row]).splitlines()
    assert len(lines) == 2
    assert lines[1].split() == ["replay", "32,547", "-", "records/s", ">=", "1", "PASS"]


def test_what_is_missed_is_told_again(bench: ModuleType) -> None:
    figures: list[tuple[str, float | None, str]] = [
        ("fast", 1, "<= 2"),
        ("slow", 3, "<= 2"),
        ("away", None, "<= 2"),
    ]
    rows = [{"name": name, "ours": ours, "floor": 1, "unit": "ms", "aim": aim} for name, ours, aim in figures]
    rows = [{**row, "verdict": bench.verdict(row)} for row in rows]
    told = bench.summary(rows, ["broken"]).splitlines()
    assert told[1] == "3 figures, 1 missed, 1 not measured"
    assert told[2:] == [
        "  MISSED  slow: <= 2, 3 beside 1 ms",
        "  NOT MEASURED  away: <= 2",
        "  FAILED  bench_broken: its words are above",
    ]


@pytest.mark.parametrize("failure", ["raise ValueError", "import time; time.sleep(60)", "print('no rows')"])
def test_a_module_that_fails_costs_no_other(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """In a folder that has the bench with two modules of its own."""
    row = {"name": "x", "ours": 1, "floor": 1, "unit": "ms", "aim": ""}
    for name, text in (
        ("__init__", ""),
        ("__main__", (BENCH / "__main__.py").read_text()),
        ("bench_bad", f"def rows():\n    {failure}\n"),
        ("bench_good", f"def rows():\n    return [{row}]\n"),
    ):
        (tmp_path / "bench").mkdir(exist_ok=True)
        (tmp_path / "bench" / f"{name}.py").write_text(text)
    monkeypatch.setattr(bench, "HERE", tmp_path / "bench")
    monkeypatch.setattr(bench, "MOST_S", 0.5 if "sleep" in failure else 60)
    assert bench.measure("bad") is None
    monkeypatch.setattr(bench, "MOST_S", 60)
    assert bench.measure("good") == [{"bench": "good", **row, "verdict": ""}]


@pytest.mark.parametrize("path", sorted(BENCH.glob("bench_*.py")), ids=lambda path: path.stem)
def test_every_module_has_rows(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert any(isinstance(node, ast.FunctionDef) and node.name == "rows" for node in tree.body)


def test_a_module_that_has_ended_is_ended_again(bench: ModuleType) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True)
    process.wait()
    bench._end(process)
