"""Is the candidate better? The decision on paired samples, in integers only.

Takes the pairs of a Measurement in the order they were taken and a MetricRule's integers; gives a Verdict.
It reads no clock and trusts nobody's summary: minima and the first crossing are computed here, in live runs,
in replay and by the profiler that wants to know when to stop.

A pair is a win when the candidate's minimum beats the incumbent's by the margin. After n pairs with w wins,
3^w / 2^n is the capital of a player who bets half on each win; under "no gain" it exceeds `evidence` with a
probability of at most 1/evidence, however often one looks (Ville's inequality). The mirror ends a hopeless
comparison early. Source: notes on measuring; Shafer 2021, Ramdas et al. 2023 on e-processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

DEFAULTS: Mapping[str, int] = {"margin_num": 99, "margin_den": 100, "evidence": 20, "max_pairs": 80}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the pairs show; `pairs` and `wins` count those that were looked at."""

    outcome: Literal["improved", "not_improved", "undecided", "invalid"]
    pairs: int
    wins: int
    reason: str = ""


def decide(pairs: Sequence[Mapping[str, Any]], rule: Mapping[str, int], higher: bool = False) -> Verdict:
    """The verdict on pairs `{candidate: [..], incumbent: [..]}`.

    `invalid` when a sample is not a positive integer, a side is empty, more pairs than `max_pairs` were
    taken, or sampling went on after the verdict was reached (`reason` says which).
    """
    wins = 0
    for index, pair in enumerate(pairs, start=1):
        if index > rule["max_pairs"]:
            return Verdict("invalid", index, wins, "too_many_pairs")
        best = _minimum(pair.get("candidate"), higher)
        other = _minimum(pair.get("incumbent"), higher)
        if best is None or other is None:
            return Verdict("invalid", index, wins, "bad_sample")
        wins += is_win(best, other, rule["margin_num"], rule["margin_den"], higher)
        outcome = _crossed(index, wins, rule)
        if outcome is not None:
            if index < len(pairs):
                return Verdict("invalid", len(pairs), wins, "samples_past_verdict")
            return Verdict(outcome, index, wins)
    return Verdict("undecided", len(pairs), wins)


def _minimum(samples: object, higher: bool) -> int | None:
    if not isinstance(samples, (list, tuple)) or not samples:
        return None
    if any(type(sample) is not int or sample <= 0 for sample in samples):
        return None
    best: int = max(samples) if higher else min(samples)
    return best


def is_win(candidate: int, incumbent: int, num: int, den: int, higher: bool) -> bool:
    """Whether a pair is a win: below `num/den` of the incumbent, or above `den/num` of it for `higher`."""
    if higher:
        candidate, incumbent = incumbent, candidate
    return den * candidate < num * incumbent


def _crossed(pairs: int, wins: int, rule: Mapping[str, int]) -> Literal["improved", "not_improved"] | None:
    bar = rule["evidence"] * 2**pairs
    if 3**wins >= bar:
        return "improved"
    if 3 ** (pairs - wins) >= bar:
        return "not_improved"
    return None
