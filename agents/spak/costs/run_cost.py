"""What answers of models cost: the one place where it is read from records and summed.

Takes the `side` of a record (JSON that an untrusted host may have written); gives a Cost, and Costs add up.
The budgets of a run, `spak show`, the findings and every page count by it, so that they agree. It knows no
prices (spak.costs.prices) and decides nothing: who compares a sum with a budget is spak.kernel.budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOKENS, NANOUSD = "tokens", "cost_nanousd"
"""Members of `side`: tokens that count against a BUDGET, and billionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What some answers cost together."""

    answers: int = 0
    tokens: int = 0
    """Of prompts and answers; where an engine said nothing, as the runner counted them."""
    nanousd: int = 0
    """Billionths of a US dollar, of the answers that have a price."""
    priced: int = 0
    """How many answers have a price, 0 included."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.answers + other.answers,
            self.tokens + other.tokens,
            self.nanousd + other.nanousd,
            self.priced + other.priced,
        )


NOTHING = Cost()


def cost_of(side: Any) -> Cost:
    """What an answer of a model cost, by the `side` of its record; NOTHING of others and of odd members."""
    if not isinstance(side, Mapping):
        return NOTHING
    tokens, nanousd = _count(side.get(TOKENS)), _count(side.get(NANOUSD))
    if not tokens and not nanousd:
        return NOTHING
    return Cost(1, tokens, nanousd, int(type(side.get(NANOUSD)) is int))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
