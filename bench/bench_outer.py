"""The gate: how seldom it accepts equal versions, how often it blocks a regression, and how fast it replays.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. Campaigns go through the real loop with a
ledger each; pairs are drawn, since what is asked is how the gate decides. CPU time.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from bench.heuristics_job import USEFUL, USELESS, base, improve, rate
from bench.planted import planted
from bench.random_edits import BASE, gained
from spak import config
from spak.kernel.replay import replay
from spak.lang.edit import read
from spak.outer.campaigns import Campaign, Judging, Pair, Plan, advance
from spak.outer.gate import Candidate, rehearse
from spak.outer.gate.counterfactual import under

CAMPAIGNS, OTHERS, PAIRS, RUNS, EDITS = 200, 100, 100, 1_000, 10_000
TIES = 0.3


def rows() -> list[dict[str, Any]]:
    text, _ = improve()
    kept = sum(item in text for item in USEFUL)
    dropped = sum(item not in text for item in USELESS)
    seconds, floor = replayed()
    return [
        row(
            f"A/A: equal versions accepted, {CAMPAIGNS} campaigns",
            accepted(0.5, CAMPAIGNS),
            None,
            "",
            "<= 0.05",
        ),
        row(
            "worse (win share 0.33 of deciding pairs, 24 points of all): not accepted",
            1 - accepted(0.33),
            None,
            "",
            ">= 0.9",
        ),
        row("win share 0.6 accepted (power, alpha of the first candidate)", accepted(0.6), None, "", ""),
        row("win share 0.7 accepted", accepted(0.7), None, "", ""),
        row("win share 0.8 accepted", accepted(0.8), None, "", ""),
        row(
            f"{EDITS:,} random edits: widened without a mark",
            gained(Random(1), EDITS, BASE),
            None,
            "",
            "<= 0",
        ),
        row(f"{RUNS:,} recorded runs under a patch (floor: plain replay)", seconds, floor, "s", "< 60"),
        row("heuristics job: useful ones kept of 2", kept, None, "", ">= 2"),
        row("heuristics job: useless ones dropped of 2", dropped, None, "", ">= 2"),
        row("heuristics job: pass rate after (floor: before)", rate(text), rate(base()), "", ""),
    ]


def accepted(share: float, many: int = OTHERS) -> float:
    """The share of campaigns that accept a candidate whose deciding pairs it wins with that chance."""
    fit = 0
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        for number in range(many):
            draw = Random(f"{share}/{number}")

            def pair(case: str, k: int, text: str, draw: Random = draw) -> Pair:
                outcome = 0 if draw.random() < TIES else 1 if draw.random() < share else -1
                return Pair(case, k, outcome)

            plan = Plan("a.spak", BASE, "s", "h", (), ("a", "b", "c"), pairs=PAIRS)
            found = Campaign.create(Path(folder), f"c{number}", plan)
            made = Candidate(read(["add-heuristic 'Hint.'"]), "bench")
            advance(
                found, Path(folder), lambda current, made=made: [made], Judging(config.catalog(), (), pair)
            )  # type: ignore[misc]
            fit += found.counts().get("fit", 0)
    return fit / many


def replayed() -> tuple[float, float]:
    """CPU seconds for rehearsal and replay of RUNS runs under a patch, and for replaying them alone."""
    runs = [planted("retry_cycle", seed)[0][0] for seed in range(20)]
    texts = [Candidate(read(["set-memory FIFO"]), "bench").text(run[0].body["rules"]["spec"]) for run in runs]
    began = time.process_time()
    for number in range(RUNS):
        replay(runs[number % 20])
    floor = time.process_time() - began
    began = time.process_time()
    for number in range(RUNS):
        found = under(rehearse(f"r{number}", runs[number % 20]), texts[number % 20])
        assert not found.problem
    return time.process_time() - began, floor


def row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    shown = None if floor is None else round(floor, 3)
    return {"name": name, "ours": round(ours, 3), "floor": shown, "unit": unit, "aim": aim}
