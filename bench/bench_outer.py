"""The gate: how seldom it accepts equal versions, how often it blocks a regression, and how fast it replays.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. Campaigns go through the real loop with a
ledger each. A/A trials, the planted regression and the planted gain are pairs of real runs by a scripted
model of a known rate (bench/coins.py); the shares of wins are drawn coins, since there only the betting is
asked. CPU time; what is done is said on standard error.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from bench.coins import CAREFUL, HURRY, SPEC, Pool, passes
from bench.heuristics_job import USEFUL, USELESS, base, improve, rate
from bench.planted import planted
from bench.random_edits import BASE, gained
from bench.sizes import sized
from spak import config
from spak.evolve.campaigns import Campaign, Judging, Pair, Plan, advance
from spak.evolve.gate import Candidate, rehearse
from spak.evolve.gate.counterfactual import under
from spak.kernel.replay import replay
from spak.lang.edit import read

CAMPAIGNS, OTHERS, PAIRS, MORE = sized((200, 100, 100, 400), (2, 1, 20, 30))
RUNS, EDITS = sized((1_000, 10_000), (20, 50))
REAL = sized(20, 1)
"""A/A campaigns whose every pair is two runs of its own."""
EQUALS, EQUAL_PAIRS = 3, sized(60, 12)
"""Equal candidates of an A/A campaign, and the pairs of each."""
POOL, PLAIN = sized((1_000, 100), (60, 10))
TIES = 0.3

Pairs = Callable[[Random], Callable[[str, int, str], Pair]]


def rows() -> list[dict[str, Any]]:
    pool = Pool(POOL)
    for words in ("One.", HURRY, CAREFUL):
        said(f"{POOL} runs of a model that passes {pool.rate(SPEC.replace('One.', words)):.2f} of them")
    of_pool = partial(pool.pairs, SPEC)
    equal = tuple(f"Hint {number}." for number in range(EQUALS))
    found = [
        row(
            f"A/A: {CAMPAIGNS} campaigns of {EQUALS} equal candidates, {EQUAL_PAIRS} pairs each: accept one",
            accepted("A/A", SPEC, equal, of_pool, CAMPAIGNS, EQUAL_PAIRS),
            aim="<= 0.05",
        ),
        row(
            f"A/A: {REAL} campaigns with real runs: accept one",
            accepted("A/A, real runs", SPEC, equal, real, REAL, EQUAL_PAIRS),
            aim="<= 0",
        ),
        row(
            f"planted regression of 10 points (0.8 to 0.7), {PAIRS} pairs: blocked",
            1 - accepted("regression", SPEC, (HURRY,), of_pool, OTHERS, PAIRS),
            aim=">= 0.9",
        ),
    ]
    for pairs in (PAIRS, MORE):
        share = accepted(f"gain, {pairs} pairs", SPEC, (CAREFUL,), of_pool, OTHERS, pairs)
        found.append(row(f"planted gain of 10 points (0.8 to 0.9), {pairs} pairs: accepted", share))
    for share in (0.6, 0.7, 0.8):
        won = accepted(f"win share {share}", BASE, ("Hint.",), coin(share), OTHERS, PAIRS)
        found.append(row(f"win share {share} of deciding pairs, {PAIRS} pairs: accepted", won))
    said(f"{EDITS:,} random edits")
    wrong = gained(Random(1), EDITS, BASE)
    found.append(row(f"{EDITS:,} random edits: widened without a mark", wrong, aim="<= 0"))
    said(f"{RUNS:,} recorded runs under a patch")
    seconds, floor = replayed()
    name = f"{RUNS:,} recorded runs under a patch (floor: plain replay)"
    found.append(row(name, seconds, floor, "s", "< 60"))
    said("heuristics job")
    text, _ = improve()
    kept, dropped = sum(item in text for item in USEFUL), sum(item not in text for item in USELESS)
    return [
        *found,
        row("heuristics job: useful ones kept of 2", kept, aim=">= 2"),
        row("heuristics job: useless ones dropped of 2", dropped, aim=">= 2"),
        row("heuristics job: pass rate after (floor: before)", rate(text), rate(base())),
    ]


def accepted(what: str, text: str, hints: tuple[str, ...], pairs: Pairs, many: int, most: int) -> float:
    """The share of campaigns over a spec that accept one of the candidates that each adds a heuristic."""
    fit = 0
    made = [Candidate(read([f"add-heuristic '{hint}'"]), "bench") for hint in hints]
    plan = Plan("a.spak", text, "s", "h", (), ("a", "b", "c"), candidates=len(made), pairs=most)
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        for number in range(many):
            found = Campaign.create(Path(folder), f"c{number}", plan)
            judging = Judging(config.catalog(), (), pairs(Random(f"{what}/{number}")))
            advance(found, Path(folder), lambda current: made, judging)
            fit += found.counts().get("fit", 0) > 0
    said(f"{what}: {fit} of {many} campaigns accepted")
    return fit / many


def real(draw: Random) -> Callable[[str, int, str], Pair]:
    """Pairs of two runs each, which the kernel makes for that pair alone."""

    def pair(case: str, k: int, text: str) -> Pair:
        before, after = (passes(one, draw.randrange(1_000_000)) for one in (SPEC, text))
        return Pair(case, k, after - before)

    return pair


def coin(share: float) -> Pairs:
    """Pairs of which the candidate wins this share of those that are no ties."""

    def drawn(draw: Random) -> Callable[[str, int, str], Pair]:
        def pair(case: str, k: int, text: str) -> Pair:
            return Pair(case, k, 0 if draw.random() < TIES else 1 if draw.random() < share else -1)

        return pair

    return drawn


def said(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def replayed() -> tuple[float, float]:
    """CPU seconds for rehearsal and replay of RUNS runs under a patch, and for replaying them alone (from
    PLAIN of them)."""
    runs = [planted("retry_cycle", seed)[0][0] for seed in range(20)]
    texts = [Candidate(read(["set-memory FIFO"]), "bench").text(run[0].body["rules"]["spec"]) for run in runs]
    began = time.process_time()
    for number in range(PLAIN):
        replay(runs[number % 20])
    floor = (time.process_time() - began) * RUNS / PLAIN
    began = time.process_time()
    for number in range(RUNS):
        found = under(rehearse(f"r{number}", runs[number % 20]), texts[number % 20])
        assert not found.problem
    return time.process_time() - began, floor


def row(name: str, ours: float, floor: float | None = None, unit: str = "", aim: str = "") -> dict[str, Any]:
    shown = None if floor is None else round(floor, 3)
    return {"name": name, "ours": round(ours, 3), "floor": shown, "unit": unit, "aim": aim}
