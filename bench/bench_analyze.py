"""Findings: precision and recall on planted faults, and how fast a long ledger is read.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. CPU time.
"""

from __future__ import annotations

import time
from typing import Any

from bench.planted import FAULTS, HEALTHY, healthy, planted, work
from bench.scripted import checked, exited, ledger, planned, root
from bench.sizes import sized
from spak import canon
from spak.evolve.analyze import analyze, read
from spak.kernel.state import Effect
from spak.records import Record, decode, place

SEEDS = sized(range(100, 110), range(100, 101))
LONG = sized(100_000, 2_000)


def rows() -> list[dict[str, Any]]:
    right = wrong = missed = 0
    for kind in FAULTS:
        for seed in SEEDS:
            runs, prompts = planted(kind, seed)
            codes = {item.code for item in analyze([read(run) for run in runs], prompts.get).findings}
            right += kind in codes
            missed += kind not in codes
            wrong += len(codes - {kind})
    for kind in HEALTHY:
        for seed in SEEDS:
            runs, prompts = healthy(kind, seed)
            wrong += len({item.code for item in analyze([read(run) for run in runs], prompts.get).findings})
    cases = f"{right + missed} faults, {len(HEALTHY) * len(SEEDS)} healthy"
    seconds, floor = long_ledger()
    return [
        row(f"precision, {cases}", right / (right + wrong), None, "", ">= 0.9"),
        row(f"recall, {cases}", right / (right + missed), None, "", ">= 0.9"),
        row(f"{LONG:,} records analyzed (floor: walked once)", seconds, floor, "s", "< 10"),
    ]


def long_ledger() -> tuple[float, float]:
    """CPU seconds for a ledger of LONG records: a real run's records, over and over."""
    state = {"n": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            state["n"] += 1
            return planned(("write_file", {"path": "a.txt", "content": f"draft {state['n']}"}))
        if effect.act == "validate":
            return checked(state["n"] >= 100)
        return exited(0, f"result {state['n']}", r3=root(state["n"]))

    once = ledger(work(200, steps=4_000), script)
    many: list[Record] = once[:-1]
    while len(many) < LONG:
        many += once[1:-1]
    many = many[:LONG]
    began = time.process_time()
    touched = sum(len(record.body) for record in many)
    floor = time.process_time() - began
    assert touched > 0
    lines, head = [], canon.ZERO
    for number, record in enumerate(many):
        placed, line = place(record, number, head)
        head = placed.hash
        lines.append(line)
    began = time.process_time()
    analyze([read(map(decode, lines), "long")])
    return time.process_time() - began, floor


def row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    shown = None if floor is None else round(floor, 3)
    return {"name": name, "ours": round(ours, 3), "floor": shown, "unit": unit, "aim": aim}
