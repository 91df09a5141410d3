"""A parameter space: named choices and requirements, and the numbering of its valid points.

Takes the SPACE of a spec as JSON; gives a `Space` whose valid points are the numbers 0 .. size-1. Parameters
that a requirement ties together form a component whose valid combinations are listed once; all others stand
alone. A point is one combination of each component, so that counting, drawing evenly and finding what has not
been tried need neither luck nor a walk through the whole space.

    {"TILE": [16, 32, 64],                  choices: numbers, strings, true and false
     "ROWS": {"range": [1, 7, 2]},          1, 3, 5, 7 (a step that is left out is 1); decimals as written
     "WIDTH": {"log": [4, 16]},             4, 8, 16: doubled at each step
     "require": ["TILE % WIDTH == 0"]}      see spak.proposers.expression
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any

from spak import canon
from spak.cancel import Cancel, check
from spak.errors import UsageError, UserError
from spak.proposers.expression import Number, Requirement, Scalar, requirement

MAX_PARAMETERS = 64
MAX_CHOICES = 256
MAX_REQUIREMENTS = 64
MAX_COMBINATIONS = 20_000
"""Of one component: what requirements tie together is listed in full."""

Point = Mapping[str, Scalar]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HINT = (
    'a space is {"NAME": [choices], "NAME": {"range": [a, b, step]}, "NAME": {"log": [a, b]}, "require": []}'
)


@dataclass(frozen=True, slots=True)
class Component:
    """Parameters that belong together, and their valid combinations in order."""

    names: tuple[str, ...]
    combinations: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True, slots=True)
class Space:
    """The points that may be tried, numbered from 0; `size` counts those whose requirements hold."""

    choices: Mapping[str, tuple[Scalar, ...]]
    components: tuple[Component, ...]
    size: int
    """How many valid points there are."""

    def point(self, number: int) -> dict[str, Scalar]:
        """The point of that number, its parameters by name."""
        found: dict[str, Scalar] = {}
        for component in self.components:
            number, rank = divmod(number, len(component.combinations))
            found.update(zip(component.names, component.combinations[rank], strict=True))
        return {name: found[name] for name in self.choices}

    def number(self, point: Mapping[str, Any]) -> int | None:
        """The number of a point; None for what is not a valid point of this space."""
        if set(point) != set(self.choices):
            return None
        number = 0
        for component in reversed(self.components):
            values = tuple(point[name] for name in component.names)
            try:
                rank = component.combinations.index(values)
            except ValueError:
                return None
            if any(type(a) is not type(b) for a, b in zip(component.combinations[rank], values, strict=True)):
                return None
            number = number * len(component.combinations) + rank
        return number

    def nearest(self, point: Point) -> int:
        """The valid point that differs least from one that may break requirements; the first of equals."""
        found = dict(point)
        for component in self.components:
            here = tuple(point[name] for name in component.names)
            best = min(component.combinations, key=lambda item: _distance(item, here))
            found.update(zip(component.names, best, strict=True))
        return self._numbered(found)

    def untried(self, rng: random.Random, tried: frozenset[int]) -> int | None:
        """A point drawn evenly from those not tried; None when there is none."""
        taken = sorted(number for number in tried if 0 <= number < self.size)
        if len(taken) >= self.size:
            return None
        rank = rng.randrange(self.size - len(taken))
        for number in taken:
            if number > rank:
                break
            rank += 1
        return rank

    def neighbours(self, number: int, cancel: Cancel | None = None) -> list[int]:
        """The points that set one parameter to another value, others only as far as validity demands.

        Raises: Cancelled.
        """
        found: dict[int, None] = {}
        rest, weight = number, 1
        for component in self.components:
            rest, rank = divmod(rest, len(component.combinations))
            now = component.combinations[rank]
            ranks = {combination: place for place, combination in enumerate(component.combinations)}
            for place, name in enumerate(component.names):
                for value in self.choices[name]:
                    check(cancel)
                    if value != now[place]:
                        near = [(value,)] if len(now) == 1 else _nearest(component, now, place, value)
                        for combination in near:
                            if combination in ranks:
                                found[number + (ranks[combination] - rank) * weight] = None
            weight *= len(component.combinations)
        return list(found)

    def _numbered(self, point: Mapping[str, Any]) -> int:
        number = self.number(point)
        assert number is not None
        return number


def parse(space: Mapping[str, Any]) -> Space:
    """The space that the JSON describes; the order of its members means nothing.

    Raises: UsageError `tuner.space`.
    """
    try:
        text = canon.dumps(_plain(space))
    except UserError as error:
        raise _error(f"the space is not plain JSON: {error.message}") from error
    return _parse(text)


@lru_cache(maxsize=16)
def _parse(text: bytes) -> Space:
    items = canon.loads(text)
    requirements = items.pop("require", [])
    if not items:
        raise _error("the space has no parameter")
    if len(items) > MAX_PARAMETERS:
        raise _error(f"the space has more than {MAX_PARAMETERS} parameters")
    choices = {name: _choices(name, value) for name, value in items.items()}
    if not isinstance(requirements, list) or not all(isinstance(item, str) for item in requirements):
        raise _error("`require` is not a list of expressions")
    if len(requirements) > MAX_REQUIREMENTS:
        raise _error(f"the space has more than {MAX_REQUIREMENTS} requirements")
    names = frozenset(choices)
    rules = [requirement(item, names) for item in requirements]
    components = tuple(_component(choices, group, rules) for group in _groups(choices, rules))
    return Space(choices, components, prod(len(component.combinations) for component in components))


def _choices(name: str, value: Any) -> tuple[Scalar, ...]:
    if not _NAME.fullmatch(name):
        raise _error(f"`{name[:70]}` is no name for a parameter")
    match value:
        case list() if value:
            found = value
        case {"range": [low, high, *rest], **extra} if not extra and _numbers(low, high, *rest):
            found = _range(name, low, high, *rest)
        case {"log": [low, high], **extra} if not extra and _numbers(low, high) and low > 0:
            doubled = (low * 2**k for k in range(MAX_CHOICES + 1))
            found = list(itertools.takewhile(lambda x: x <= high, doubled))
        case _:
            raise _error(f"`{name}` is neither a list of choices, nor a range, nor a log range above 0")
    if not found or len(found) > MAX_CHOICES:
        raise _error(f"`{name}` has {'no choice' if not found else f'more than {MAX_CHOICES} choices'}")
    if not all(isinstance(item, bool | int | float | str) for item in found):
        raise _error(f"`{name}` has a choice that is no number, no string and not true or false")
    if len(set(found)) != len(found):
        raise _error(f"`{name}` has the same choice twice")
    return tuple(int(item) if isinstance(item, float) and item.is_integer() else item for item in found)


def _numbers(*values: Any) -> bool:
    return len(values) <= 3 and all(type(value) in (int, float) for value in values)


def _range(name: str, low: Number, high: Number, step: Number = 1) -> list[Scalar]:
    """Whole steps of the decimals that were written: 0.1, 0.2, 0.3, where adding floats would pass 0.3."""
    first, last, each = (Fraction(str(number)) for number in (low, high, step))
    if each <= 0 or (last - first) / each >= MAX_CHOICES:
        raise _error(f"`{name}`: the step is above 0, and a range has at most {MAX_CHOICES} values")
    values = (first + k * each for k in range((last - first) // each + 1))
    return [int(value) if value.denominator == 1 else float(value) for value in values]


def _groups(choices: Mapping[str, Any], rules: Sequence[Requirement]) -> list[tuple[str, ...]]:
    """The parameters in groups that no requirement crosses, by name."""
    group = {name: name for name in choices}
    for rule in rules:
        joined = {group[name] for name in rule.names}
        if joined:
            leader = min(joined, key=list(choices).index)
            group = {name: leader if label in joined else label for name, label in group.items()}
    return [
        tuple(name for name in choices if group[name] == label) for label in dict.fromkeys(group.values())
    ]


def _component(
    choices: Mapping[str, tuple[Scalar, ...]], names: tuple[str, ...], rules: Sequence[Requirement]
) -> Component:
    if prod(len(choices[name]) for name in names) > MAX_COMBINATIONS:
        raise _error(
            f"the requirements tie {', '.join(names)} together: more than {MAX_COMBINATIONS} combinations"
        )
    mine = [rule for rule in rules if rule.names <= set(names)]
    combinations = tuple(
        values
        for values in itertools.product(*(choices[name] for name in names))
        if all(rule.holds(dict(zip(names, values, strict=True))) for rule in mine)
    )
    if not combinations:
        raise _error(f"no combination of {', '.join(names)} meets the requirements")
    return Component(names, combinations)


def _nearest(
    component: Component, now: tuple[Scalar, ...], place: int, value: Scalar
) -> list[tuple[Scalar, ...]]:
    """The valid combinations with that value at that place that change the fewest others."""
    found: list[tuple[Scalar, ...]] = []
    least = len(now) + 1
    for combination in component.combinations:
        if combination[place] == value:
            changed = _distance(combination, now)
            if changed < least:
                found, least = [], changed
            if changed == least:
                found.append(combination)
    return found


def _distance(one: tuple[Scalar, ...], other: tuple[Scalar, ...]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _error(message: str) -> UsageError:
    return UsageError("tuner.space", message, _HINT)
