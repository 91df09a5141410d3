"""Operations inside a task: steps, checks of an evaluation, their fields, conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.edit import find, ops, write
from spak.lang.edit.ops import Op
from spak.lang.edit.surface import Block, Span, Surface
from spak.lang.near import did_you_mean
from spak.lang.outline import ASK_KEYS, META

CONDITIONS = {"success": ast.Success, "invariant": ast.Invariant}
WIDTH = 90
"""A step that is longer on one line gets one line for each field."""


def add_step(surface: Surface, op: ops.AddStep) -> tuple[Op, ...]:
    """Add a step or a check; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    write.check_name(op.name, "a step")
    _refuse_taken(node, op.name)
    if op.evaluation:
        was_empty = any(isinstance(item, ast.Evaluation) and not item.items for item in node.items)
        _add_check(surface, node, op)
        return () if was_empty else (ops.RemoveStep(op.task, op.name),)
    block = surface.task(node)
    known = find.steps(node)
    place = find.place([step.name for step in known], op.after, "step")
    index = _place(block, known, place)
    source = _step_source(surface, op, surface.inner(block), known)
    surface.insert(block, index, source, apart=_apart(surface, block, known))
    return (ops.RemoveStep(op.task, op.name),)


def _place(block: Block, known: list[ast.Step], place: int) -> int:
    """The index in the task's body: beside the other steps, else after its settings."""
    items = list(block.items)
    if place:
        return items.index(known[place - 1]) + 1
    if known:
        return items.index(known[0])
    settings = [index for index, item in enumerate(items) if isinstance(item, ast.Entry) and _leads(item)]
    return settings[-1] + 1 if settings else 0


def _leads(entry: ast.Entry) -> bool:
    return entry.key.upper() in ("GOAL", "TOOLS", "PROPOSER", "SPACE")


def _apart(surface: Surface, block: Block, known: list[ast.Step]) -> bool:
    """True when the steps of the task have blank lines between them."""
    items = list(block.items)
    for step in known:
        index = items.index(step)
        if index:
            before = surface.text[surface.ends[items[index - 1].end - 1] : surface.starts[step.start]]
            if before.replace("\r", "").count("\n\n"):
                return True
    return False


def _step_source(surface: Surface, op: ops.AddStep, indent: str, known: list[ast.Step]) -> str:
    wanted: Any = ast.Check if op.evaluation else ast.Step
    if op.source:
        around = "evaluation {{ {} }}" if op.evaluation else "{}"
        body = around.format(op.source)
        node = find.snippet(f"task x {{\n{body}\n}}", ast.Task, "step")
        items: Any = node.items
        if op.evaluation:
            items = items[0].items if len(items) == 1 and isinstance(items[0], ast.Evaluation) else ()
        if len(items) != 1 or not isinstance(items[0], wanted) or items[0].name != op.name:
            raise EditRefused(
                "edit.value", f"the source is not step '{op.name}'", "step name: tool.run { ... }"
            )
        return surface.fitted(op.source, indent)
    kind = write.check_word(op.kind, "a kind of step")
    if "." not in kind:
        hint = did_you_mean(kind, ("tool.run", "llm.query")) or "tool.NAME or llm.NAME"
        raise EditRefused("edit.value", f"'{kind}' is not a kind of step", hint)
    deep = indent + surface.unit
    fields = {
        write.key(name): write.value(value, deep + surface.unit).replace("\n", surface.newline)
        for name, value in op.fields.items()
    }
    for name in op.fields:
        write.check_name(name, "a field")
    head = f"{_word(surface, known, op.evaluation)} {op.name}: {kind}"
    line = f"{head} {write.members(fields)}"
    opened = any("\n" in surface.cut(step) for step in known) and bool(fields)
    if not opened and len(line) <= WIDTH and "\n" not in line:
        return line
    inner = surface.newline + deep
    return (
        head
        + " {"
        + "".join(f"{inner}{name}: {value}" for name, value in fields.items())
        + (f"{surface.newline}{indent}}}")
    )


def _word(surface: Surface, known: list[ast.Step], evaluation: bool) -> str:
    if evaluation:
        return "check"
    return surface.word(known[0].start) if known else "step"


