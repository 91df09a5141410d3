"""Seed 001's benchmark: twenty spreadsheets, a scripted model with faults, a chat loop and SPAK around it.

The floor is the chat loop on the same seeds, or what the row names. Tokens are compared where both arms had
every file right; the chat loop's mean over all pipelines is mostly its loops. `python -m bench.spreadsheets`
prints all of it, with intervals and the seed's table, and bench/RESULTS.md says what a scripted model cannot
show.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench.sizes import sized
from bench.spreadsheets import figures
from bench.spreadsheets.figures import APART, CHAT, COUNTING, OURS, PRUNED, ROLLED, WATCHED, Outcome

PIPELINES = sized(50, 3)
CLAIMED = {PRUNED: ("pruning", 55), WATCHED: ("the watchdog", 20), ROLLED: ("rollback", 5)}
"""Percentage points of the tokens that the seed claims each part saves."""


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    found = figures.outcomes(PIPELINES)
    chat, ours = figures.of(found, CHAT), figures.of(found, OURS)
    theirs, mine = figures.both_right(found, CHAT, OURS)
    _, low, high = figures.mean([b.tokens / a.tokens for a, b in zip(theirs, mine, strict=True)])
    share = f"{len(mine)} of {PIPELINES}; of the floor, 95 %: {low:.3f} to {high:.3f}"
    made = [
        _row(f"tokens, both right ({share})", _tokens(mine), _tokens(theirs), "tokens", "<= 0.4 of floor"),
        _row("tokens of all pipelines", _tokens(ours), _tokens(chat), "tokens"),
        _counted("pipelines with every file right", "whole", ours, chat, ">= 1 of floor"),
        _counted("corrupted files", "corrupted", ours, chat, "<= 0"),
        _counted("pipelines with a loop that nothing interrupted", "loop", ours, chat, "<= 0"),
        _row("pipelines that verify and replay", _count(ours, "replayed"), PIPELINES, "", ">= 1 of floor"),
    ]
    for arm, (part, claimed) in CLAIMED.items():
        off = figures.of(found, arm)
        saved = 100 * (_tokens(off) - _tokens(ours)) / _tokens(figures.of(found, COUNTING))
        made.append(_row(f"tokens that {part} saves, beside the seed's claim", saved, claimed, "points"))
        made.append(_row(f"corrupted files without {part}", _count(off, "corrupted"), None, "files"))
    for arm in (COUNTING, APART):
        theirs, mine = figures.both_right(found, arm, OURS)
        made.append(
            _row(f"tokens where both are right; floor: {arm}", _tokens(mine), _tokens(theirs), "tokens")
        )
    return [
        *made,
        _row(
            "first calls that fit, of the same draws",
            100 * figures.first(ours),
            100 * figures.first(chat),
            "%",
        ),
        _row(
            "calls to mend a bad one (same draws)",
            figures.retries(ours),
            figures.retries(chat),
            "calls",
        ),
        _row("a pipeline without waiting for a model", _seconds(ours), _seconds(chat), "s"),
        _row(
            "CPU of all pipelines, on each of two cores", sum(o.cpu_s for o in found) / 2, None, "s", "< 180"
        ),
    ]


def _tokens(found: Sequence[Outcome]) -> float:
    return statistics.fmean(outcome.tokens for outcome in found)


def _seconds(found: Sequence[Outcome]) -> float:
    return statistics.fmean(outcome.seconds for outcome in found)


def _count(found: Sequence[Outcome], member: str) -> int:
    return sum(int(getattr(outcome, member)) for outcome in found)


def _counted(
    name: str, member: str, ours: Sequence[Outcome], chat: Sequence[Outcome], aim: str
) -> dict[str, Any]:
    return _row(name, _count(ours, member), _count(chat, member), "", aim)


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str = "") -> dict[str, Any]:
    floor = None if floor is None else round(floor, 3)
    return {"name": name, "ours": round(ours, 3), "floor": floor, "unit": unit, "aim": aim}
