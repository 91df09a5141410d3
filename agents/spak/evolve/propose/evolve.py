"""Candidates by evolution: a population of specs over training cases, and those at the front of it.

`evolve` starts from the base and makes children by typed edits of three kinds: reflection (an edit of a
finding in the parent's own runs, failed ones first), settings (an option of a PROPOSER that has named values,
patience, retries and budgets downwards), and crossover of two specs of the front. A child that the gate
would not take from any proposer (form, privileges) is dropped before a run is spent on it. Parents are drawn
from the Pareto front over cases: a spec counts by the cases in which no other passes more often, or as often
at less cost (GEPA, arXiv 2507.19457).

It sees runs of training cases alone, through `run`, within a budget of runs. It accepts nothing: scores of a
small population are noise, and the gate judges what comes out on other cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from spak import canon
from spak.evolve.analyze import Trace, analyze
from spak.evolve.gate.candidate import MAX_OPS, Candidate
from spak.evolve.gate.form import form
from spak.evolve.gate.privileges import privileged
from spak.lang import ast, parse
from spak.lang.catalog import Catalog
from spak.lang.edit import Op, ops, to_json

OPENING = 3
"""Runs of each case under the base before the first child: findings need some."""
MISSES = 20
"""Children in a row that come to nothing before it ends."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One run of a training case."""

    passed: bool
    cost: float = 0.0
    trace: Trace | None = None


Run = Callable[[str, str, int], Scored]
"""Runs a case under a text for the k-th time."""


@dataclass(slots=True)
class Individual:
    """A spec of the population. `flat`: its edits are each of the base and not of one another."""

    edits: tuple[Op, ...]
    text: str
    flat: bool = True
    runs: dict[str, list[Scored]] = field(default_factory=dict)

    def score(self, case: str) -> tuple[float, float]:
        """The share of passes, and the mean cost as something to be large."""
        found = self.runs.get(case, [])
        count = max(len(found), 1)
        return sum(one.passed for one in found) / count, -sum(one.cost for one in found) / count

    @property
    def total(self) -> tuple[float, float]:
        """The mean of the scores over all cases that were run."""
        scores = [self.score(case) for case in self.runs]
        count = max(len(scores), 1)
        return sum(one for one, _ in scores) / count, sum(other for _, other in scores) / count

    def traces(self) -> list[Trace]:
        """Those of failed runs first."""
        found = [one for runs in self.runs.values() for one in runs if one.trace is not None]
        return [one.trace for one in sorted(found, key=lambda one: one.passed) if one.trace is not None]


def evolve(
    base: str, cases: Sequence[str], run: Run, catalog: Catalog, draw: Random, budget: int
) -> list[Candidate]:
    """What is at the front after `budget` runs, the best first; the base is none of it."""
    first = Individual((), base)
    people = [first]
    spent = _tried(first, cases, run, OPENING)
    known, misses = {base}, 0
    while spent + len(cases) <= budget and misses < MISSES:
        front = fronted(people, cases)
        parent = draw.choices([one for one, _ in front], [won for _, won in front])[0]
        child = _child(parent, [one for one, _ in front], base, catalog, draw)
        if child is None or child.text in known:
            misses += 1
            if parent is not first and draw.random() < 0.5:
                spent += _tried(parent, cases, run)  # what is known of it gets firmer meanwhile
            continue
        misses = 0
        known.add(child.text)
        spent += _tried(child, cases, run)
        people.append(child)
        spent += sum(
            _tried(one, cases, run)
            for one, _ in fronted(people, cases)
            if one is not child and spent + len(cases) <= budget and draw.random() < 0.25
        )
    best = [one for one, _ in fronted(people, cases) if one is not first]
    best.sort(key=lambda one: one.total, reverse=True)
    return [_candidate(one, first) for one in best]


def fronted(people: Sequence[Individual], cases: Sequence[str]) -> list[tuple[Individual, int]]:
    """Those that are best in some case, with the number of such cases."""
    won: dict[int, int] = {}
    for case in cases:
        best = max(one.score(case) for one in people)
        for index, one in enumerate(people):
            if one.score(case) == best:
                won[index] = won.get(index, 0) + 1
    return [(people[index], count) for index, count in sorted(won.items())]


def _tried(one: Individual, cases: Sequence[str], run: Run, times: int = 1) -> int:
    """Run every case again; gives how many runs that were."""
    for case in cases:
        mine = one.runs.setdefault(case, [])
        mine += [run(case, one.text, len(mine) + number) for number in range(times)]
    return len(cases) * times


