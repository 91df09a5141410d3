"""The operations on a spec as data: frozen dataclasses with a JSON form.

An operation says what to change and nothing of the text; apply.py makes the patch. `to_json` gives
`{"op": "add_edge", "task": ...}` without what has its default, `from_json` reads it back and refuses what is
no operation. Values are JSON: a string is a text in quotes, `{"$name": "fix_patch"}` a bare word (a variable,
a choice), `{"$source": "range(1, 8)"}` the spec's own writing. `after` says where a new or moved thing goes:
nothing for the end, an empty string for the front, else the name that it follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, get_args

from spak.errors import EditRefused
from spak.lang.near import did_you_mean

JSON = Any


@dataclass(frozen=True, slots=True)
class AddTask:
    """A new task: with a GOAL, or written out in `source` (`TASK name { ... }`)."""

    name: str
    goal: str = ""
    source: str = ""
    after: str | None = None


@dataclass(frozen=True, slots=True)
class CreateMissingTask:
    """A task for an edge or a START that leads to none."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveTask:
    """The task with its comments; with `edges` also the edges to it."""

    name: str
    edges: bool = False


@dataclass(frozen=True, slots=True)
class RenameTask:
    """The definition, every edge to it, START."""

    name: str
    new: str


@dataclass(frozen=True, slots=True)
class AddEdge:
    """`trigger -> target` in NEXT, which is made where there is none; `at` counts from 0."""

    task: str
    trigger: str
    target: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class RetargetEdge:
    """Let an edge lead to another task."""

    task: str
    trigger: str
    target: str


@dataclass(frozen=True, slots=True)
class RenameTrigger:
    """Let an edge be taken on another trigger."""

    task: str
    trigger: str
    new: str


@dataclass(frozen=True, slots=True)
class RemoveEdge:
    """The edge, and NEXT with its last one."""

    task: str
    trigger: str


@dataclass(frozen=True, slots=True)
class SetStart:
    """START, which is made where there is none."""

    task: str


@dataclass(frozen=True, slots=True)
class ClearStart:
    """Remove START."""


@dataclass(frozen=True, slots=True)
class SetLevel:
    """LEVEL of the agent; 0 takes it away."""

    level: int


@dataclass(frozen=True, slots=True)
class Set:
    """A setting of the table: of a task, or of the agent where `task` is empty. The key is a path: `GOAL`,
    `VALIDATOR.binary`, `RULE.patience`, `MEMORY`, `BUDGET.steps`, `SPACE.tile`, `INPUTS.n`."""

    key: str
    value: JSON
    task: str = ""


@dataclass(frozen=True, slots=True)
class Clear:
    """A setting away, and the block that it leaves empty."""

    key: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class SetCondition:
    """`success` or `invariant` of a task, in the spec's writing; an empty condition takes it away."""

    task: str
    kind: str
    condition: str


