"""`apply(text, op)`: an operation becomes a minimal patch of the text, with its inverse.

Each handler looks its things up in the tree (and refuses, with EditRefused, what is not as the operation
needs it), puts replacements on the Surface, and gives the operations that undo it by meaning. The text need
not pass `check`, but it must parse: a text with syntax errors is a SpecError. Comments and layout that the
operation is not about stay as they are, byte for byte, and the inverse gives the same bytes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak.errors import EditRefused, SpecError
from spak.lang import ast
from spak.lang.diagnostics import Severity
from spak.lang.edit import ops, settings, steps, tasks
from spak.lang.edit.ops import Change, Op, Patch
from spak.lang.edit.surface import Replacement, Surface
from spak.lang.parser import Parsed, parse


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit; `patches` replace (start, end, new), in characters of the text before."""

    text: str
    patches: tuple[Replacement, ...]
    inverse: Patch

    @property
    def changed(self) -> bool:
        """Whether the text is another one."""
        return bool(self.patches)


def apply(text: str | Parsed, op: Op) -> Edited:
    """The text after one operation; hand in a Parsed to spare the parsing.

    Raises: EditRefused `edit.*` when the operation can not be done, SpecError `lang.invalid` when the text
    does not parse.
    """
    if isinstance(op, Patch):
        before = text.text if isinstance(text, Parsed) else text
        found = sorted(((item.start, item.end, item.new) for item in op.changes), key=_place)
        _check_patch(before, op)
        return _edited(before, found, ())
    if isinstance(op, ops.RemoveTask) and op.edges:
        return apply_all(text, [*_edges_to(text, op.name), ops.RemoveTask(op.name)])
    parsed = _readable(text)
    surface = Surface(parsed)
    means = HANDLERS[type(op)](surface, op)
    return _edited(parsed.text, sorted(surface.changes, key=_place), means)


def apply_all(text: str | Parsed, many: Sequence[Op]) -> Edited:
    """The text after several operations, each on what the ones before it left; all or none.

    Raises: as `apply`; the message names the operation's number where there is more than one.
    """
    first = text.text if isinstance(text, Parsed) else text
    pieces: list[tuple[int, int] | str] = [(0, len(first))]
    means: list[Op] = []
    current: str | Parsed = text
    for number, op in enumerate(many, start=1):
        try:
            done = apply(current, op)
        except EditRefused as error:
            if len(many) == 1:
                raise
            raise EditRefused(error.code, f"operation {number}: {error.message}", error.hint) from error
        pieces = _compose(pieces, done.patches)
        means[:0] = done.inverse.means
        current = done.text
    return _edited(first, list(_replacements(pieces, len(first))), tuple(means))


# ---- patches -------------------------------------------------------------------------------------------


def _edited(before: str, found: Sequence[Replacement], means: tuple[Op, ...]) -> Edited:
    """The text with the replacements, which are in order, and the patch that takes them back."""
    out: list[str] = []
    changes: list[Change] = []
    done = length = 0
    for start, end, new in found:
        kept = before[done:start]
        out += [kept, new]
        length += len(kept)
        changes.append(Change(length, length + len(new), new, before[start:end]))
        length += len(new)
        done = end
    out.append(before[done:])
    return Edited("".join(out), tuple(found), Patch(tuple(changes), means))


def _place(item: Replacement) -> tuple[int, int]:
    return item[0], item[1]


def _check_patch(text: str, op: Patch) -> None:
    done = 0
    for item in sorted(op.changes, key=lambda item: (item.start, item.end)):
        if not done <= item.start <= item.end or text[item.start : item.end] != item.old:
            hint = "it belongs to another text; its `means` are operations that do not depend on places"
            raise EditRefused("edit.stale", f"the patch does not fit the text at {item.start}", hint)
        if item.end - item.start != len(item.old):
            raise EditRefused("edit.stale", f"the text ends before {item.end}", "it belongs to another text")
        done = item.end


def _compose(
    pieces: list[tuple[int, int] | str], patches: Iterable[Replacement]
) -> list[tuple[int, int] | str]:
    """The pieces of a text (spans of the first one, new texts) after patches of what they make up."""
    made: list[tuple[int, int] | str] = []
    rest = list(reversed(pieces))
    at = 0

    def take(until: int, keep: bool) -> None:
        nonlocal at
        while at < until and rest:
            piece = rest.pop()
            size = len(piece) if isinstance(piece, str) else piece[1] - piece[0]
            room = until - at
            if size > room:
                if isinstance(piece, str):
                    rest.append(piece[room:])
                    piece = piece[:room]
                else:
                    rest.append((piece[0] + room, piece[1]))
                    piece = (piece[0], piece[0] + room)
                size = room
            if keep:
                made.append(piece)
            at += size

    for start, end, new in patches:
        take(start, True)
        if new:
            made.append(new)
        take(end, False)
    return made + rest[::-1]


def _replacements(pieces: Iterable[tuple[int, int] | str], length: int) -> Iterable[Replacement]:
    """What turns the first text into the pieces."""
    done, new = 0, ""
    for piece in [*pieces, (length, length)]:
        if isinstance(piece, str):
            new += piece
            continue
        if new or piece[0] > done:
            yield done, piece[0], new
        new = ""
        done = piece[1]


# ---- operations ----------------------------------------------------------------------------------------


def _readable(text: str | Parsed) -> Parsed:
    parsed = text if isinstance(text, Parsed) else parse(text)
    if not parsed.ok:
        errors = [item for item in parsed.diagnostics if item.severity == Severity.ERROR]
        message = f"line {errors[0].line}: {errors[0].message}"
        raise SpecError("lang.invalid", message, "only a text that parses can be edited", parsed.diagnostics)
    return parsed


def _edges_to(text: str | Parsed, name: str) -> list[Op]:
    """The operations that take away every edge from other tasks to a task."""
    spec = _readable(text).spec
    return [
        ops.RemoveEdge(task.name, edge.trigger)
        for task in spec.tasks()
        if task.name != name
        for item in task.items
        if isinstance(item, ast.Next)
        for edge in item.items
        if edge.target == name
    ]


HANDLERS: Mapping[type[Any], Callable[[Surface, Any], tuple[Op, ...]]] = {
    ops.AddTask: tasks.add_task,
    ops.CreateMissingTask: tasks.create_missing_task,
    ops.RemoveTask: tasks.remove_task,
    ops.RenameTask: tasks.rename_task,
    ops.AddEdge: tasks.add_edge,
    ops.RetargetEdge: tasks.retarget_edge,
    ops.RenameTrigger: tasks.rename_trigger,
    ops.RemoveEdge: tasks.remove_edge,
    ops.SetStart: tasks.set_start,
    ops.ClearStart: tasks.clear_start,
    ops.SetLevel: tasks.set_level,
    ops.Set: settings.set_,
    ops.Clear: settings.clear,
    ops.SetCondition: steps.set_condition,
    ops.AddModelItem: settings.add_model_item,
    ops.EditModelItem: settings.edit_model_item,
    ops.RemoveModelItem: settings.remove_model_item,
    ops.AddStep: steps.add_step,
    ops.RemoveStep: steps.remove_step,
    ops.MoveStep: steps.move_step,
    ops.RenameStep: steps.rename_step,
    ops.SetKind: steps.set_kind,
    ops.SetField: steps.set_field,
    ops.ClearField: steps.clear_field,
    ops.Rewrite: tasks.rewrite,
}
