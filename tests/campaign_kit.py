"""The ledger of a campaign with one candidate, as `spak outer campaign` leaves it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from bench.planted import work
from spak import config
from spak.lang.edit import read
from spak.outer.campaigns import Campaign, Half, Judging, Pair, Plan, advance
from spak.outer.gate import Candidate

BASE = work(6, 'SYSTEM_MODEL M { HEURISTIC "One." }').lstrip("\n")


def ledger(folder: Path, why: str = "", better: float = 0.95, base: str = BASE, *more: str) -> bytes:
    """`better` is how likely a pair is won; `more` edits come after the heuristic."""
    made = Campaign.create(folder, "c", Plan("a.spak", base, "suite", "hash", (), ("c0", "c1")))
    draw = Random(1)

    def pair(case: str, k: int, text: str) -> Pair:
        won = draw.random() < better
        base, candidate = (
            Half("fail" if won else "pass", 1_000),
            Half("pass" if won else "fail", 800 + 50 * (case == "c1")),
        )
        return Pair(case, k, 1 if won else -1, (f"b{k}", f"c{k}"), used=(base, candidate))

    found = [Candidate(read(["add-heuristic 'Look twice.'", *more]), "rules", why, {"r1": (3, 4)})]
    advance(made, folder, lambda current: found, Judging(config.catalog(), (), pair))
    return (folder / "c" / "trace.jsonl").read_bytes()
