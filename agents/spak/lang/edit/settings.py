"""Operations on settings, by their path in the table, and on the items of a SYSTEM_MODEL.

A path is walked from the task or the agent: `RULE.patience`, `VALIDATOR.binary`, `CONFIG.BUDGET.steps`.
Blocks that are missing on the way are made; one that a `clear` leaves empty goes too. For the agent, `CONFIG`
may be left out. A new setting comes after those that stand before it in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang import settings as table
from spak.lang.edit import find, ops, write
from spak.lang.edit.ops import Op
from spak.lang.edit.surface import Block, Surface
from spak.lang.near import did_you_mean
from spak.lang.settings import Setting

MODEL_KINDS = {"axiom": ast.Axiom, "heuristic": ast.Heuristic, "prediction": ast.Prediction}
MAX_PATH = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One key of a path: a row of the table, or a name that its owner gives (an option, an input)."""

    key: str
    row: Setting | None
    owner: Setting | None = None


def set_(surface: Surface, op: ops.Set) -> tuple[Op, ...]:
    """Set a setting of the agent or a task; gives the ops that undo it. Raises: EditRefused."""
    path = _path(op.key, op.task)
    block, walked = _walk(surface, op.task, path)
    last = walked[-1]
    undo: tuple[Op, ...] = (ops.Clear(op.key, op.task),)
    if last is not None:
        entry = last
        end = (entry.default or entry.value).end
        start = entry.value.start
        if path[-1].owner is not None and path[-1].owner.kind == "inputs":
            start, source = entry.start, write.input_(entry.key, op.value)
        else:
            source = _source(path[-1], op.value, _below(surface, surface.indent(entry.start)))
        undo = (ops.Set(op.key, {"$source": _cut(surface, entry)}, op.task),)
        surface.replace(surface.starts[start], surface.ends[end - 1], source)
        return undo
    _make(surface, op, path, walked, block)
    return undo


def clear(surface: Surface, op: ops.Clear) -> tuple[Op, ...]:
    """Remove a setting; gives the ops that undo it. Raises: EditRefused."""
    path = _path(op.key, op.task)
    block, walked = _walk(surface, op.task, path)
    last = walked[-1]
    if last is None:
        owner = f"task '{op.task}'" if op.task else "the agent"
        raise EditRefused("edit.unknown", f"{owner} has no {op.key}", "there is nothing to remove")
    undo: tuple[Op, ...] = (ops.Set(op.key, {"$source": _cut(surface, last)}, op.task),)
    entries = [item for item in walked if item is not None]
    while len(entries) > 1 and len(_entries(entries[-2].value)) == 1:
        owner_value = entries[-2].value
        if isinstance(owner_value, ast.Tagged) and owner_value.body is not None:
            surface.replace(surface.ends[owner_value.start], surface.ends[owner_value.body.end - 1], "")
            return undo
        entries.pop()
    if len(entries) > 1:
        body = _map(entries[-2].value)
        assert body is not None
        surface.remove(surface.map(body), body.entries.index(entries[-1]))
    else:
        surface.remove(block, list(block.items).index(entries[-1]))
    return undo


# ---- paths ---------------------------------------------------------------------------------------------


def _path(key: str, task: str) -> list[Part]:
    """The keys of a path. Raises: EditRefused `edit.key`."""
    words = key.split(".")
    if not task and words[0] and table.find("agent", words[0]) is None and table.find("config", words[0]):
        words = ["CONFIG", *words]
    place, parts = "task" if task else "agent", list[Part]()
    owner: Setting | None = None
    for word in words[:MAX_PATH]:
        if owner is not None and owner.kind in ("tagged", "space", "inputs"):
            parts.append(Part(write.check_name(word, "an option"), None, owner))
            owner = None
            continue
        row = table.find(place, word) if place else None
        if row is None:
            known = [item.key for item in table.TABLE if item.where == place]
            hint = did_you_mean(word, known) or f"known: {', '.join(known)}" if known else ""
            raise EditRefused("edit.key", f"there is no setting '{key}' here", hint)
        parts.append(Part(row.key, row))
        owner, place = row, row.table if row.kind == "map" else ""
    if len(words) > len(parts):
        raise EditRefused("edit.key", f"there is no setting '{key}' here", "the path is too long")
    return parts


def _walk(surface: Surface, task: str, path: list[Part]) -> tuple[Block, list[ast.Entry | None]]:
    """The block where the path begins, and the entry of each key, None from where there is none."""
    block = surface.task(find.task(surface, task)) if task else surface.whole()
    items: Sequence[Any] = block.items
    found: list[ast.Entry | None] = []
    for part in path:
        entry = next((item for item in items if isinstance(item, ast.Entry) and _is(item, part)), None)
        found.append(entry)
        items = () if entry is None else _entries(entry.value)
    return block, found


