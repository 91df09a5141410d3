"""What the candidates of a campaign pass and use against the base, and which of them no other one beats.

`spending(tested)` compares tokens, cost and time of a candidate's pairs, with intervals;
`points(campaign)` places each candidate that has pairs, the base first, and marks the Pareto front. Pure.

A case is one observation: the mean over its pairs, golden ones among them. In passes a run without a result
counts against the candidate, whichever side it is of; in what was used its case is left out. Nothing here is
evidence for a verdict: pairs stop when the evidence of passes is enough, and of few pairs a place on the
front is chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spak.evolve.campaigns.campaign import Campaign, Half, Tested
from spak.evolve.experiments.summary import FIGURES, paired

Halves = Mapping[str, Sequence[tuple[Half, Half]]]


def spending(tested: Tested) -> dict[str, dict[str, Any]]:
    """Of each figure the means of base and candidate and their difference (`experiments.summary.paired`)."""
    cases = _by_case(tested)
    return {name: paired([_used(pairs, name) for pairs in cases.values()], name) for name in FIGURES}


def points(campaign: Campaign) -> list[dict[str, Any]]:
    """The base as number 0 with nothing gained, and each candidate with pairs whose runs are known: `gain`,
    the share of passes that it has more, and what it uses more of each of FIGURES, None where no case is
    known. `by` names the figure that the front goes by; `front`: no other passes as much for as little."""
    found: list[dict[str, Any]] = [
        {
            "number": 0,
            "verdict": "",
            "pairs": 0,
            "gain": 0.0,
            "passed": None,
            "more": dict.fromkeys(FIGURES, 0),
        }
    ]
    found += [_point(tested) for tested in campaign.tested if _by_case(tested)]
    by = _axis(found)
    for one in found:
        known = one["more"][by] is not None
        one |= {"by": by, "front": known and not any(_beats(other, one, by) for other in found)}
    return found


def _by_case(tested: Tested) -> Halves:
    found: dict[str, list[tuple[Half, Half]]] = {}
    for pair in tested.pairs:
        if pair.used is not None:
            found.setdefault(pair.case, []).append(pair.used)
    return found


def _used(pairs: Sequence[tuple[Half, Half]], name: str) -> tuple[float, float] | None:
    """The means of a case; None where a run of it has no result."""
    if any(half.outcome == "void" for pair in pairs for half in pair):
        return None
    sides = zip(*pairs, strict=True)
    base, candidate = (sum(getattr(half, name) for half in side) / len(pairs) for side in sides)
    return base, candidate


def _passed(pairs: Sequence[tuple[Half, Half]]) -> tuple[float, float]:
    """The shares of passes of a case; a base without a result passed, a candidate without one did not."""
    base = sum(half.outcome != "fail" for half, _ in pairs)
    candidate = sum(half.outcome == "pass" for _, half in pairs)
    return base / len(pairs), candidate / len(pairs)


def _point(tested: Tested) -> dict[str, Any]:
    cases = _by_case(tested)
    shares = [_passed(pairs) for pairs in cases.values()]
    base, candidate = (sum(side) / len(shares) for side in zip(*shares, strict=True))
    more: dict[str, float | None] = {}
    for name in FIGURES:
        known = [one for one in (_used(pairs, name) for pairs in cases.values()) if one is not None]
        more[name] = sum(after - before for before, after in known) / len(known) if known else None
    return {
        "number": tested.number,
        "verdict": tested.verdict,
        "pairs": sum(len(pairs) for pairs in cases.values()),
        "gain": candidate - base,
        "passed": [base, candidate],
        "more": more,
    }


def _axis(found: Sequence[Mapping[str, Any]]) -> str:
    """Tokens; time where no model was asked."""
    return "tokens" if any(one["more"]["tokens"] for one in found) else "ms"


def _beats(one: Mapping[str, Any], other: Mapping[str, Any], by: str) -> bool:
    """Whether it passes at least as much and uses no more, and is not the same in both."""
    more, less = one["more"][by], other["more"][by]
    if more is None or less is None:
        return False
    ahead = one["gain"] >= other["gain"] and more <= less
    return bool(ahead and (one["gain"], more) != (other["gain"], less))
