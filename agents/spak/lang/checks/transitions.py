"""Checks of where a run goes: START, the targets of NEXT, unreachable tasks, ways to an end, loops without a
budget, and triggers that nobody gives.

Takes an Outline that has tasks; reports errors for targets that do not exist and warnings for the rest, with
fixes. Where the text did not parse whole, nothing is said about what is missing from it.
"""

from __future__ import annotations

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.diagnostics import Edit
from spak.lang.lookalike import odd, reading
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import Outline, TaskPlan
from spak.lang.parser import Parsed
from spak.lang.task_graph import cycles, reach, start_of

ALWAYS = ("success", "fail", "timeout")
"""Verdicts that every task gives, whatever its validator."""
LOW = "budget_low"
"""The trigger that every task gives besides, where BUDGET has tokens; it is no verdict."""

TOKENS = "CONFIG { BUDGET { tokens: 100000 } }: it is given at 80 percent of them, or at low_percent"


def check_transitions(made: Outline) -> None:
    """Report what is wrong with START and the edges of NEXT, and tasks that no edge leads to."""
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
        _check_derived(made, task)
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
    """Report a target that no task has: the near name as its fix, else a new task of that name."""
    near = nearest(name, made.tasks)
    if near:
        letter = f" {odd(name)} only looks alike" if reading(name) == near else ""
        hint, fix = f"did you mean '{near}'?{letter}", made.report.replace(token, near)
    else:
        hint, fix = f'define it: TASK {name} {{ GOAL "..." }}', _new_task(made, name)
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


def _check_derived(made: Outline, task: TaskPlan) -> None:
    """`NEXT BY next_action` has names, `NEXT` triggers, and a task one of the two."""
    blocks = [item for item in task.node.items if isinstance(item, ast.Next)]
    for item in blocks:
        if item.by and (item.by[0].upper(), item.by[1]) != ("BY", "next_action"):
            hint = "NEXT BY next_action { /run_tests -> test }: the predicate that the law derives"
            fix = made.report.replace(item.start + 2, "next_action") if item.by[0].upper() == "BY" else None
            made.report.error("lang.next_by", "NEXT goes BY next_action", hint, item.start + 1, fix)
        for edge in item.items:
            if edge.trigger and edge.trigger.startswith("/") != bool(item.by):
                hint = "/name -> task, and the law derives next_action(/name)"
                message = f"'{edge.trigger}' is no name that a law derives"
                if not item.by:
                    hint = f"NEXT BY next_action {{ {edge.trigger} -> {edge.target} }}"
                    message = f"'{edge.trigger}' is derived by a law, and NEXT does not say so"
                made.report.error("lang.next_by", message, hint, edge.start)
    if len({bool(item.by) for item in blocks}) > 1:
        hint = "let the law route each verdict, or none"
        message = f"task '{task.name}' routes by verdicts and by derivation"
        made.report.error("lang.next_by", message, hint, blocks[-1].start)


def _check_triggers(made: Outline, task: TaskPlan) -> None:
    entry = task.validator_entry
    if task.validator is not None and entry is None:
        return
    given = (*ALWAYS, *(entry.triggers if entry else ()), LOW)
    for trigger, edge in task.edges.items():
        if trigger not in given and not trigger.startswith("/"):
            who = f"validator {entry.name}" if entry else "a task without VALIDATOR"
            hint = did_you_mean(trigger, given) or f"it gives: {', '.join(dict.fromkeys(given))}"
            fix = made.report.replace(edge.start, nearest(trigger, given))
            made.report.warn("lang.dead_trigger", f"{who} never gives '{trigger}'", hint, edge.start, fix)
        elif trigger == LOW and not made.budget.get("tokens"):
            message = "'budget_low' is never given: BUDGET has no tokens"
            made.report.warn("lang.dead_trigger", message, TOKENS, edge.start)


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
        if any(trigger.startswith("/") for task in tasks for trigger in task.edges):
            continue  # what ends it is proved with the law at hand (spak.kernel.executive.prove)
        if not any("evaluations" in task.rule or "patience" in task.rule for task in tasks):
            first = tasks[0]
            inside = [edge for edge in first.edges.values() if edge.target in names]
            hint = "CONFIG { BUDGET { steps: 200 } }; without it the default of 1000 steps ends it"
            message = f"the loop through '{first.name}' has no budget"
            made.report.warn("lang.unbounded_loop", message, hint, inside[0])
