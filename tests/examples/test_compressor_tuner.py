"""A metric of one's own, higher is better: the compressor's settings, with a short loop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak


@pytest.mark.sandbox
def test_it_finds_a_better_ratio_and_keeps_it(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "compressor_tuner", tmp_path / "compressor_tuner")
    text = (EXAMPLES / "compressor_tuner.spak").read_text(encoding="utf-8")
    # No test rests on the speed of a machine: the bound on time is loose here.
    short = text.replace("evaluations: 24", "evaluations: 4").replace("at_most: 3 }", "at_most: 1000 }")
    assert short.count("1000") == 1
    (tmp_path / "compressor_tuner.spak").write_text(short, encoding="utf-8")
    code, seen = spak(tmp_path, "run", "compressor_tuner.spak", "--seed", "3", "--json")
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "keep"), seen["refusal"]
    metrics = seen["metrics"]
    assert metrics["best"] > metrics["baseline"] > 1
    assert metrics["improvement"] == pytest.approx(metrics["best"] / metrics["baseline"], rel=0.01)
    assert "#define LEVEL" in (run_dir(tmp_path, seen) / "workspace/best.h").read_text()
    code, replayed = spak(tmp_path, "replay", "latest", "--json")
    assert (code, replayed["equal"]) == (0, True)
    code, report = spak(tmp_path, "report", "latest", "--json")
    page = (tmp_path / report["file"]).read_text()
    assert f"{metrics['improvement']:.2f}×" in page and " ms</text>" not in page
