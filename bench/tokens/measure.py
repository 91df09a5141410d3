"""What prompts cost and what they still hold: counted over a set of recorded runs, run by run.

    prompt tokens   of every prompt of every turn, 4 for the frame of each item
    cost            a token of the longest common beginning with the prompt before it counts 0.1 (or 0.25)
    peak            the longest prompt
    literal recall  of the literals in a call's argument values (spak.kernel.memory.literals) that an earlier
                    message of the environment or the system showed: how many stand in the prompt as sent,
                    how many are found by the tool `recall`, how many are lost

A turn that needs a literal which only `recall` finds is charged for it: one more call with the whole prompt
from the cache, and a search's answer of RECALLED tokens at the full price. So a policy does not win by
hiding what is needed. Recorded turns cannot show whether a model would have acted otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

from bench.tokens.replay import Items, Prompts
from bench.tokens.trajectories import Message, Trajectory
from spak import tokens
from spak.kernel.memory import literals
from spak.ports import Call, Kept
from spak.tools.recall import Recall

RECALLED = 150


@dataclass
class Figures:
    """Of one run under one policy."""

    tokens: int = 0
    fresh: int = 0
    """Of these, tokens that no cache had."""
    peak: int = 0
    needed: int = 0
    shown: int = 0
    behind: int = 0
    recalls: int = 0

    def cost(self, cached: float) -> float:
        return self.fresh + cached * (self.tokens - self.fresh)


@dataclass(frozen=True)
class Texts:
    """An archive for `recall`, as a run's ledger is one."""

    texts: dict[int, str] = field(default_factory=dict)

    def refs(self) -> Sequence[Kept]:
        return [Kept(ref, "", len(text)) for ref, text in self.texts.items()]

    def text(self, ref: int) -> str | None:
        return self.texts.get(ref)


def measure(run: Trajectory, prompts: Callable[[Trajectory, dict[int, str]], Prompts]) -> Figures:
    """One run's figures. `prompts` may fill the texts that references stand for."""
    found, archive = Figures(), Texts()
    before: Items = ()
    seen, place = "", 0
    for items, turn in prompts(run, archive.texts):
        while run.messages[place] is not turn:
            message = run.messages[place]
            seen += message.text + "\n" if message.role != "assistant" else ""
            place += 1
        place += 1
        size, cached = tokens.count(items), tokens.count(_common(items, before))
        found.tokens += size
        found.fresh += size - cached
        found.peak = max(found.peak, size)
        before = items
        if _recall(found, turn, items, seen, archive):
            found.recalls += 1
            found.tokens += size + RECALLED
            found.fresh += RECALLED
    return found


def total(runs: Sequence[Figures]) -> Figures:
    made = Figures(peak=max(item.peak for item in runs))
    for item in runs:
        for name in ("tokens", "fresh", "needed", "shown", "behind", "recalls"):
            setattr(made, name, getattr(made, name) + getattr(item, name))
    return made


def saved(base: Sequence[Figures], other: Sequence[Figures], cached: float | None = None) -> float:
    """Percent of all prompt tokens saved, or of cost where a cached token has a price."""
    one, two = total(base), total(other)
    if cached is None:
        return 100 - 100 * two.tokens / one.tokens
    return 100 - 100 * two.cost(cached) / one.cost(cached)


def interval(
    base: Sequence[Figures], other: Sequence[Figures], cached: float | None = None
) -> tuple[float, float]:
    """95 % of 1,000 resamplings of the runs (bootstrap, seeded)."""
    draw, found = random.Random(5), []
    for _ in range(1000):
        picked = draw.choices(range(len(base)), k=len(base))
        found.append(saved([base[i] for i in picked], [other[i] for i in picked], cached))
    found.sort()
    return found[25], found[974]


def medians(base: Sequence[Figures], other: Sequence[Figures], cached: float) -> tuple[float, float]:
    """The median over runs of tokens saved and of cost saved, in percent."""
    pairs = list(zip(base, other, strict=True))
    return (
        median(100 - 100 * two.tokens / one.tokens for one, two in pairs),
        median(100 - 100 * two.cost(cached) / one.cost(cached) for one, two in pairs),
    )


def _common(items: Items, before: Items) -> Items:
    """The items that both prompts begin with: caches keep whole blocks."""
    count = 0
    for one, other in zip(items, before, strict=False):
        if one["text"] != other["text"]:
            break
        count += 1
    return items[:count]


def _recall(found: Figures, turn: Message, items: Items, seen: str, archive: Texts) -> bool:
    """Count the literals that a turn needs; whether it would have to recall one."""
    text = "\n".join(item["text"] for item in items)
    recalled = False
    for call in turn.calls:
        for word in dict.fromkeys(literals(call.args)):
            if word not in seen:
                continue
            found.needed += 1
            if word in text:
                found.shown += 1
            elif archive.texts and _found(word, archive):
                found.behind += 1
                recalled = True
    return recalled


def _found(word: str, archive: Texts) -> bool:
    call = Call("bench", "recall", {"search": word}, Path("/"), None, archive=archive)
    return _tool().run(call).exit == 0


@cache
def _tool() -> Recall:
    return Recall()