def _child(
    parent: Individual, front: Sequence[Individual], base: str, catalog: Catalog, draw: Random
) -> Individual | None:
    """A new spec, or None where the draw gave none that could be judged."""
    others = [one for one in front if one.flat and one.edits]
    kind = draw.random()
    if kind < 0.3 and len(others) > 1:
        one, other = draw.sample(others, 2)
        edits, flat = merged(one.edits, other.edits), True
    else:
        found = reflected(parent, draw) if kind < 0.8 else ()
        found = found or varied(parent.text, catalog, draw)
        if not found:
            return None
        flat = not parent.edits
        edits = found if flat else (*parent.edits, *found)
    if len(edits) > MAX_OPS:
        return None
    stage, text = form(base, Candidate(edits, "evolution"), catalog)
    if stage.verdict != "pass" or privileged(base, text, catalog).verdict != "pass":
        return None
    return Individual(edits, text, flat)


def reflected(parent: Individual, draw: Random) -> tuple[Op, ...]:
    """The edit of a finding in the parent's runs, any kind of finding as likely as another; or all edits of
    one kind, since several useless things often share a spec."""
    traces = parent.traces()
    if not traces:
        return ()
    by_code: dict[str, dict[str, tuple[Op, ...]]] = {}
    for item in analyze(traces).findings:
        if item.edit:
            key = canon.content_hash([to_json(op) for op in item.edit])
            by_code.setdefault(item.code, {})[key] = item.edit
    if not by_code:
        return ()
    code = draw.choice(sorted(by_code))
    edits = [by_code[code][key] for key in sorted(by_code[code])]
    if len(edits) > 1 and draw.random() < 0.5:
        return merged(*edits)
    return draw.choice(edits)


def merged(*parts: Sequence[Op]) -> tuple[Op, ...]:
    """Edits of the same text, together: each once, numbered items from the last to the first, so that taking
    one out moves none that is still to come."""
    known = {canon.content_hash(to_json(op)): op for part in parts for op in part}
    return tuple(sorted(known.values(), key=lambda op: -getattr(op, "number", 0)))


def varied(text: str, catalog: Catalog, draw: Random) -> tuple[Op, ...]:
    """One setting of the text, changed at random within what is free of privilege."""
    found = list(_settings(text, catalog))
    if not found:
        return ()
    task, key, values = draw.choice(found)
    return (ops.Set(key, draw.choice(values), task),)


def _settings(text: str, catalog: Catalog) -> Iterator[tuple[str, str, list[Any]]]:
    """Settings with the values that they may get."""
    for task in parse(text).spec.tasks():
        for entry in (item for item in task.items if isinstance(item, ast.Entry)):
            key, value = entry.key.upper(), entry.value
            if key == "RETRIES" and isinstance(value, ast.Number) and value.value > 1:
                yield task.name, key, sorted({int(value.value) // 2 or 1, int(value.value) - 1})
            if key == "RULE" and isinstance(value, ast.MapValue):
                patience = {item.key: item.value for item in value.entries}.get("patience")
                if isinstance(patience, ast.Number) and patience.value > 0:
                    yield task.name, "RULE.patience", [int(patience.value) * more for more in (2, 4)]
            if key == "PROPOSER" and isinstance(value, ast.Tagged):
                known = catalog.proposers.get(value.name)
                options = known.schema.get("properties", {}) if known is not None else {}
                given = {item.key: item.value for item in value.body.entries} if value.body else {}
                for name, option in options.items():
                    now = getattr(given.get(name), "value", None)
                    values = [one for one in option.get("enum", ()) if one != now]
                    if values:
                        yield task.name, f"PROPOSER.{name}", values


def _candidate(one: Individual, base: Individual) -> Candidate:
    mine, before = one.total, base.total
    runs = sum(len(found) for found in one.runs.values())
    rationale = (
        f"evolved: {100 * mine[0]:.0f} % of {runs} training runs passed, the base {100 * before[0]:.0f} %; "
        f"cost {-mine[1]:.3g} against {-before[1]:.3g}"
    )
    failed = [
        found.trace for runs in base.runs.values() for found in runs if found.trace and not found.passed
    ]
    records = {trace.run: tuple(visit.last for visit in trace.visits[:5]) for trace in failed[:5]}
    return Candidate(one.edits, "evolution", rationale, records)
