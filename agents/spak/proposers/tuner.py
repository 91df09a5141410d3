"""The proposer `tuner`: candidates from a declared parameter space, without a model.

Takes a PlanRequest whose options name a strategy and a tool and whose space declares the parameters; gives
calls of that tool, each with one point of the space that was not tried before, and nothing when every point
was. The answer is a function of the request alone: the history is folded anew each time and every draw is
seeded by the run's seed and the turn, so a resumed run asks and gets the same. It measures nothing and keeps
nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak import schema_parts as parts
from spak.cancel import apart
from spak.errors import UsageError, UserError
from spak.lang.catalog import NamedEntry
from spak.ports import Candidate, PlanRequest
from spak.proposers import space as spaces
from spak.proposers.fitting import fit
from spak.proposers.history import Better, observations
from spak.proposers.strategies import STRATEGIES, Search

DEFAULTS: Mapping[str, Any] = {"strategy": "bayes"}
"""What new runs take where their spec does not say. They record it (spak.runner.searches), so that a run
keeps the strategy that it began with."""
CODE = "tuner.options"
MAX_BATCH = 64
MAX_COUNT = 10_000

_SCHEMA = parts.members(
    ["tool"],
    tool={"description": "The tool that each candidate calls.", "type": "string", "minLength": 1},
    strategy=parts.choice("How the next point is chosen.", tuple(STRATEGIES), DEFAULTS["strategy"]),
    args={"description": "Arguments of every call.", "type": "object"},
    params_key={
        "description": "The argument that holds the point; empty: each parameter is an argument of its own.",
        "type": "string",
        "default": "params",
    },
    batch=parts.whole(
        "Candidates for each plan, best first; the kernel selects the one with the highest score.",
        1,
        MAX_BATCH,
        1,
    ),
    better=parts.choice("Whether a lower or a higher metric is better.", ("lower", "higher"), "lower"),
    starts=parts.whole("Random points before the strategy begins; half of them for bayes.", 1, MAX_COUNT, 6),
    patience=parts.whole("Points without progress before climb starts again elsewhere.", 1, MAX_COUNT, 12),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of PROPOSER tuner."""

    tool: str
    strategy: str = DEFAULTS["strategy"]
    args: Mapping[str, Any] = field(default_factory=dict)
    params_key: str = "params"
    batch: int = 1
    better: Better = "lower"
    starts: int = 6
    patience: int = 12


class Tuner:
    """The proposer that searches a space of parameters."""

    entry = NamedEntry("tuner", "searches a declared parameter space", _SCHEMA)

    def propose(self, request: PlanRequest) -> Sequence[Candidate]:
        """Candidates, best first.

        Raises: UsageError `tuner.options`, `tuner.space`; Cancelled.
        """
        return apart(lambda: self._proposed(request), request.cancel)

    def _proposed(self, request: PlanRequest) -> Sequence[Candidate]:
        options = parse_options(request.options)
        space = spaces.parse(request.space)
        seen = observations(space, request.history, options.better)
        prior = observations(space, request.prior, options.better)
        drawn: list[int] = []
        while len(drawn) < options.batch:
            rng = random.Random(f"{request.seed}/{request.turn}/{len(drawn)}")
            number = STRATEGIES[options.strategy](
                Search(
                    space,
                    seen,
                    tuple(drawn),
                    options.starts,
                    options.patience,
                    rng,
                    request.cancel,
                    prior,
                )
            )
            if number is None:
                break
            drawn.append(number)
        return [
            _candidate(options, space.point(number), len(drawn) - place) for place, number in enumerate(drawn)
        ]


def validate(options: Mapping[str, Any], space: Mapping[str, Any]) -> list[str]:
    """What is wrong with the options and the space of a tuner, each in a sentence; empty when nothing is."""
    problems: list[str] = []
    for parse, value in ((parse_options, options), (spaces.parse, space)):
        try:
            parse(value)
        except UserError as error:
            problems.append(error.message)
    return problems


def parse_options(options: Mapping[str, Any]) -> Options:
    """The options with their defaults.

    Raises: UsageError `tuner.options`.
    """
    fit(CODE, _SCHEMA, options)
    found = Options(**options)
    if found.params_key and found.params_key in found.args:
        raise UsageError(
            CODE,
            f"`args` already holds `{found.params_key}`, where the parameters go",
            "name another params_key",
        )
    return found


def _candidate(options: Options, point: Mapping[str, Any], score: int) -> Candidate:
    args = {**options.args, **({options.params_key: dict(point)} if options.params_key else point)}
    return Candidate(options.tool, args, score, dict(point))
