"""The checker: `check(parsed, catalog)` gives every finding about a spec before anything runs.

Takes a Parsed and a Catalog; gives Diagnostics in order of place, those of the parser included. It walks the
outline (structure and names), then what depends on more than one place:

1. the graph: START, targets, unreachable tasks, ways to an end, loops without a budget, triggers that nobody
   gives
2. steps: variables, command lines, arguments and options against their schemas, conditions (checks/steps.py)
3. what nothing uses: variables, inputs, heuristics (checks/unused.py)
4. what decides a task: edges for `fail` that nothing fires, success that nothing checks (checks/outcome.py)
5. what a variable has no value on: some way through the graph, or all of them (checks/assigned.py)
6. the level: what the spec can do against what its LEVEL allows

A finding is an error only if no Program can be built or the run would surely not be the one that is written.
Where the text did not parse whole, nothing is said about what is missing from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.catalog import Catalog
from spak.lang.checks import assigned, axioms, outcome, steps, unused
from spak.lang.diagnostics import Diagnostic, Edit, in_order
from spak.lang.lookalike import odd, reading
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import Outline, TaskPlan
from spak.lang.outliner import outline
from spak.lang.parser import Parsed
from spak.lang.scope import Scope
from spak.lang.task_graph import cycles, reach

ALWAYS = ("success", "fail", "timeout")


def check(parsed: Parsed, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Every finding, at most LIMIT."""
    return in_order([*parsed.diagnostics, *examine(parsed.spec, catalog).report.found])


def examine(spec: ast.Spec, catalog: Catalog) -> Outline:
    """The outline of a spec with all that is wrong with it in its report."""
    made = outline(spec, catalog)
    if made.tasks:
        check_graph(made)
    axioms.check_axioms(made)
    scope = Scope(made)
    for task in made.tasks.values():
        if made.report.full:
            break
        steps.check_task(made, scope, task)
    steps.check_proposer(made, scope, made.proposer)
    outcome.check_outcome(made)
    unused.check_unused(made, scope)
    assigned.check_assigned(made, scope, start_of(made))
    check_level(made)
    return made


# ---- the graph -----------------------------------------------------------------------------------------


def start_of(made: Outline) -> str:
    """The first task of the run; empty when there is none."""
    if made.start is not None:
        return made.start.target if made.start.target in made.tasks else ""
    if made.spec.agent is None or made.broken:
        return next(iter(made.tasks), "")
    return ""


def check_graph(made: Outline) -> None:
    """Report edges to tasks that are not there, tasks that nothing leads to, and a START that is missing."""
    _check_start(made)
    reported: set[str] = set()
    for task in made.tasks.values():
        if made.report.full:
            break
        for edge in task.edges.values():
            known = edge.target in made.tasks or edge.target in reported
            if not known and not made.broken and not made.report.full:  # a near name is sought among all
                reported.add(edge.target)
                _report_missing(made, edge.target, edge.start + 2)
        _check_triggers(made, task)
    _check_reach(made)
    _check_ends(made)
    _check_loops(made)


def _check_start(made: Outline) -> None:
    agent, report = made.spec.agent, made.report
    if made.start is None:
        if agent is not None and not made.broken:
            first = next(iter(made.tasks))
            at, _ = report.offsets(made.tasks[first].node.start)
            fix = ((at, at, f"START -> {first}\n\n  "),)
            report.error("lang.no_start", "the AGENT has no START", f"START -> {first}", agent.start + 1, fix)
    elif made.start.target and made.start.target not in made.tasks and not made.broken:
        _report_missing(made, made.start.target, made.start.end - 1)


def _report_missing(made: Outline, name: str, token: int) -> None:
    near = nearest(name, made.tasks)
    if near:
        fix = made.report.replace(token, near)
        letter = f" {odd(name)} only looks alike" if reading(name) == near else ""
        hint = f"did you mean '{near}'?{letter}"
        made.report.error("lang.unknown_task", f"there is no task '{name}'", hint, token, fix)
        return
    fix = _new_task(made, name)
    hint = f'define it: TASK {name} {{ GOAL "..." }}'
    made.report.error("lang.unknown_task", f"there is no task '{name}'", hint, token, fix)


def _new_task(made: Outline, name: str) -> tuple[Edit, ...] | None:
    """What CreateMissingTask does, in the layout of the file; None for a name that no task can have."""
    from spak.lang.edit import ops, tasks  # only a spec with that error pays for loading the editor
    from spak.lang.edit.surface import Surface

    surface = Surface(Parsed(made.spec))
    try:
        tasks.add_task(surface, ops.AddTask(name))
    except EditRefused:
        return None
    return tuple(surface.changes)


def _check_triggers(made: Outline, task: TaskPlan) -> None:
    entry = task.validator_entry
    if task.validator is not None and entry is None:
        return
    given = (*ALWAYS, *(entry.triggers if entry else ()))
    for trigger, edge in task.edges.items():
        if trigger not in given:
            who = f"validator {entry.name}" if entry else "a task without VALIDATOR"
            hint = did_you_mean(trigger, given) or f"it gives: {', '.join(dict.fromkeys(given))}"
            fix = made.report.replace(edge.start, nearest(trigger, given))
            made.report.warn("lang.dead_trigger", f"{who} never gives '{trigger}'", hint, edge.start, fix)


