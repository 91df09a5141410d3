"""The main job, shortened: every part of it is real (compiler, sandbox, clock), only the loop is short."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import run_dir, spak
from tuner_kit import shortened


@pytest.mark.sandbox
def test_it_tunes_verifies_replays_and_reports(tmp_path: Path) -> None:
    spec = shortened(tmp_path, 6)
    code, seen = spak(tmp_path, "run", str(spec), "--seed", "3", "--json")
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "finalize"), seen["refusal"]
    metrics = seen["metrics"]
    assert metrics["stopped_by"] == "evaluations"
    assert metrics["evaluations"] == 7
    assert metrics["speedup"] == pytest.approx(metrics["baseline_ms"] / metrics["best_ms"], rel=0.01)
    assert 0 < metrics["bound_ppm"] < 1_000_000
    folder = run_dir(tmp_path, seen)
    assert "attn" in (folder / "workspace/best.c").read_text()
    code, replayed = spak(tmp_path, "replay", "latest", "--json")
    assert (code, replayed["equal"], replayed["summary_hash"]) == (0, True, seen["summary_hash"])
    code, verified = spak(tmp_path, "ledger", "verify", "latest", "--json")
    assert (code, verified["ok"], verified["head"]) == (0, True, seen["chain_head"])
    code, report = spak(tmp_path, "report", "latest", "--json")
    page = Path(tmp_path / report["file"]).read_text()
    assert page.count("<circle") + page.count("<path") >= 5
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert f"{metrics['speedup']:.1f}×" in page
