"""What of a spec with errors still says what it says: for findings that are reported with the errors.

Takes an Outline with its findings; gives an outline of the tasks with those steps and validators that no
error touches and that name everything in full, without what leads from task to task. Of a spec without
errors that is the outline itself. Nothing is given where an error could concern every part: outside of the
tasks anywhere but in START, INPUTS, CONFIG and the AGENT's first line, in an IMPORT that was not followed,
or where the parser lost a word that begins a law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from spak.lang import ast
from spak.lang.diagnostics import Severity
from spak.lang.outline import Outline, StepPlan, TaskPlan
from spak.lang.report import Span

Place = tuple[str, int, int]
"""A file by its name in findings, and the characters of it."""

_LAWS = {"AXIOM", "POLICY"}


class Tokens(NamedTuple):
    """A stretch of tokens that is no node."""

    start: int
    end: int


def readable(made: Outline) -> Outline | None:
    """The outline without the parts that errors touch; None where nothing of it can be relied on."""
    source = made.spec.source
    found = [item for item in (*source.problems, *made.report.found) if item.severity is Severity.ERROR]
    if not found:
        return None if made.broken else made
    if made.partial or source.partial or made.report.full or _lost(made):
        return None
    places = [(item.file, item.start, item.end) for item in found]
    apart = list(_apart(made.spec))
    if not all(any(_touched(made, node, [place]) for node in apart) for place in places):
        return None
    tasks = {name: _task(made, task, places) for name, task in made.tasks.items()}
    return replace(made, tasks=tasks, proposer=None, start=None)


def settings_touched(made: Outline) -> bool:
    """Whether an error lies in CONFIG."""
    places = [
        (item.file, item.start, item.end)
        for item in (*made.spec.source.problems, *made.report.found)
        if item.severity is Severity.ERROR
    ]
    items = (*made.spec.items, *(made.spec.agent.items if made.spec.agent else ()))
    blocks = [item for item in items if isinstance(item, ast.Entry) and item.key.upper() == "CONFIG"]
    return any(_touched(made, block, places) for block in blocks)


def _task(made: Outline, task: TaskPlan, places: list[Place]) -> TaskPlan:
    """The task with its sound steps and validator, and nothing else that could be wrong."""

    def sound_of(steps: list[StepPlan]) -> list[StepPlan]:
        return [
            step
            for step in steps
            if step.kind == "tool"
            and step.node.name
            and all(_in_full(entry.value) for entry in step.args)
            and not _touched(made, step.node, places)
        ]

    entry = task.settings.get("VALIDATOR")
    sound = entry is not None and not _touched(made, entry, places)
    return TaskPlan(
        task.node,
        steps=sound_of(task.steps),
        checks=sound_of(task.checks),
        validator=task.validator if sound else None,
        taken=task.taken,
    )


def _touched(made: Outline, node: Span, places: list[Place]) -> bool:
    found = made.spec.source.diagnostic(Severity.INFO, "", "", "", *made.report.offsets(node))
    return any(
        file == found.file and start < found.end and found.start < max(end, start + 1)
        for file, start, end in places
    )


def _apart(spec: ast.Spec) -> Iterator[Span]:
    """What an error may lie in without concerning the whole."""
    agent = spec.agent
    for item in (*spec.items, *(agent.items if agent else ())):
        entry = isinstance(item, ast.Entry) and item.key.upper() in ("INPUTS", "CONFIG")
        if entry or isinstance(item, (ast.Task, ast.Start)):
            yield item
    if agent is not None:
        yield Tokens(agent.start, agent.level.end if agent.level is not None else agent.start + 2)


def _laws(spec: ast.Spec) -> int:
    """How many POLICYs and AXIOMs were parsed."""
    count = 0
    for item in (*spec.items, *(spec.agent.items if spec.agent else ())):
        if isinstance(item, ast.SystemModel):
            count += sum(isinstance(part, ast.Axiom) for part in item.items)
        elif isinstance(item, ast.Entry) and item.key.upper() in _LAWS:
            count += 1
    return count


def _in_full(value: ast.Value) -> bool:
    """Whether a value is without bare names: where something was lost, one could be a variable."""
    if isinstance(value, ast.ListValue):
        return all(map(_in_full, value.items))
    if isinstance(value, ast.MapValue):
        return all(_in_full(entry.value) for entry in value.entries)
    return isinstance(value, (ast.Text, ast.Number))


def _lost(made: Outline) -> bool:
    """Whether the text has more words that begin a law than were parsed."""
    source = made.spec.source
    if not any(item.severity is Severity.ERROR for item in source.problems):
        return False
    tokens = source.tokens
    words = sum(
        source.text[start:end].upper() in _LAWS
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
        if end - start in (5, 6)
    )
    return words > _laws(made.spec)
