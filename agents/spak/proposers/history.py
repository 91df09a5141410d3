"""What a search knows: the points tried so far, each with its loss.

Takes the Trials of a PlanRequest and the Space; gives Observations in the order of the trials. A loss is the
metric with its sign turned so that lower is better, on a log scale where all values are positive (times
differ by factors, not by steps); a failure has none. Trials of other spaces are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spak.ports import Trial
from spak.proposers.space import Space

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Observation:
    """A point that was tried; without a loss where it failed."""

    number: int
    """The point, as the space numbers it."""
    loss: float | None
    """Lower is better; None when the candidate failed or was never measured."""


def observations(space: Space, history: Sequence[Trial], better: Better) -> tuple[Observation, ...]:
    """One observation for each point tried, at its first place; the last measurement counts."""
    values: dict[int, float | None] = {}
    for trial in history:
        number = space.number(_plain(trial.params))
        if number is not None:
            value = _value(trial)
            values[number] = value if value is not None else values.get(number)
    sign = 1.0 if better == "lower" else -1.0
    measured = [value for value in values.values() if value is not None]
    scale = math.log if measured and min(measured) > 0 else float
    return tuple(
        Observation(number, None if value is None else sign * scale(value))
        for number, value in values.items()
    )


def _value(trial: Trial) -> float | None:
    if trial.outcome == "fail" or trial.value is None or not math.isfinite(trial.value):
        return None
    return float(trial.value)


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }
