"""The checker: `check(parsed, catalog)` gives every finding about a spec before anything runs.

Takes a Parsed and a Catalog; gives Diagnostics in order of place, those of the parser included. It walks the
outline (structure and names), then what depends on more than one place:

1. where it goes: START, targets, unreachable tasks, ways to an end, loops without a budget, triggers that
   nobody gives (checks/transitions.py)
2. steps: variables, command lines, arguments and options against their schemas, conditions (checks/steps.py)
3. what nothing uses: variables, inputs, heuristics (checks/unused.py)
4. what decides a task: edges for `fail` that nothing fires, success that nothing checks (checks/outcome.py)
5. what a variable has no value on: some way through the graph, or all of them (checks/assigned.py)
6. what PROPOSER evolve needs (checks/evolving.py), and the calls of PROPOSER tuner (checks/proposed.py)
7. the level: what the spec can do against what its LEVEL allows (checks/level.py)

A finding is an error only if no Program can be built or the run would surely not be the one that is written.
Where the text did not parse whole, nothing is said about what is missing from it.
"""

from __future__ import annotations

from spak.lang import ast
from spak.lang.catalog import Catalog
from spak.lang.checks import assigned, axioms, evolving, level, outcome, proposed, steps, transitions, unused
from spak.lang.diagnostics import Diagnostic, in_order
from spak.lang.outline import Outline
from spak.lang.outline_builder import outline
from spak.lang.parser import Parsed
from spak.lang.scope import Scope
from spak.lang.task_graph import start_of


def check(parsed: Parsed, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Every finding, at most LIMIT."""
    return in_order([*parsed.diagnostics, *examine(parsed.spec, catalog).report.found])


def examine(spec: ast.Spec, catalog: Catalog) -> Outline:
    """The outline of a spec with all that is wrong with it in its report."""
    made = outline(spec, catalog)
    if made.tasks:
        transitions.check_transitions(made)
    axioms.check_axioms(made)
    scope = Scope(made)
    for task in made.tasks.values():
        if made.report.full:
            break
        steps.check_task(made, scope, task)
    steps.check_proposer(made, scope, made.proposer)
    evolving.check_evolving(made)
    proposed.check_calls(made)
    outcome.check_outcome(made)
    unused.check_unused(made, scope)
    assigned.check_assigned(made, scope, start_of(made))
    level.check_level(made)
    return made
