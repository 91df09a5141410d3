"""`spak demo` on a shortened spec: what it prints when it is through, its run, and its one page.

Every part of the main job is real (compiler, sandbox, clock), only the loop is short.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli_kit import run_dir, spak
from process_kit import WAIT_S
from tuner_kit import shortened

SHORT = """
import sys
from pathlib import Path
from spak import data
from spak.cli import main
spec, shipped = Path(sys.argv.pop()), data.path
data.path = lambda name: spec if name.endswith(".spak") else shipped(name)
main()
"""

LINES = (
    r"baseline      \d+\.\d{3} ms \(median, spread \d+\.\d %; naive C at -O2\)",
    r"best          \d+\.\d{3} ms \(median, spread \d+\.\d %\)",
    r"speed-up      \d+\.\d\dx, ratio of medians, measured again on fresh inputs",
    r"roofline      \d+ % of the measured peak \(\d\.\d{3} ms bound\)",
    r"evaluations   7",
    r"cost          \d+\.\d CPU-s, \d+\.\d s wall",
    r"stopped       plateau: .+",
    r"winner        \.spak/runs/.+/workspace/best\.c",
    r"ledger        verified, \d+ records, head \S{43}",
    r"replay        equal, summary \S{43}",
    r"report        \.spak/runs/.+/report\.html",
)


@pytest.mark.sandbox
def test_the_demo_tells_what_it_found_and_proves_it(tmp_path: Path) -> None:
    spec = shortened(tmp_path, 6)
    done = subprocess.run(
        [sys.executable, "-c", SHORT, "demo", "--seed", "3", str(spec)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    told = done.stderr
    assert (done.returncode, done.stdout) == (0, ""), told
    for line in LINES:
        assert re.search(f"^{line}$", told, re.MULTILINE), (line, told)
    live, table = told.split("candidates (ratio", 1)
    for part in (live, table):
        assert len(re.findall(r"^ *\d+ [●○×] (?:improved|measured|failed)", part, re.MULTILINE)) == 5, told
    spreads = re.findall(r"spread (\d+\.\d) %", told)
    page = next(tmp_path.glob(".spak/runs/*/report.html")).read_text()
    assert all(f"spread {spread} %" in page for spread in spreads)
    tuned_verified_replayed_and_reported(tmp_path)


def tuned_verified_replayed_and_reported(folder: Path) -> None:
    """The verbs say of the run what the demo has printed of it."""
    code, seen = spak(folder, "show", "latest", "--json")
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "finalize"), seen["refusal"]
    metrics = seen["metrics"]
    assert metrics["stopped_by"] == "evaluations"
    assert metrics["evaluations"] == 7
    assert metrics["speedup"] == pytest.approx(metrics["baseline_ms"] / metrics["best_ms"], rel=0.01)
    assert 0 < metrics["bound_ppm"] < 1_000_000
    assert "attn" in (run_dir(folder, seen) / "workspace/best.c").read_text()
    code, replayed = spak(folder, "replay", "latest", "--json")
    assert (code, replayed["equal"], replayed["summary_hash"]) == (0, True, seen["summary_hash"])
    code, verified = spak(folder, "ledger", "verify", "latest", "--json")
    assert (code, verified["ok"], verified["head"]) == (0, True, seen["chain_head"])
    code, report = spak(folder, "report", "latest", "--json")
    page = Path(folder / report["file"]).read_text()
    assert page.count("<circle") + page.count("<path") >= 5
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert f"{metrics['speedup']:.1f}×" in page