def _check_reach(made: Outline) -> None:
    start = start_of(made)
    if not start or made.broken:
        return
    seen = reach(made, [start])
    for name, task in made.tasks.items():
        if name not in seen:
            hint = f"no edge leads to it from START ({start})"
            made.report.warn(
                "lang.unreachable_task", f"task '{name}' is never reached", hint, task.node.start + 1
            )


def _check_ends(made: Outline) -> None:
    """The first task, in order, from which no task without edges can be reached."""
    start = start_of(made)
    if not start or made.broken:
        return
    before: dict[str, list[str]] = {}
    ends = []
    for name, task in made.tasks.items():
        targets = [edge.target for edge in task.edges.values()]
        if not targets or any(target not in made.tasks for target in targets):
            ends.append(name)
        for target in targets:
            before.setdefault(target, []).append(name)
    able = set(ends)
    while ends:
        for name in before.get(ends.pop(), ()):
            if name not in able:
                able.add(name)
                ends.append(name)
    seen = reach(made, [start])
    stuck = next((name for name in made.tasks if name in seen and name not in able), None)
    if stuck is not None:
        message = f"no way leads from '{stuck}' to an end"
        hint = "a run ends well in a task without NEXT: add one, and an edge that leads to it"
        made.report.warn("lang.no_end", message, hint, made.tasks[stuck].node.start + 1)


def _check_loops(made: Outline) -> None:
    """A cycle of tasks that neither the run's BUDGET nor a rule of its own ends."""
    if "steps" in made.budget or "elapsed_s" in made.budget:
        return
    for names in cycles(made, lambda task, trigger: True):
        tasks = [made.tasks[name] for name in names]
        if not any("evaluations" in task.rule or "patience" in task.rule for task in tasks):
            first = tasks[0]
            inside = [edge for edge in first.edges.values() if edge.target in names]
            hint = "CONFIG { BUDGET { steps: 200 } }; without it the default of 1000 steps ends it"
            message = f"the loop through '{first.name}' has no budget"
            made.report.warn("lang.unbounded_loop", message, hint, inside[0])


# ---- the level -----------------------------------------------------------------------------------------


def least_level(made: Outline) -> int:
    """The least LEVEL that the spec's capabilities need."""
    return max((level for level, *_ in capabilities(made)), default=1)


def capabilities(made: Outline) -> Iterator[tuple[int, str, Any]]:
    """What the spec can do: the level that it takes, in words, and where."""
    mode = made.config.get("MODE")
    config = next((entry for entry in _agent_entries(made) if entry.key.upper() == "CONFIG"), None)
    if mode in ("semi_auto", "full_auto") and config is not None:
        yield (3 if mode == "semi_auto" else 4), f"MODE {mode}", config.start
    for task in made.tasks.values():
        writer = next((tool.name for tool in task.all_tools.values() if tool.writes), "")
        if writer:
            yield 2, f"'{writer}' writes to the workspace", task.node.start + 1
        entry = task.validator_entry
        if entry is not None and entry.metric and task.validator is not None:
            yield 5, f"{entry.name} measures a metric", task.validator.at
    for names in cycles(made, lambda task, trigger: trigger not in ("fail", "timeout")):
        yield 5, f"'{names[0]}' loops", made.tasks[names[0]].node.start + 1


def check_level(made: Outline) -> None:
    """Report what needs a higher LEVEL, and an AGENT that names none."""
    agent = made.spec.agent
    if agent is None:
        return
    if made.level is None:
        if not made.broken:
            least = least_level(made)
            at, _ = made.report.offsets(agent.start + 2)
            fix = ((at, at, f"LEVEL {least} "),)
            hint = f"LEVEL {least} is the least that it needs"
            made.report.warn("lang.no_level", "the AGENT has no LEVEL", hint, agent.start + 1, fix)
        return
    start, end = made.report.offsets(made.level)
    if start == end:  # the parser told that it is missing
        return
    level = made.level.value
    if level not in (1, 2, 3, 4, 5) or isinstance(level, float):
        hint = "1 reads, 2 writes, 3 semi_auto, 4 full_auto, 5 metrics and loops"
        made.report.error("lang.level", "LEVEL is a number from 1 to 5", hint, made.level)
        return
    reported: set[str] = set()
    for needed, what, at in capabilities(made):
        if needed > level and what not in reported:
            reported.add(what)
            raised = made.report.replace(made.level, str(needed))
            made.report.error(
                "lang.level_exceeded", f"LEVEL {level} is exceeded: {what}", f"LEVEL {needed}", at, raised
            )
    if level >= 3 and made.config.get("MODE") in ("semi_auto", "full_auto"):
        _check_unwatched(made)
    if level >= 4 and made.config.get("MODE") == "full_auto" and not made.budget and not made.broken:
        hint = "CONFIG { BUDGET { steps: 200 } }; without it the default of 1000 steps and an hour holds"
        made.report.warn("lang.no_budget", "MODE full_auto without a BUDGET", hint, made.level)


def _check_unwatched(made: Outline) -> None:
    for task in made.tasks.values():
        if not outcome.judges_writes(task) and any(tool.writes for tool in task.all_tools.values()):
            hint = "give it a VALIDATOR, success: or a program's exit before it runs without a person"
            message = f"task '{task.name}' writes and nothing judges it"
            made.report.warn("lang.unjudged_write", message, hint, task.node.start + 1)


def _agent_entries(made: Outline) -> Iterator[ast.Entry]:
    agent = made.spec.agent
    for item in (*made.spec.items, *(agent.items if agent else ())):
        if isinstance(item, ast.Entry):
            yield item
