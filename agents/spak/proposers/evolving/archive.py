"""The archive of an evolution: islands of candidates that were measured, folded from the trials of a task.

Takes the start (the blocks of the measured baseline) and the Trials of a PlanRequest; gives the islands, who
is drawn as a parent, and what failed. It is a function of them and of the run's seed, and keeps nothing, so
that a run that is taken up, replayed or forked has the same archive. Recorded values only choose parents:
whether a candidate is better, the kernel decides on pairs.

Tries (trials of any outcome) come to the islands in turn. An island keeps its best `population` members;
after every `migrate` tries each also gets the best member of the island before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from spak.errors import UserError
from spak.patch import blocks
from spak.ports import Trial
from spak.proposers.evolving.options import Options

START = 0
"""The number of the start; candidates have those of the table of candidates, from 1."""


@dataclass(frozen=True, slots=True)
class Member:
    """A version of the blocks; lower `loss` is better, None where nothing was measured."""

    number: int
    texts: Mapping[str, str]
    loss: float | None

    @property
    def rank(self) -> tuple[bool, float, int]:
        """What members are ordered by, the best first."""
        return self.loss is None, self.loss or 0.0, self.number


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that came to nothing, or to something slower."""

    number: int
    """0 where an answer was refused: it has no number."""
    texts: Mapping[str, str]
    """Its blocks that differ from the start's."""
    code: str
    said: str


@dataclass(frozen=True, slots=True)
class Archive:
    """All that is known before a question."""

    tries: int
    islands: tuple[tuple[Member, ...], ...]
    """The members of each, the best first; the start is one of them until better ones take its place."""
    failures: tuple[Failure, ...]
    known: frozenset[tuple[tuple[str, str], ...]]
    """Every version that was tried, the start with them."""
    start: Member


@dataclass(frozen=True, slots=True)
class Drawn:
    """For whom the next question is asked: an island, and one parent or two."""

    island: int
    parent: Member
    other: Member | None = None

    @property
    def params(self) -> dict[str, Any]:
        """How the candidate's row names its origin."""
        numbers = [self.parent.number] + ([self.other.number] if self.other else [])
        return {"island": self.island + 1, "parents": "+".join(map(str, numbers))}


def fold(marked: blocks.Marked, history: Sequence[Trial], options: Options) -> Archive:
    """The archive after a history."""
    start = Member(START, marked.blocks, _start_loss(history, options))
    islands = [[start] for _ in range(options.islands)]
    failures: list[Failure] = []
    known = {key(marked.blocks)}
    number = 0
    for tries, trial in enumerate(history):
        if tries and tries % options.migrate == 0:
            _migrate(islands, options.population)
        if trial.outcome == "refused":
            failures.append(Failure(0, {}, trial.code, trial.said))
            continue
        number += 1
        texts = _texts(trial, marked)
        if texts is None:
            continue
        known.add(key(texts))
        changed = {name: text for name, text in texts.items() if text != marked.blocks[name]}
        loss = _loss(trial.value, options)
        if trial.outcome == "fail" or loss is None:
            failures.append(Failure(number, changed, trial.code, trial.said))
            continue
        if _slower(trial, options):
            ratio = f"{trial.ratio:.2f} times the value of the best of its time"
            failures.append(Failure(number, changed, "not_better", ratio))
        _join(islands[_island(trial, tries, options)], Member(number, texts, loss), options.population)
    if history and len(history) % options.migrate == 0:
        _migrate(islands, options.population)
    return Archive(len(history), tuple(map(tuple, islands)), tuple(failures), frozenset(known), start)


def drawn(archive: Archive, seed: int, options: Options) -> Drawn:
    """Who is shown in the next question, drawn by the run's seed and the number of tries."""
    draw = Random(f"{seed}/evolve/{archive.tries}")
    island = archive.tries % options.islands
    pool = archive.islands[island]
    parent = _tournament(pool, draw)
    others = [member for member in pool if member.number != parent.number]
    if others and draw.random() * 100 < options.crossover:
        return Drawn(island, parent, _tournament(others, draw))
    return Drawn(island, parent)


def key(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What makes two versions the same one: their texts but for white space at the ends of lines."""
    return tuple(
        (name, "\n".join(line.rstrip() for line in text.strip("\n").split("\n")))
        for name, text in sorted(texts.items())
    )


def _tournament(pool: Sequence[Member], draw: Random) -> Member:
    """The better one of two that are drawn; the pool is in order."""
    return pool[min(int(draw.random() * len(pool)) for _ in range(2))]


def _migrate(islands: list[list[Member]], population: int) -> None:
    best = [island[0] for island in islands]
    for island, newcomer in zip(islands, [best[-1], *best[:-1]], strict=True):
        _join(island, newcomer, population)


def _join(island: list[Member], newcomer: Member, population: int) -> None:
    if all(newcomer.number != member.number for member in island):
        island.append(newcomer)
        island.sort(key=lambda member: member.rank)
        del island[population:]


def _texts(trial: Trial, marked: blocks.Marked) -> Mapping[str, str] | None:
    """The blocks of a tried file; None where it is none of this start's."""
    content = trial.args.get("content")
    try:
        found = blocks.read(content) if isinstance(content, str) else None
    except UserError:
        return None
    return found.blocks if found is not None and found.around == marked.around else None


def _island(trial: Trial, tries: int, options: Options) -> int:
    named = trial.params.get("island")
    number = int(named) - 1 if isinstance(named, (int, float)) and math.isfinite(named) else tries
    return number % options.islands


def _start_loss(history: Sequence[Trial], options: Options) -> float | None:
    """The start's, from the first candidate that was compared with it."""
    for trial in history:
        if trial.outcome in ("improved", "measured") and trial.value is not None and trial.ratio:
            return _loss(trial.value / trial.ratio, options)
    return None


def _loss(value: float | None, options: Options) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if options.better == "lower" else -value


def _slower(trial: Trial, options: Options) -> bool:
    if trial.outcome != "measured" or trial.ratio is None:
        return False
    return trial.ratio > 1 if options.better == "lower" else trial.ratio < 1