def _add_check(surface: Surface, node: ast.Task, op: ops.AddStep) -> None:
    blocks = [item for item in node.items if isinstance(item, ast.Evaluation)]
    if blocks:
        block = surface.evaluation(blocks[-1])
        place = find.place([check.name for check in blocks[-1].items], op.after, "check")
        surface.insert(block, place, _step_source(surface, op, surface.inner(block), []))
        return
    outer = surface.task(node)
    indent = surface.inner(outer)
    source = _step_source(surface, op, indent + surface.unit, [])
    inner = surface.newline + indent + surface.unit
    index = max(
        (place + 1 for place, item in enumerate(outer.items) if isinstance(item, ast.Step)), default=0
    )
    surface.insert(outer, index, f"evaluation {{{inner}{source}{surface.newline}{indent}}}")


def _refuse_taken(node: ast.Task, name: str) -> None:
    if _has_step(node, name):
        hint = "steps and checks of a task have names of their own"
        raise EditRefused("edit.exists", f"task '{node.name}' has a step '{name}' already", hint)


def remove_step(surface: Surface, op: ops.RemoveStep) -> tuple[Op, ...]:
    """Remove a step or a check; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    step = find.step(node, op.step)
    if isinstance(step, ast.Check):
        block, index, after = _check_place(node, step)
        if len(block.items) == 1:
            surface.remove(surface.task(node), node.items.index(block))
        else:
            surface.remove(surface.evaluation(block), index)
    else:
        known = find.steps(node)
        place = known.index(step)
        after = known[place - 1].name if place else ""
        surface.remove(surface.task(node), node.items.index(step))
    evaluation = isinstance(step, ast.Check)
    source = surface.cut(step)
    return (ops.AddStep(op.task, op.step, evaluation=evaluation, source=source, after=after),)


def _check_place(node: ast.Task, check: ast.Check) -> tuple[ast.Evaluation, int, str]:
    block, index, _ = next(item for item in find.checks(node) if item[2] is check)
    return block, index, block.items[index - 1].name if index else ""


def move_step(surface: Surface, op: ops.MoveStep) -> tuple[Op, ...]:
    """Move a step to another place; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    step = find.step(node, op.step)
    if isinstance(step, ast.Check):
        hint = "checks have no order that matters"
        raise EditRefused("edit.shape", f"'{op.step}' is a check of an evaluation", hint)
    known = find.steps(node)
    at = known.index(step)
    rest = [other for other in known if other is not step]
    place = find.place([other.name for other in rest], op.after, "step")
    if place == at:
        return ()
    undo = ops.MoveStep(op.task, op.step, known[at - 1].name if at else "")
    block = surface.task(node)
    if not _move_lines(surface, block, step, rest, place):
        whole = surface.fitted(surface.cut(step), surface.inner(block))
        surface.remove(block, node.items.index(step), comments=False)
        index = _place(block, rest, place)
        surface.insert(block, index, whole, apart=_apart(surface, block, known))
    return (undo,)


def _move_lines(surface: Surface, block: Block, step: ast.Step, rest: list[ast.Step], place: int) -> bool:
    """Move whole lines as they are, comments with them; False where the steps do not stand on lines."""
    other = rest[place - 1] if place else rest[0]
    spans = []
    for item in (step, other):
        anchor = item.end if surface.kinds[item.end] == surface.comma else item.end - 1
        tail = surface.tail(anchor)
        if not surface.begins_line(item.start) or tail is None or surface.text.find("\n", tail) < 0:
            return False
        spans.append(surface.lines_of(item.start, tail))
    (start, end), (other_start, other_end) = spans
    lines = surface.text[start:end]
    if _apart(surface, block, [step, *rest]):
        blank = surface.newline
        above = surface.line_start(start - 1) if start else 0
        if not surface.text[above:start].strip():
            start = above
        elif not surface.text[end:].split("\n", 1)[0].strip():
            end = surface.text.find("\n", end) + 1
        lines = blank + lines if place else lines + blank
    at = other_end if place else other_start
    if start < at < end:
        return False
    surface.replace(start, end, "")
    surface.replace(at, at, lines)
    return True


# ---- fields --------------------------------------------------------------------------------------------


