"""Runs the arms over the same seeds, in shuffled order on all cores, and sums up what came of them.

A pipeline is *right* when all of its files are what the reference says. A file is *corrupted* when it is
there and is not. A *loop* is one call that was repeated at least LOOP times with nothing in between: no
error that the model reads, no end of the run. Means have a 95 % interval by bootstrap over pipelines.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.spreadsheets import chat, ours
from bench.spreadsheets.model import Model
from bench.spreadsheets.sheets import Sheet, cleaned, plant, sheets

LOOP = 3
DRAWS = 2000
OURS, CHAT = "ours", "chat loop"
PRUNED, WATCHED, ROLLED = "ours, no pruning", "ours, no watchdog", "ours, no rollback"
COUNTING, APART = "chat loop that counts repetitions", "chat loop, a conversation for each file"
SWITCHES = {
    OURS: ours.Switches(),
    PRUNED: ours.Switches(pruning=False),
    WATCHED: ours.Switches(watchdog=False),
    ROLLED: ours.Switches(rollback=False),
}
ARMS = (CHAT, OURS, PRUNED, WATCHED, ROLLED, COUNTING, APART)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one pipeline came to."""

    arm: str
    seed: int
    tokens: int
    calls: int
    seconds: float
    cpu_s: float
    corrupted: int
    loop: bool
    first: int
    """First calls that fitted their schema, of `firsts`."""
    firsts: int
    bad: int
    retries: int
    ends: tuple[str, ...]
    replayed: bool
    """Whether its ledgers verify and replay, of our arm."""
    whole: bool
    """Whether every file is right."""


def outcomes(pipelines: int, arms: Sequence[str] = ARMS) -> list[Outcome]:
    """Every arm over seeds 1 to `pipelines`, shuffled, a process for each core."""
    jobs = [(arm, seed) for arm in arms for seed in range(1, pipelines + 1)]
    random.Random("order").shuffle(jobs)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.starmap(one, jobs, chunksize=4)


def one(arm: str, seed: int) -> Outcome:
    """One pipeline of an arm."""
    made = sheets(seed)
    model = Model(seed, made)
    with tempfile.TemporaryDirectory(prefix="spak-sheets-") as name:
        folder, began = Path(name), time.perf_counter()
        cpu = time.process_time()
        used, place = ours.Used(), folder
        if arm in SWITCHES:
            used, place = ours.pipeline(model, made, folder, SWITCHES[arm])
        else:
            used.tokens, used.calls = _chats(arm, model, made, folder)
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        replayed = arm == OURS and ours.replayed(used, folder)
        right, there = _right(made, place)
    return Outcome(
        arm=arm,
        seed=seed,
        tokens=used.tokens,
        calls=used.calls,
        seconds=seconds,
        cpu_s=cpu_s,
        corrupted=there - right,
        loop=model.longest >= LOOP,
        first=model.good_first[True],
        firsts=model.good_first.total(),
        bad=model.bad,
        retries=model.retries,
        ends=tuple(used.ends),
        replayed=replayed,
        whole=right == len(made),
    )


def mean(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean with its 95 % interval, by bootstrap."""
    chance = random.Random("bootstrap")
    drawn = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return statistics.fmean(values), drawn[DRAWS // 40], drawn[-DRAWS // 40]


def of(found: Sequence[Outcome], arm: str) -> list[Outcome]:
    """The pipelines of an arm, by seed."""
    return sorted((outcome for outcome in found if outcome.arm == arm), key=lambda outcome: outcome.seed)


def both_right(found: Sequence[Outcome], one: str, other: str) -> tuple[list[Outcome], list[Outcome]]:
    """The pipelines of two arms whose seeds came right in both: their figures are of equal success."""
    pairs = [
        pair for pair in zip(of(found, one), of(found, other), strict=True) if all(o.whole for o in pair)
    ]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def first(found: Sequence[Outcome]) -> float:
    """The share of first calls, by sheet and action, that fitted their schema."""
    return sum(outcome.first for outcome in found) / sum(outcome.firsts for outcome in found)


def retries(found: Sequence[Outcome]) -> float:
    """Calls that it took to mend one that did not fit."""
    return sum(outcome.retries for outcome in found) / max(1, sum(outcome.bad for outcome in found))


def _chats(arm: str, model: Model, made: list[Sheet], folder: Path) -> tuple[int, int]:
    plant(made, folder)
    groups = [[sheet] for sheet in made] if arm == APART else [made]
    tokens = calls = 0
    for group in groups:
        used = chat.converse(model, group, folder, chat.LIMIT - calls, counting=arm == COUNTING)
        tokens, calls = tokens + used.tokens, calls + used.calls
    return tokens, calls


def _right(made: list[Sheet], folder: Path) -> tuple[int, int]:
    """How many results are right, and how many are there."""
    there = [sheet for sheet in made if (folder / sheet.target).exists()]
    right = [sheet for sheet in there if (folder / sheet.target).read_text() == cleaned(sheet, sheet.text)]
    return len(right), len(there)