@dataclass(frozen=True, slots=True)
class AddModelItem:
    """An axiom, heuristic or prediction; `at` is the number that it gets, from 1, else it comes last."""

    kind: str
    text: str
    when: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class EditModelItem:
    """Another text, or another WHEN (an empty one takes it away), for the number that templates use."""

    kind: str
    number: int
    text: str | None = None
    when: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveModelItem:
    """Remove the item of that number, from 1, among those of its kind."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class AddStep:
    """A new step, or with `evaluation` a check: with fields, or written out in `source`."""

    task: str
    name: str
    kind: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict)
    evaluation: bool = False
    source: str = ""
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveStep:
    """Remove a step or a check."""

    task: str
    step: str


@dataclass(frozen=True, slots=True)
class MoveStep:
    """The step with its comments to another place among the steps of its task."""

    task: str
    step: str
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameStep:
    """The step and what reads it: `exit_code.STEP`, `exit_code(STEP)`, and the metric of a check."""

    task: str
    step: str
    new: str


@dataclass(frozen=True, slots=True)
class SetKind:
    """`tool.run`, `llm.query` and so on; the fields stay."""

    task: str
    step: str
    kind: str


@dataclass(frozen=True, slots=True)
class SetField:
    """Set a field of a step, as JSON."""

    task: str
    step: str
    key: str
    value: JSON


@dataclass(frozen=True, slots=True)
class ClearField:
    """Remove a field of a step."""

    task: str
    step: str
    key: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A task written anew, in place, under its name; or, without a task, the spec as a whole."""

    source: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """text[start:end], which must be `old`, becomes `new`; in characters of the text before the patch."""

    start: int
    end: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of the text itself: the inverse of any operation, byte for byte. `means` are the operations
    that undo it by meaning, for a text that has changed since; empty where there are none."""

    changes: tuple[Change, ...]
    means: tuple[Op, ...] = ()


Op = (
    AddTask
    | CreateMissingTask
    | RemoveTask
    | RenameTask
    | AddEdge
    | RetargetEdge
    | RenameTrigger
    | RemoveEdge
    | SetStart
    | ClearStart
    | SetLevel
    | Set
    | Clear
    | SetCondition
    | AddModelItem
    | EditModelItem
    | RemoveModelItem
    | AddStep
    | RemoveStep
    | MoveStep
    | RenameStep
    | SetKind
    | SetField
    | ClearField
    | Rewrite
    | Patch
)

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
OPS: Mapping[str, type[Any]] = {_CAPITAL.sub("_", kind.__name__).lower(): kind for kind in get_args(Op)}
"""Operations by the name that they have in JSON."""

NAMES = {kind: name for name, kind in OPS.items()}
MAX_OPS = 10_000


def to_json(op: Op) -> dict[str, Any]:
    """The operation as JSON."""
    if isinstance(op, Patch):
        changes = [
            {"start": item.start, "end": item.end, "old": item.old, "new": item.new} for item in op.changes
        ]
        return {"op": "patch", "changes": changes, "means": [to_json(item) for item in op.means]}
    shown: dict[str, Any] = {"op": NAMES[type(op)]}
    for item in fields(op):
        value = getattr(op, item.name)
        if item.default_factory is not MISSING:
            if value:
                shown[item.name] = dict(value)
        elif item.default is MISSING or value != item.default:
            shown[item.name] = value
    return shown


def from_json(value: Any) -> Op:
    """The operation of a JSON object. Raises: EditRefused `edit.unknown_op`, `edit.arguments`."""
    if not isinstance(value, Mapping) or not isinstance(value.get("op"), str):
        raise EditRefused("edit.arguments", "an operation is an object", '{"op": "add_task", "name": "a"}')
    name = value["op"].replace("-", "_")
    kind = OPS.get(name)
    if kind is None:
        raise EditRefused("edit.unknown_op", f"there is no operation '{name}'", did_you_mean(name, OPS))
    given = {key: item for key, item in value.items() if key != "op"}
    if kind is Patch:
        return _patch(given)
    known = {item.name: item for item in fields(kind)}
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known) or f"it takes: {', '.join(known)}"
            raise EditRefused("edit.arguments", f"{name} takes no '{key}'", hint)
    for key, item in known.items():
        if key not in given:
            if item.default is MISSING and item.default_factory is MISSING:
                raise EditRefused("edit.arguments", f"{name} needs '{key}'", f"it takes: {', '.join(known)}")
        elif wanted := _misfit(str(item.type), given[key]):
            raise EditRefused("edit.arguments", f"'{key}' of {name} wants {wanted}", "")
    made: Op = kind(**given)
    return made


def ops_from_json(value: Any) -> tuple[Op, ...]:
    """One operation, or a list of them, or what `spak edit --json` printed as `inverse`."""
    items = value if isinstance(value, list) else [value]
    if len(items) > MAX_OPS:
        raise EditRefused("edit.arguments", f"more than {MAX_OPS} operations", "apply them in parts")
    return tuple(from_json(item) for item in items)


def _misfit(wanted: str, value: Any) -> str:
    """Empty when the value is of the field's type, else the type in words."""
    if value is None:
        return "" if wanted == "JSON" or "None" in wanted else "a value"
    fits, words = {
        "str": (isinstance(value, str), "a text"),
        "int": (type(value) is int, "a whole number"),
        "bool": (isinstance(value, bool), "true or false"),
        "Mapp": (isinstance(value, Mapping) and all(isinstance(key, str) for key in value), "an object"),
        "JSON": (True, ""),
    }[wanted.split(" ")[0][:4]]
    return "" if fits else words


def _patch(given: Mapping[str, Any]) -> Patch:
    if not isinstance(given.get("changes"), list) or not set(given) <= {"changes", "means"}:
        hint = '{"op": "patch", "changes": [{"start": 0, "end": 0, "old": "", "new": "x"}]}'
        raise EditRefused("edit.arguments", "a patch is a list of changes", hint)
    shape = {"start": int, "end": int, "old": str, "new": str}
    for item in given["changes"]:
        if not isinstance(item, Mapping) or {key: type(part) for key, part in item.items()} != shape:
            raise EditRefused("edit.arguments", "a change has start, end, old and new", "")
    means = given.get("means", [])
    return Patch(tuple(Change(**item) for item in given["changes"]), ops_from_json(means) if means else ())
