"""`between(old, new)`: the typed edits that make one spec of another, small where they can be.

Each difference becomes the operation for it. A task in which that does not give the same meaning (an order
that matters, a default, something given twice) is rewritten as a whole, and so is the spec where something
outside of its tasks has no operation of its own (the AGENT's name, the order of tasks). Layout and comments
are not looked at: the edits give a text that means the same as the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spak.errors import EditRefused
from spak.lang import ast, settings
from spak.lang.diff import Change, compare
from spak.lang.edit import ops
from spak.lang.edit.apply import apply
from spak.lang.edit.ops import Op
from spak.lang.parser import Parsed, parse


def between(old: Parsed, new: Parsed) -> tuple[Op, ...]:
    """The edits, none where both mean the same. Both have to parse. Raises: SpecError `lang.invalid`."""
    wanted = new.spec
    if old.spec.hash == wanted.hash:
        return ()
    source = {task.name: (task, _cut(new, task)) for task in wanted.tasks()}
    text, made = old.text, list[Op]()

    def do(op: Op) -> bool:
        nonlocal text
        try:
            text = apply(text, op).text
        except EditRefused:
            return False
        made.append(op)
        return True

    for op in _in_order(compare(old, new).changes, wanted):
        do(op)
    for task in parse(text).spec.tasks():
        if task.name in source and _meaning(task) != _meaning(source[task.name][0]):
            do(ops.Rewrite(source[task.name][1], task.name))
    return tuple(made) if parse(text).spec.hash == wanted.hash else (ops.Rewrite(new.text),)


def _cut(made: Parsed, node: ast.Task) -> str:
    start, end = made.spec.source.offsets(node.start, node.end)
    return made.text[start:end]


def _meaning(task: ast.Task) -> Any:
    return ast.without_spans(task)


def _in_order(changes: Sequence[Change], wanted: ast.Spec) -> list[Op]:
    """The operations of all changes: names first, for what follows uses the new ones, then what comes, so
    that edges find their tasks, and what goes last. Items are removed from the end, to keep their numbers."""
    ranks = {ops.RenameTask: 0, ops.RenameStep: 1, ops.AddTask: 2, ops.RemoveModelItem: 3}
    ranks |= {ops.EditModelItem: 5, ops.RemoveTask: 6}

    def rank(op: Op) -> tuple[int, int]:
        return ranks.get(type(op), 4), -op.number if isinstance(op, ops.RemoveModelItem) else 0

    return sorted((op for change in changes for op in _typed(change, wanted)), key=rank)


def _typed(change: Change, wanted: ast.Spec) -> Iterator[Op]:
    """The operation of one change; none where there is no such operation."""
    value = change.after
    match change.op, change.path.split("/"):
        case "rename", ["tasks", task]:
            yield ops.RenameTask(change.before, task)
        case "add", ["tasks", task]:
            yield ops.AddTask(task, source=value, after=_before(wanted.tasks(), task))
        case "remove", ["tasks", task]:
            yield ops.RemoveTask(task)
        case _, ["LEVEL"]:
            yield ops.SetLevel(int(value or 0))
        case _, ["START"]:
            yield ops.SetStart(value) if value else ops.ClearStart()
        case "add", ["SYSTEM_MODEL", kind, number]:
            yield ops.AddModelItem(kind, *_item(value), int(number))
        case "change", ["SYSTEM_MODEL", kind, number]:
            text, when = _item(value)
            yield ops.EditModelItem(kind, int(number), text, when if kind == "heuristic" else None)
        case "remove", ["SYSTEM_MODEL", kind, number]:
            yield ops.RemoveModelItem(kind, int(number))
        case _, ["tasks", task, "NEXT", trigger]:
            yield _edge(change, task, trigger)
        case _, ["tasks", task, ("steps" | "checks") as place, step, *field]:
            yield from _step(change, wanted, task, place, step, field)
        case _, ["tasks", task, ("success" | "invariant") as kind]:
            yield ops.SetCondition(task, kind, value or "")
        case "remove", ["tasks", task, *key]:
            yield ops.Clear(".".join(key), task)
        case "add" | "change", ["tasks", task, *key]:
            yield ops.Set(".".join(key), value, task)
        case "remove", [key, *_] if key in settings.PLACES["agent"]:
            yield ops.Clear(change.path.replace("/", "."))
        case "add" | "change", ["INPUTS", name] if isinstance(value, str):
            yield ops.Set(f"INPUTS.{name}", {"$source": value})
        case "add" | "change", [key, *_] if key in settings.PLACES["agent"]:
            yield ops.Set(change.path.replace("/", "."), value)


def _edge(change: Change, task: str, trigger: str) -> Op:
    if change.op == "remove":
        return ops.RemoveEdge(task, trigger)
    kind = ops.AddEdge if change.op == "add" else ops.RetargetEdge
    return kind(task, trigger, change.after)


def _step(
    change: Change, wanted: ast.Spec, task: str, place: str, step: str, field: Sequence[str]
) -> Iterator[Op]:
    owner = next((item for item in wanted.tasks() if item.name == task), None)
    items = owner.items if owner is not None else ()
    before = _before((item for item in items if isinstance(item, ast.Step)), step)
    match change.op, field:
        case "rename", []:
            yield ops.RenameStep(task, change.before, step)
        case "add", []:
            is_check = place == "checks"
            after = None if is_check else before
            yield ops.AddStep(task, step, evaluation=is_check, source=change.after, after=after)
        case "remove", []:
            yield ops.RemoveStep(task, step)
        case "move", []:
            yield ops.MoveStep(task, step, before)
        case _, ["kind"] if change.op == "change":
            yield ops.SetKind(task, step, change.after)
        case "remove", [key]:
            yield ops.ClearField(task, step, key)
        case _, [key]:
            yield ops.SetField(task, step, key, change.after)


def _before(items: Iterator[Any], name: str) -> str:
    """The name of the item before the one of a name, empty for the first."""
    last = ""
    for item in items:
        if item.name == name:
            return last
        last = item.name
    return last


def _item(value: Any) -> tuple[str, str]:
    """Text and WHEN of a heuristic; a check of an axiom has no operation."""
    if isinstance(value, Mapping):
        return str(value.get("text", "")), str(value.get("when") or "")
    return str(value), ""
