"""Pools of real runs whose outcome has a known rate: what A/A trials and planted regressions are drawn from.

A scripted model passes an attempt with chance RATE, or LOSS less where the spec says HURRY. Each run goes
through the kernel and is judged by its validator; `Pool.pairs` then draws one run of each spec, each by
itself, so that equal specs differ by chance as those of a model would. Drawing again from a few hundred
runs of each spec instead of repeating every run is what lets thousands of pairs be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from bench.planted import work
from bench.scripted import checked, exited, ledger, planned, root
from spak.evolve.campaigns import Pair
from spak.kernel.state import Effect

RATE, LOSS = 0.8, 0.1
HURRY, CAREFUL = "Hurry.", "Take care."
"""Heuristics that make the scripted model worse and better by LOSS; it does not look at any other."""
GRAIN, STRIDE = 1_000, 617
"""Every GRAIN seeds in a row hold the rate exactly, in an order that looks drawn."""
SPEC = work(1, 'SYSTEM_MODEL M { HEURISTIC "One." }')


def passes(text: str, seed: int) -> bool:
    """Whether a run of a spec succeeds: made by the kernel, judged by the validator."""
    wins = seed * STRIDE % GRAIN < GRAIN * (RATE - LOSS * (HURRY in text) + LOSS * (CAREFUL in text))

    def script(effect: Effect, count: int) -> object:
        if effect.act == "plan":
            return planned(("write_file", {"path": "a.txt", "content": f"draft {seed}"}))
        if effect.act == "validate":
            return checked(wins)
        return exited(0, "done", **({"r3": root(1)} if effect.cls == "effect" else {}))

    run = ledger(text, script)  # type: ignore[arg-type]
    return run[-1].kind == "end" and run[-1].body["state"] == "succeeded"


@dataclass(slots=True)
class Pool:
    """`size` runs of each text that is asked for, made at its first pair and kept by what the model sees."""

    size: int
    known: dict[str, list[bool]] = field(default_factory=dict)

    def of(self, text: str) -> list[bool]:
        word = next((item for item in (HURRY, CAREFUL) if item in text), "")
        if word not in self.known:
            self.known[word] = [passes(text, number) for number in range(self.size)]
        return self.known[word]

    def rate(self, text: str) -> float:
        found = self.of(text)
        return sum(found) / len(found)

    def pairs(self, base: str, draw: Random) -> Callable[[str, int, str], Pair]:
        """What a campaign judges with: one run of each, drawn."""

        def pair(case: str, k: int, text: str) -> Pair:
            before, after = draw.choice(self.of(base)), draw.choice(self.of(text))
            return Pair(case, k, after - before)

        return pair
