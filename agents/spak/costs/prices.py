"""What calls cost: the shipped price table, the user's own over it, and the sums, all in integers.

A price is in micro-dollars per million tokens (3 000 000 is $3.00), a cost in nano-dollars (1e-9 USD),
rounded up per call, so that sums over a run are exact and a budget is never passed by rounding. A model that
the table does not list has no cost: None, never zero.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from spak.errors import UnavailableError, UsageError
from spak.inputs import read_text

_MOST = 10**12
DEAREST = 10**15
"""Nano-dollars: what a call costs at most, whatever its usage says; a record holds no number much larger."""


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars per million tokens, by kind."""

    input: int
    output: int
    cached: int
    """Input that came from a prefix cache."""
    cache_write: int
    """Input that was written to one."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Model name to price. A name that ends in `*` stands for all that begin so; the longest fit counts."""

    table: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of a model: its own, or that of the longest pattern that fits it."""
        if model in self.table:
            return self.table[model]
        fits = [name for name in self.table if name.endswith("*") and model.startswith(name[:-1])]
        return self.table[max(fits, key=len)] if fits else None

    def cost(self, model: str, usage: Mapping[str, int]) -> int | None:
        """Nano-dollars of a call that used these tokens; None when the model or its usage is not known."""
        price = self.of(model)
        if price is None:
            return None
        if price == _FREE:
            return 0
        if "input" not in usage or "output" not in usage:
            return None
        cached, written = usage.get("cached", 0), usage.get("cache_write", 0)
        fresh = max(0, usage["input"] - cached - written)
        total = (
            fresh * price.input
            + cached * price.cached
            + written * price.cache_write
            + usage["output"] * price.output
        )
        return min(-(-total // 1000), DEAREST)

    def bound(self, model: str, input_tokens: int, max_tokens: int) -> int | None:
        """The most that a call can cost: nothing cached, all written to the cache, the longest answer."""
        price = self.of(model)
        if price is None:
            return None
        dearest = max(price.input, price.cached, price.cache_write)
        return min(-(-(input_tokens * dearest + max_tokens * price.output) // 1000), DEAREST)


_FREE = Price(0, 0, 0, 0)


def load(own: Path | None = None) -> Prices:
    """The shipped prices with those of the user's file over them.

    Raises: UsageError `usage.config` when the file cannot be read or a price is no whole number.
    """
    if own is None:
        return Prices(_shipped())
    try:
        text = read_text(own)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            "usage.config", f"the price table {own} cannot be read: {reason}", "fix [llm] prices"
        ) from error
    return Prices({**_shipped(), **parse(text, own.name)})


def parse(text: str, name: str) -> Mapping[str, Price]:
    """The prices in a TOML text: a table per model. Raises: UsageError `usage.config`."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number too long, too
        raise UsageError("usage.config", f"{name} is not TOML: {error}", "fix it") from error
    return {model: _price(name, model, table) for model, table in values.items()}


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Price]:
    path = Path(__file__).with_name("prices.toml")
    return parse(path.read_text(encoding="utf-8"), path.name)


def _price(name: str, model: str, table: Any) -> Price:
    kinds = ("input", "output", "cached", "cache_write")
    given: dict[str, int] = table if isinstance(table, dict) else {}
    fits = all(key in kinds and type(value) is int and 0 <= value <= _MOST for key, value in given.items())
    if not fits or "input" not in given or "output" not in given:
        raise UsageError(
            "usage.config",
            f"{name}: the price of {model!r} is not whole micro-dollars per million tokens",
            f'["{model}"] with input = 3000000 and output = 15000000 is $3 and $15',
        )
    whole = given["input"]
    return Price(whole, given["output"], given.get("cached", whole), given.get("cache_write", whole))


def no_price(task: str) -> UnavailableError:
    """A budget in money, and a model that nobody knows the price of."""
    return UnavailableError(
        "llm.no_price",
        f"BUDGET has a cost, and the model of TASK {task} has no price",
        "write it into a file of your own, named by [llm] prices (docs/models.md), or leave the cost out",
    )
