"""Checks of what decides a task: a `fail` edge that nothing fires, a task whose success nothing checks, or
that has nothing to do at all.

Takes an Outline; reports warnings with fixes. `success:` or a VALIDATOR decides a task that has one; in any
other the exits of its tools do, so only a task that lets every tool go on (`on_fail: continue`) is decided by
nothing. A tool that crashes or times out still fails such a task, and so do arguments that do not fit: the
messages say so. Where the text did not parse whole it says nothing. Source: DESIGN.md section 15.
"""

from __future__ import annotations

from spak.errors import EditRefused, SpecError
from spak.lang.catalog import ToolEntry
from spak.lang.diagnostics import Edit
from spak.lang.outline import Outline, StepPlan, TaskPlan
from spak.lang.parser import Parsed


def check_outcome(made: Outline) -> None:
    """Report tasks that are empty, and tasks whose result nothing decides."""
    if made.broken:
        return
    for task in made.tasks.values():
        if made.report.full:
            return
        if task.empty:
            _report_empty(made, task)
        elif not decided(task):
            _report(made, task)


def decided(task: TaskPlan) -> bool:
    """Whether something in the task can fail it without a crash: a check, a validator, a tool's exit."""
    if task.judged or "VALIDATOR" in task.settings:
        return True
    if task.plans and not _only_continues(task):
        return True
    return any(step.kind in ("tool", "plan", "") and step.on_fail != "continue" for step in task.steps)


def judges_writes(task: TaskPlan) -> bool:
    """Whether anything judges what the task wrote: a judge, or the exit of a program after the last write. A
    commit keeps what was judged, and fails the task where it keeps nothing."""
    if task.judged or task.checks:
        return True
    for step in reversed(task.steps):
        if step.kind == "plan" or (step.tool is not None and changes_files(step.tool)):
            return step.tool is not None and step.tool.on_fail == "continue" != step.on_fail
    return False


def changes_files(tool: ToolEntry) -> bool:
    """Whether a tool gives files another content: one that tracks them does not."""
    return tool.writes and not any(use.startswith("tracks") for use in tool.arguments.values())


def _only_continues(task: TaskPlan) -> bool:
    return bool(task.steps) and all(step.on_fail == "continue" for step in task.steps)


def _report(made: Outline, task: TaskPlan) -> None:
    report = made.report
    goes_on = [step for step in task.steps if step.on_fail == "continue"]
    edge = task.edges.get("fail")
    if edge is not None:
        if goes_on:
            hint = "let a step stop the task (on_fail: stop), or judge it with success: or a VALIDATOR"
            fix = _stop(made, goes_on[-1])
        elif task.checks:
            hint, fix = _compared(made, task)
        else:
            hint = "remove the edge, or judge the task with success: or a VALIDATOR"
            fix = _edits(made, "RemoveEdge", task.name, "fail")
        message = f"'fail' never fires in '{task.name}' but after a crash or a timeout"
        report.warn("lang.dead_fail", message, hint, edge.start, fix)
    elif goes_on:
        message = f"nothing checks whether '{task.name}' succeeds: its tools may fail and it continues"
        hint = "on_fail: stop in the step that decides, or success: or a VALIDATOR"
        report.warn("lang.unchecked_task", message, hint, task.node.start + 1, _stop(made, goes_on[-1]))
    elif task.checks:
        message = f"nothing checks whether '{task.name}' succeeds: its evaluation only measures"
        hint, fix = _compared(made, task)
        report.warn("lang.unchecked_task", message, hint, task.node.start + 1, fix)
    elif answers := [step for step in task.steps if step.kind == "ask"]:
        message = f"nothing judges what '{task.name}' is answered: any text is a success"
        name = answers[-1].output_var
        compared = f'success: {name} == "yes", or ' if name else ""
        hint = f"{compared}write it to a file that a VALIDATOR judges"
        report.inform("lang.unchecked_answer", message, hint, task.node.start + 1)


def _compared(made: Outline, task: TaskPlan) -> tuple[str, tuple[Edit, ...] | None]:
    """A condition on the last check of its evaluation: what a program writes is often no number."""
    last = task.checks[-1]
    value = f"{last.node.name} == 0"
    if last.kind == "tool":
        condition = f"exit_code({last.node.name}) == 0"
        hint = f"success: {condition}, or compare its value: {value}"
    else:
        condition, hint = value, f"compare its value: success: {value}"
    return hint, _edits(made, "SetCondition", task.name, "success", condition)


def _report_empty(made: Outline, task: TaskPlan) -> None:
    """A task that does nothing: a run refuses it (`run.empty_task`)."""
    if {"GOAL", "TOOLS", "VALIDATOR"} & set(task.settings) or not task.name:
        return  # something is wrong with it, which was reported
    message = f"TASK '{task.name}' has no step, GOAL, success: or VALIDATOR: a run that reaches it is refused"
    hint = f'GOAL "{task.name}" makes it an end that names what was reached'
    fix = _edits(made, "Set", "GOAL", task.name, task.name)
    made.report.warn("lang.empty_task", message, hint, task.node.start + 1, fix)


def _stop(made: Outline, step: StepPlan) -> tuple[Edit, ...] | None:
    body = step.node.body
    entries = body.entries if body is not None else ()
    at = next((entry for entry in entries if entry.key == "on_fail"), None)
    return made.report.replace(at.value, "stop") if at is not None else None


def _edits(made: Outline, op: str, *arguments: str) -> tuple[Edit, ...] | None:
    """What an operation does to the text, in the layout of the file."""
    from spak.lang.edit import apply, ops  # only a spec with such a finding pays for loading the editor

    try:
        return apply(Parsed(made.spec), getattr(ops, op)(*arguments)).patches
    except (EditRefused, SpecError):
        return None