def _is(entry: ast.Entry, part: Part) -> bool:
    return entry.key == part.key if part.row is None else entry.key.lower() == part.key.lower()


def _map(value: ast.Value) -> ast.MapValue | None:
    if isinstance(value, ast.MapValue):
        return value
    return value.body if isinstance(value, ast.Tagged) else None


def _entries(value: ast.Value) -> Sequence[ast.Entry]:
    body = _map(value)
    return () if body is None else body.entries


def _cut(surface: Surface, entry: ast.Entry) -> str:
    end = (entry.default or entry.value).end
    return surface.text[surface.starts[entry.value.start] : surface.ends[end - 1]]


# ---- writing -------------------------------------------------------------------------------------------


def _source(part: Part, value: Any, indent: str) -> str:
    if part.row is not None:
        return write.setting(part.row, value, indent)
    if part.owner is not None and part.owner.kind == "space":
        return write.parameter(value)
    return write.value(value, indent)


def _below(surface: Surface, indent: str) -> str:
    return indent + surface.unit


def _make(
    surface: Surface, op: ops.Set, path: list[Part], walked: list[ast.Entry | None], block: Block
) -> None:
    """Put in what is missing from the path, in the innermost block that is there."""
    known = walked.index(None)
    indent = _below(surface, surface.inner(block))
    source = _entry(path[-1], op.value, indent)
    for part in reversed(path[known:-1]):
        assert part.row is not None
        if part.row.kind == "tagged":
            raise EditRefused(
                "edit.unknown", f"there is no {part.key} that could have an option", "set it first"
            )
        source = write.entry(part.row.key, f"{{ {source} }}")
    if known == 0:
        surface.insert(block, _index(block, path[0]), source, apart=_apart(surface, block, path[0]))
        return
    owner = walked[known - 1]
    assert owner is not None
    value = owner.value
    body = _map(value)
    if body is not None:
        inner = surface.map(body)
        surface.insert(inner, _index(inner, path[known]), source)
    elif isinstance(value, ast.Name) and path[known - 1].row is not None and path[known].row is None:
        at = surface.ends[value.start]
        surface.replace(at, at, f" {{ {source} }}")
    else:
        raise EditRefused("edit.shape", f"{owner.key} is not a block", "set it as a whole first")


def _entry(part: Part, value: Any, indent: str) -> str:
    if part.owner is not None and part.owner.kind == "inputs":
        return write.input_(part.key, value)
    source = _source(part, value, indent)
    return write.entry(part.key, source) if part.row is not None else f"{part.key}: {source}"


def _index(block: Block, part: Part) -> int:
    """Where a new key goes: after the settings that stand before it in the table."""
    if part.row is None:
        return len(block.items)
    order = [item.key.lower() for item in table.TABLE if item.where == part.row.where]
    place = order.index(part.key.lower())
    best = 0
    for index, item in enumerate(block.items):
        if isinstance(item, ast.Entry) and item.key.lower() in order[:place]:
            best = index + 1
    return best


def _apart(surface: Surface, block: Block, part: Part) -> bool:
    """A blank line after a new block at the top of an agent or a file."""
    return part.row is not None and part.row.where == "agent" and _index(block, part) == 0


# ---- the system model ----------------------------------------------------------------------------------


def add_model_item(surface: Surface, op: ops.AddModelItem) -> tuple[Op, ...]:
    """Add an axiom, heuristic or prediction; gives the ops that undo it. Raises: EditRefused."""
    kind = _kind(op.kind)
    models = list(surface.spec.models())
    known = _items(surface, op.kind)
    number = len(known) + 1 if op.at is None else op.at
    if not 1 <= number <= len(known) + 1:
        hint = f"from 1 to {len(known) + 1}"
        raise EditRefused("edit.value", f"an {op.kind} can not become number {number}", hint)
    if op.when and kind is not ast.Heuristic:
        raise EditRefused("edit.value", f"an {op.kind} has no WHEN", "a heuristic may have one")
    undo = (ops.RemoveModelItem(op.kind, number),)
    if number <= len(known):
        model, index, _ = known[number - 1]
    elif models:
        model = known[-1][0] if known else models[-1]
        index = known[-1][1] + 1 if known else _first_place(model, op.kind)
    else:
        _new_model(surface, op)
        return undo
    block = surface.model(model)
    source = _item_source(surface, model, op, surface.inner(block))
    surface.insert(block, index, source)
    return undo if block.items else ()  # remove_model_item would take the empty block away too


