"""The proposer `tuner`: candidates from a declared parameter space, without a model.

Takes a PlanRequest whose options name a strategy and a tool and whose space declares the parameters; gives
calls of that tool, each with one point of the space that was not tried before, and nothing when every point
was. The answer is a function of the request alone: the history is folded anew each time and every draw is
seeded by the run's seed and the turn, so a resumed run asks and gets the same. It measures nothing and keeps
nothing.

    tool        the tool that each candidate calls
    strategy    bayes (the default of new runs), portfolio, surrogate, climb, random, anneal, tpe
    args        the arguments of every call; the point is put beside them under `params_key`
    params_key  `params`; the empty string puts each parameter among the arguments by its own name
    batch       candidates for each plan, best first (1)
    better      lower or higher metric (lower)
    starts      random points before anything clever (6; `random` has no use for it)
    patience    points without progress before a climb starts again elsewhere (12)
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak.cancel import apart
from spak.errors import UsageError, UserError
from spak.lang.catalog import NamedEntry
from spak.ports import Candidate, PlanRequest
from spak.proposers import space as spaces
from spak.proposers.history import Better, observations
from spak.proposers.strategies import STRATEGIES, Search

DEFAULTS: Mapping[str, Any] = {"strategy": "bayes"}
"""What new runs take where their spec does not say. They record it (spak.runner.searches), so that a run
keeps the strategy that it began with; Options has what runs took before that was recorded."""
MAX_BATCH = 64
MAX_COUNT = 10_000

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "minLength": 1},
        "strategy": {"type": "string", "enum": list(STRATEGIES)},
        "args": {"type": "object"},
        "params_key": {"type": "string"},
        "batch": {"type": "integer", "minimum": 1, "maximum": MAX_BATCH},
        "better": {"type": "string", "enum": ["lower", "higher"]},
        "starts": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
        "patience": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
    },
    "required": ["tool"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of PROPOSER tuner."""

    tool: str
    strategy: str = "surrogate"
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
                    request.seed,
                    request.turn,
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
    properties: Mapping[str, Mapping[str, Any]] = _SCHEMA["properties"]
    for name, value in options.items():
        if name not in properties:
            raise _error(f"the tuner has no option `{name}`")
        problem = _problem(properties[name], value)
        if problem:
            raise _error(f"`{name}` {problem}")
    if "tool" not in options:
        raise _error("the tuner needs the name of the tool that it calls")
    found = Options(**options)
    if found.params_key and found.params_key in found.args:
        raise _error(f"`args` already holds `{found.params_key}`, where the parameters go")
    return found


def _problem(schema: Mapping[str, Any], value: Any) -> str:
    match schema["type"]:
        case "integer" if type(value) is not int or not schema["minimum"] <= value <= schema["maximum"]:
            return f"is an integer from {schema['minimum']} to {schema['maximum']}"
        case "object" if not isinstance(value, Mapping):
            return "is an object"
        case "string" if not isinstance(value, str) or len(value) < schema.get("minLength", 0):
            return "is a text"
        case "string" if value not in schema.get("enum", [value]):
            return f"is one of {', '.join(schema['enum'])}"
        case _:
            return ""


def _candidate(options: Options, point: Mapping[str, Any], score: int) -> Candidate:
    args = {**options.args, **({options.params_key: dict(point)} if options.params_key else point)}
    return Candidate(options.tool, args, score, dict(point))


def _error(message: str) -> UsageError:
    return UsageError("tuner.options", message, f"options are {', '.join(_SCHEMA['properties'])}")