def set_kind(surface: Surface, op: ops.SetKind) -> tuple[Op, ...]:
    """Give a step another kind; gives the ops that undo it. Raises: EditRefused."""
    step = find.step(find.task(surface, op.task), op.step)
    kind = write.check_word(op.kind, "a kind of step")
    if "." not in kind:
        raise EditRefused("edit.value", f"'{kind}' is not a kind of step", "tool.NAME or llm.NAME")
    surface.replace_token(step.start + 3, kind)
    return (ops.SetKind(op.task, op.step, step.kind),)


def set_field(surface: Surface, op: ops.SetField) -> tuple[Op, ...]:
    """Set a field of a step; gives the ops that undo it. Raises: EditRefused."""
    step = find.step(find.task(surface, op.task), op.step)
    key = write.check_name(op.key, "a field")
    entry = _field(step, key)
    indent = surface.indent(step.start) + 2 * surface.unit
    if op.key in META and isinstance(op.value, str) and op.key != "role":
        source = write.check_word(op.value, op.key)
    else:
        source = write.value(op.value, indent).replace("\n", surface.newline)
    if entry is not None:
        old = surface.cut(entry.value)
        surface.replace(
            surface.starts[entry.value.start], surface.ends[(entry.default or entry.value).end - 1], source
        )
        return (ops.SetField(op.task, op.step, op.key, {"$source": old}),)
    source = f"{key}: {source}"
    if step.body is None:
        at = surface.ends[step.end - 1]
        surface.replace(at, at, f" {{ {source} }}")
    else:
        block = surface.map(step.body)
        surface.insert(block, _before_meta(step.body, key), source)
    return (ops.ClearField(op.task, op.step, op.key),)


def _before_meta(body: ast.MapValue, key: str) -> int:
    """A new argument goes before `output_var`, `on_fail` and `poll` at the end."""
    index = len(body.entries)
    while key not in META and index and body.entries[index - 1].key in META[:3]:
        index -= 1
    return index


def clear_field(surface: Surface, op: ops.ClearField) -> tuple[Op, ...]:
    """Remove a field of a step; gives the ops that undo it. Raises: EditRefused."""
    step = find.step(find.task(surface, op.task), op.step)
    entry = _field(step, op.key)
    if entry is None or step.body is None:
        known = [item.key for item in step.body.entries] if step.body is not None else list(ASK_KEYS)
        hint = did_you_mean(op.key, known)
        raise EditRefused("edit.unknown", f"step '{op.step}' has no field '{op.key}'", hint)
    surface.remove(surface.map(step.body), step.body.entries.index(entry))
    return (ops.SetField(op.task, op.step, op.key, {"$source": surface.cut(entry.value)}),)


def _field(step: ast.Step | ast.Check, key: str) -> ast.Entry | None:
    entries = step.body.entries if step.body is not None else ()
    return next((item for item in entries if item.key == key), None)


# ---- names ---------------------------------------------------------------------------------------------


