"""The ledger of a campaign with one candidate, as `spak outer campaign` leaves it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from bench.planted import work
from spak import config
from spak.evolve.campaigns import Campaign, Half, Judging, Pair, Plan, advance
from spak.evolve.gate import Candidate
from spak.lang.edit import read

BASE = work(6, 'SYSTEM_MODEL M { HEURISTIC "One." }').lstrip("\n")


def ledger(
    folder: Path, why: str = "", better: float = 0.95, base: str = BASE, *more: str, odd: str = ""
) -> bytes:
    """`better` is how likely a pair is won; `more` edits come after the heuristic. `odd` is part of every
    other name that the ledger gives: suite, cases, proposer, run."""
    cases, run = (f"c0{odd}", f"c1{odd}"), f"r1{odd}".encode("ascii", "ignore").decode()
    made = Campaign.create(folder, "c", Plan("a.spak", base, f"suite{odd}", "hash", (), cases))
    draw = Random(1)

    def pair(case: str, k: int, text: str) -> Pair:
        won = draw.random() < better
        base, candidate = (
            Half("fail" if won else "pass", 1_000),
            Half("pass" if won else "fail", 800 + 50 * (case == cases[1])),
        )
        return Pair(case, k, 1 if won else -1, (f"b{k}", f"c{k}"), used=(base, candidate))

    found = [Candidate(read(["add-heuristic 'Look twice.'", *more]), f"rules{odd}", why, {run: (3, 4)})]
    advance(made, folder, lambda current: found, Judging(config.catalog(), (), pair))
    return (folder / "c" / "trace.jsonl").read_bytes()
