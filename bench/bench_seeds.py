"""The four success metrics of seed 000 section 6 over the recorded runs that ship, beside their targets.

Each example with answers in specs/examples/answers is run by the backend `recorded`; `spak report --json`
says what its ledger holds. Constraint satisfaction is the share of checked axioms that held; self-correction
that of failures of tasks that came right without a person. Tokens are those of the prompts of the shipped
synthetic runs (bench.tokens) under FLUSH_ON_TRANSITION, as a share of the full history. Perplexity is known
where an engine reports log-probabilities: recorded answers have none, so that row has no figure, and
`spak report` prints it for runs of engines that do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bench.bench_tokens import OURS
from bench.tokens import synthetic
from bench.tokens.arms import ARMS, figures
from spak import data

SPAK = (sys.executable, "-c", "from spak.cli import main; main()")


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    found: Counter[str] = Counter()
    names = sorted({path.name.rpartition("-")[0] for path in _answers("*-*.json")})
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        for name in names:
            found.update(_recorded(Path(folder), name))
    runs = [run for kind in synthetic.runs().values() for run in kind]
    ours, whole = (sum(one.tokens for one in figures(runs, ARMS[arm])) for arm in (OURS, "full history"))
    held = f"constraint satisfaction, {found['checked']} axioms checked in {len(names)} runs"
    resolved = f"self-correction, {found['failures']} failures in {len(names)} runs"
    return [
        _row(held, _share(found["held"], found["checked"]), "%", "> 99"),
        _row(resolved, _share(found["resolved"], found["failures"]), "%", "> 80"),
        _row(f"tokens of prompts, of the full history, {len(runs)} runs", _share(ours, whole), "%", "< 50"),
        _row("perplexity of generated code (target: low)", None, "", ""),
    ]


def _answers(pattern: str) -> list[Path]:
    return sorted(data.path("specs/examples/answers").glob(pattern))


def _recorded(folder: Path, name: str) -> dict[str, int]:
    """The counts of one run, which has to succeed."""
    place = ["--runs-dir", str(folder / name), "--json"]
    recording = folder / f"{name}.jsonl"
    answers = [{"text": path.read_text(encoding="utf-8")} for path in _answers(f"{name}-*.json")]
    recording.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), encoding="utf-8")
    spec = str(data.path(f"specs/examples/{name}.spak"))
    said = _spak("run", spec, "--mode", "full_auto", "--from", str(recording), *place)
    if said["state"] != "succeeded":
        raise RuntimeError(f"{name} ended {said['state']}: {said['refusal']}")
    quality = _spak("report", said["run"], *place)["quality"]
    counts = {**quality["consistency"], **quality["self_correction"]}
    return {key: counts[key] for key in ("held", "checked", "failures", "resolved")}


def _spak(*words: str) -> dict[str, Any]:
    done = subprocess.run([*SPAK, *words], capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"spak {words[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _row(name: str, ours: float | None, unit: str, aim: str) -> dict[str, Any]:
    shown = None if ours is None else round(ours, 1)
    return {"name": f"seed 000: {name}", "ours": shown, "floor": None, "unit": unit, "aim": aim}