def rename_step(surface: Surface, op: ops.RenameStep) -> tuple[Op, ...]:
    """Rename a step and what names it; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    step = find.step(node, op.step)
    write.check_name(op.new, "a step")
    if op.new == op.step:
        return ()
    _refuse_taken(node, op.new)
    surface.replace_token(step.start + 1, op.new)
    heads = ("exit_code", "metric") if isinstance(step, ast.Check) else ("exit_code",)
    others = [task for task in surface.spec.tasks() if task is not node and _has_step(task, op.step)]
    for task in surface.spec.tasks():
        if task in others:
            continue  # there the name means its own step
        found = list(_readers(surface, task, op.step, heads))
        if task is not node and found and others:
            message = f"task '{task.name}' reads '{op.step}', which more than one task has"
            raise EditRefused("edit.ambiguous", message, "give those steps different names first")
        for start, end, new in found:
            surface.replace(start, end, new.format(op.new))
    return (ops.RenameStep(op.task, op.new, op.step),)


def _has_step(task: ast.Task, name: str) -> bool:
    steps = [step.name for step in find.steps(task)]
    return name in steps or name in [check.name for *_, check in find.checks(task)]


def _readers(
    surface: Surface, task: ast.Task, name: str, heads: tuple[str, ...]
) -> Iterator[tuple[int, int, str]]:
    """Every place in a task that reads the step, as a replacement with a hole for the new name."""
    paths = {f"{head}.{name}" for head in heads}
    hole = re.compile(rf"(?<!\\)\{{\{{[ \t]*(?:{'|'.join(heads)})\.({re.escape(name)})[ \t]*\}}\}}")
    for token in range(task.start, task.end):
        word = surface.word(token)
        start, end = surface.starts[token], surface.ends[token]
        if word in paths:
            yield end - len(name), end, "{}"
        elif word.startswith('"') and "{{" in word:
            for match in hole.finditer(word):
                yield start + match.start(1), start + match.end(1), "{}"
        elif word in heads and surface.word(token + 1) == "(" and surface.word(token + 3) == ")":
            inner = surface.word(token + 2)
            if inner.strip('"') == name:
                yield surface.starts[token + 2], surface.ends[token + 2], inner.replace(name, "{}")
    if "metric" in heads:
        for item in task.items:
            if isinstance(item, (ast.Success, ast.Invariant, ast.BareCondition)):
                yield from _operands(surface, item.condition, name)


def _operands(surface: Surface, node: Any, name: str) -> Iterator[tuple[int, int, str]]:
    """Bare words of a condition that are the metric of a check."""
    match node:
        case ast.Logic():
            for item in node.items:
                yield from _operands(surface, item, name)
        case ast.Negation():
            yield from _operands(surface, node.item, name)
        case ast.Comparison():
            yield from _operands(surface, node.left, name)
            yield from _operands(surface, node.right, name)
        case ast.Name() if node.value == name:
            yield surface.starts[node.start], surface.ends[node.start], "{}"


# ---- conditions ----------------------------------------------------------------------------------------


def set_condition(surface: Surface, op: ops.SetCondition) -> tuple[Op, ...]:
    """Set `success` or `invariant` of a task; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    kind = CONDITIONS.get(op.kind)
    if kind is None:
        raise EditRefused("edit.value", f"there is no condition {op.kind[:40]!r}", "success or invariant")
    source = op.condition.strip()
    if source:
        made = find.snippet(f"task x {{\n{op.kind}: {source}\n}}", ast.Task, "condition").items
        if not made or not isinstance(made[0], kind) or not _joined(made, 0) == len(made):
            raise EditRefused("edit.value", "that is not one condition", "exit_code(s1) == 0 and speed < 3")
    places = [index for index, item in enumerate(node.items) if isinstance(item, kind)]
    if len(places) > 1:
        raise EditRefused(
            "edit.ambiguous", f"task '{node.name}' has {op.kind} more than once", "join them by hand"
        )
    block = surface.task(node)
    if not places:
        if not source:
            raise EditRefused("edit.unknown", f"task '{node.name}' has no {op.kind}", "nothing to remove")
        after = (ast.Step, ast.Evaluation, ast.Success)
        index = max(
            (place + 1 for place, item in enumerate(node.items) if isinstance(item, after)), default=0
        )
        index = index or _before_next(node)
        surface.insert(block, index, f"{op.kind}: {surface.fitted(source, surface.inner(block))}")
        return (ops.SetCondition(op.task, op.kind, ""),)
    first = places[0]
    last = _joined(node.items, first) - 1
    start = surface.starts[node.items[first].start + 2]
    end = surface.ends[node.items[last].end - 1]
    old = surface.text[start:end]
    if source:
        surface.replace(start, end, source.replace("\r\n", "\n").replace("\n", surface.newline))
    else:
        whole = Span(node.items[first].start, node.items[last].end)
        items = [*node.items[:first], whole, *node.items[last + 1 :]]
        surface.remove(surface.block(block.first, block.last, items), first)
    return (ops.SetCondition(op.task, op.kind, old),)


def _joined(items: Any, first: int) -> int:
    """The index after a condition and the bare ones that join it."""
    index = first + 1
    while index < len(items) and isinstance(items[index], ast.BareCondition):
        index += 1
    return index


def _before_next(node: ast.Task) -> int:
    places = [index for index, item in enumerate(node.items) if isinstance(item, ast.Next)]
    return places[0] if places else len(node.items)
