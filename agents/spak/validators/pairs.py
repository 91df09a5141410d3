"""Paired sampling of two sides until the rule has decided: the rules of measuring that profilers share.

Takes two functions that sample a side on an input, what draws an input and a coin, and a MetricRule's
integers; gives the pairs of a Measurement. It knows neither what is sampled nor in which unit, and names no
winner: the kernel derives that from the pairs, with the same `decide` that stopped the sampling here.

A pair is three couples. Both sides of a couple get the same fresh input, in an order that is drawn.
Source: notes on measuring (decision rule).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from spak.kernel.metric_decision import decide

COUPLES = 3
PROCESSES = 4
"""Processes of a side, taken round robin; a sampler that keeps none ignores the index."""

Input = TypeVar("Input")
Sample = Callable[[int, Input], int]
"""Gives a positive integer for a process's index and an input."""


@dataclass(frozen=True, slots=True)
class Sampling(Generic[Input]):
    """How inputs and orders are drawn, and when time is up."""

    draw: Callable[[], Input]
    coin: Callable[[], bool]
    late: Callable[[], bool]
    couples: int = COUPLES


def compare(
    sampling: Sampling[Input],
    candidate: Sample[Input],
    rival: Sample[Input],
    name: str,
    rule: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Pairs `{rival, process, order, candidate, incumbent}` in the order taken, until the rule has decided.

    Ends early, undecided, when the first pair is worse than the rival by more than a tenth or when time is
    up: an undecided comparison is no improvement. `rule["higher"]` other than 0: larger values are better.
    """
    higher = bool(rule.get("higher"))
    pairs: list[dict[str, Any]] = []
    while len(pairs) < rule["max_pairs"]:
        pairs.append(_pair(sampling, candidate, rival, name, len(pairs) % PROCESSES))
        if decide(pairs, rule, higher).outcome != "undecided" or sampling.late():
            break
        if len(pairs) == 1 and _hopeless(pairs[0], higher):
            break
    return pairs


def _hopeless(pair: Mapping[str, Any], higher: bool) -> bool:
    mine: list[int] = pair["candidate"]
    other: list[int] = pair["incumbent"]
    return 11 * max(mine) < 10 * max(other) if higher else 10 * min(mine) > 11 * min(other)


def _pair(
    sampling: Sampling[Input], candidate: Sample[Input], rival: Sample[Input], name: str, index: int
) -> dict[str, Any]:
    seen: dict[str, list[int]] = {"c": [], "i": []}
    order = ""
    for _ in range(sampling.couples):
        given = sampling.draw()
        couple = "ci" if sampling.coin() else "ic"
        order += couple
        for letter in couple:
            seen[letter].append((candidate if letter == "c" else rival)(index, given))
    return {"rival": name, "process": index, "order": order, "candidate": seen["c"], "incumbent": seen["i"]}