def edit_model_item(surface: Surface, op: ops.EditModelItem) -> tuple[Op, ...]:
    """Change an item's text or WHEN; gives the ops that undo it. Raises: EditRefused."""
    *_, item = _item(surface, op.kind, op.number)
    old_when: str | None = None
    if op.when is not None:
        if not isinstance(item, ast.Heuristic):
            raise EditRefused("edit.value", f"an {op.kind} has no WHEN", "a heuristic may have one")
        old_when = item.when.value if item.when is not None else ""
        end = surface.ends[item.text.end - 1]
        if item.when is not None and op.when:
            surface.replace_node(item.when, write.check_word(op.when, "a trigger or a code"))
        elif item.when is not None:
            surface.replace(end, surface.ends[item.end - 1], "")
        elif op.when:
            word = "when" if surface.word(item.start).islower() else "WHEN"
            surface.replace(end, end, f" {word} {write.check_word(op.when, 'a trigger or a code')}")
    if op.text is not None:
        indent = surface.indent(item.start) + surface.unit
        # the text's node spans only its token, with a colon before it where there is one
        surface.replace_token(item.text.end - 1, write.text(op.text, indent, surface.newline))
    old_text = item.text.value if op.text is not None else None
    return (ops.EditModelItem(op.kind, op.number, old_text, old_when),)


def remove_model_item(surface: Surface, op: ops.RemoveModelItem) -> tuple[Op, ...]:
    """Remove an item, and a model that would be empty; gives the ops that undo it. Raises: EditRefused."""
    model, index, item = _item(surface, op.kind, op.number)
    if len(model.items) == 1:
        block = surface.whole()
        if model in block.items:
            surface.remove(block, list(block.items).index(model))
            return ()  # its name would be lost
    surface.remove(surface.model(model), index)
    when = item.when.value if isinstance(item, ast.Heuristic) and item.when is not None else ""
    if isinstance(item, ast.Axiom) and item.check is not None:
        return ()  # its CHECK is no part of add_model_item
    return (ops.AddModelItem(op.kind, item.text.value, when, op.number),)


def _kind(kind: str) -> type[Any]:
    found = MODEL_KINDS.get(kind)
    if found is None:
        hint = did_you_mean(kind, MODEL_KINDS) or f"one of {', '.join(MODEL_KINDS)}"
        raise EditRefused("edit.value", f"a SYSTEM_MODEL has no {kind[:40]!r}", hint)
    return found


def _items(surface: Surface, kind: str) -> list[tuple[ast.SystemModel, int, Any]]:
    """Every item of a kind with its model and place, in the order of its numbers."""
    outside = [item for item in surface.spec.items if isinstance(item, ast.SystemModel)]
    agent = surface.spec.agent
    inside = [item for item in agent.items if isinstance(item, ast.SystemModel)] if agent else []
    wanted = _kind(kind)
    return [
        (model, index, item)
        for model in (*outside, *inside)
        for index, item in enumerate(model.items)
        if isinstance(item, wanted)
    ]


def _item(surface: Surface, kind: str, number: int) -> tuple[ast.SystemModel, int, Any]:
    known = _items(surface, kind)
    if not 1 <= number <= len(known):
        hint = f"there are {len(known)}, counted from 1"
        raise EditRefused("edit.unknown", f"there is no {kind} {number}", hint)
    return known[number - 1]


def _first_place(model: ast.SystemModel, kind: str) -> int:
    """Where the first of a kind goes: axioms first, then heuristics, then predictions."""
    before = tuple(MODEL_KINDS.values())[: list(MODEL_KINDS).index(kind)]
    places = [index for index, item in enumerate(model.items) if isinstance(item, before)]
    return places[-1] + 1 if places else 0


def _item_source(surface: Surface, model: ast.SystemModel, op: ops.AddModelItem, indent: str) -> str:
    """Written as its neighbours are: `AXIOM "..."` or `axiom: "..."`."""
    first = next((item for item in model.items if not isinstance(item, ast.Entry)), None)
    if first is not None:
        upper = not surface.word(first.start).islower()
        colon = ":" if surface.word(first.start + 1) == ":" else ""
    else:
        upper = surface.spec.agent is not None
        colon = "" if upper else ":"
    word = op.kind.upper() if upper else op.kind
    text = write.text(op.text, indent + surface.unit, surface.newline)
    when = (
        f" {'WHEN' if upper else 'when'} {write.check_word(op.when, 'a trigger or a code')}"
        if op.when
        else ""
    )
    return f"{word}{colon} {text}{when}"


def _new_model(surface: Surface, op: ops.AddModelItem) -> None:
    block = surface.whole()
    outer = surface.inner(block)
    name = surface.spec.agent.name if surface.spec.agent is not None else "Model"
    empty = ast.SystemModel(name, (), 0, 0)
    inner = surface.newline + outer + surface.unit
    source = _item_source(surface, empty, op, outer + surface.unit)
    word = "SYSTEM_MODEL" if surface.spec.agent is not None else "system_model"
    index = max(
        (place + 1 for place, item in enumerate(block.items) if isinstance(item, ast.Entry)), default=0
    )
    made = f"{word} {name} {{{inner}{source}{surface.newline}{outer}}}"
    surface.insert(block, index, made, apart=True)
