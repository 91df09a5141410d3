"""A spec as a comparison sees it: things by name, each with the parts that it is made of.

Takes a Spec; gives a View. Blocks are flattened to paths (`RULE/patience`, `VALIDATOR/binary`), keys of
settings are those of the table whatever their case, conditions that stand alone join the one before them. A
part's `mark` is equal for parts that mean the same; its JSON is made only when it is to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spak.lang import ast, settings
from spak.lang.ast import without_spans

Node = Any
CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True, slots=True)
class Part:
    """A value at a path. `setting` says that bare words in it are texts, not variables."""

    node: Node
    mark: Any
    setting: bool = True

    def show(self) -> Any:
        """The part as JSON, for a comparison."""
        return json_of(self.node, self.setting)


@dataclass(slots=True)
class StepView:
    """A step or check, its parts by name."""

    name: str
    kind: str
    node: ast.Step | ast.Check
    parts: dict[str, Part] = field(default_factory=dict)


@dataclass(slots=True)
class TaskView:
    """A task, its parts by name."""

    name: str
    node: ast.Task
    settings: dict[str, Part] = field(default_factory=dict)
    steps: dict[str, StepView] = field(default_factory=dict)
    checks: dict[str, StepView] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Part] = field(default_factory=dict)


@dataclass(slots=True)
class View:
    """A spec as a comparison sees it: every part under the name that people know it by."""

    spec: ast.Spec
    agent: str | None
    level: Any
    start: str
    settings: dict[str, Part] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    items: dict[str, list[Part]] = field(default_factory=dict)
    """Axioms, heuristics and predictions, by kind, in the order of their numbers."""
    tasks: dict[str, TaskView] = field(default_factory=dict)


def view(spec: ast.Spec) -> View:
    """The view of a spec, as far as it parsed."""
    agent = spec.agent
    inner = agent.items if agent is not None else ()
    items = [*(item for item in spec.items if not isinstance(item, ast.Agent)), *inner]
    start = next((item.target for item in items if isinstance(item, ast.Start)), "")
    level = agent.level.value if agent is not None and agent.level is not None else None
    made = View(spec, agent.name if agent is not None else None, level, start)
    made.items = {"axiom": [], "heuristic": [], "prediction": []}
    for item in items:
        match item:
            case ast.Entry():
                _flatten(item, "agent", "", made.settings)
            case ast.SystemModel():
                _model(item, made)
            case ast.Task():
                task = _task(item)
                made.tasks[_free(task.name, made.tasks)] = task
    return made


def _model(node: ast.SystemModel, made: View) -> None:
    made.models.append(node.name)
    for item in node.items:
        if isinstance(item, ast.Entry):
            _flatten(item, "", "SYSTEM_MODEL/", made.settings)
        else:
            made.items[type(item).__name__.lower()].append(Part(item, without_spans(item)))


def _task(node: ast.Task) -> TaskView:
    made = TaskView(node.name, node)
    conditions: dict[str, list[ast.Condition]] = {}
    joined = "success"
    for item in node.items:
        match item:
            case ast.Entry():
                _flatten(item, "task", "", made.settings)
            case ast.Step():
                made.steps[_free(item.name, made.steps)] = _step(item)
            case ast.Evaluation():
                for check in item.items:
                    made.checks[_free(check.name, made.checks)] = _step(check)
            case ast.Next():
                for edge in item.items:
                    made.edges[_free(edge.trigger, made.edges)] = edge.target
            case ast.Success() | ast.Invariant():
                joined = type(item).__name__.lower()
                conditions.setdefault(joined, []).append(item.condition)
            case ast.BareCondition():
                conditions.setdefault(joined, []).append(item.condition)
    for kind, found in conditions.items():
        made.conditions[kind] = Part(tuple(found), without_spans(tuple(found), False))
    return made


def _step(node: ast.Step | ast.Check) -> StepView:
    made = StepView(node.name, node.kind, node)
    for entry in node.body.entries if node.body is not None else ():
        whole = entry.value if entry.default is None else (entry.value, entry.default)
        made.parts[_free(entry.key, made.parts)] = Part(whole, without_spans(whole, False), False)
    return made


def _flatten(entry: ast.Entry, place: str, above: str, into: dict[str, Part]) -> None:
    """The parts of a setting: itself, or each of its keys where it is a block."""
    row = settings.find(place, entry.key) if place in settings.PLACES else None
    path = _free(above + (row.key if row is not None else entry.key), into)
    value = entry.value
    body: ast.MapValue | None = None
    if isinstance(value, ast.MapValue):
        body = value
    elif isinstance(value, ast.Tagged):
        into[path] = Part(ast.Name(value.name, value.start, value.start + 1), ["Name", value.name])
        body = value.body
    if body is None or (not body.entries and value is body) or entry.default is not None:
        if path not in into or entry.default is not None:
            whole = value if entry.default is None else (value, entry.default)
            into[path] = Part(whole, without_spans(whole, False))
        return
    inner = row.table if row is not None and row.kind == "map" else ""
    for item in body.entries:
        _flatten(item, inner, f"{path}/", into)


def _free(name: str, taken: Any) -> str:
    """The name, numbered where it is there already: what is given twice is two things."""
    if name not in taken:
        return name
    few = (f"{name}#{number}" for number in range(2, 5))
    return next((one for one in few if one not in taken), f"{name}#{len(taken) + 1}")


# ---- values for people and programs --------------------------------------------------------------------


def json_of(node: Node, setting: bool = True) -> Any:
    """The value as operations on specs write it: texts as they are, variables as `{"$name": ...}`."""
    match node:
        case ast.Text():
            return node.value
        case ast.Number():
            return node.value
        case ast.Name():
            word = node.value.lower()
            if word in CONSTANTS:
                return CONSTANTS[word]
            return node.value if setting else {"$name": node.value}
        case ast.ListValue():
            return [json_of(item, setting) for item in node.items]
        case ast.MapValue():
            return {entry.key: json_of(entry.value, setting) for entry in node.entries}
        case ast.Tagged():
            options = json_of(node.body, setting) if node.body is not None else {}
            return {"name": node.name, "options": options}
        case ast.Axiom() | ast.Prediction():
            check = node.check if isinstance(node, ast.Axiom) else None
            return {"text": node.text.value, "check": json_of(check)} if check else node.text.value
        case ast.Heuristic():
            return {"text": node.text.value, "when": node.when.value} if node.when else node.text.value
        case tuple():
            return " = ".join(source_of(item) for item in node) if _declares(node) else _conditions(node)
        case None:
            return None
    return {"$source": source_of(node)}


def _declares(node: tuple[Node, ...]) -> bool:
    return len(node) == 2 and not isinstance(node[0], ast.Logic) and isinstance(node[1], _VALUES)


_VALUES = (ast.Text, ast.Number, ast.Name, ast.ListValue, ast.MapValue)


def _conditions(node: tuple[Node, ...]) -> str:
    return " and ".join(source_of(item, "and") for item in node) if len(node) > 1 else source_of(node[0])


def source_of(node: Node, inside: str = "") -> str:
    """The node in the spec's own writing, on one line."""
    match node:
        case ast.Text():
            escaped = node.value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'
        case ast.Number():
            return repr(node.value)
        case ast.Name():
            return node.value
        case ast.ListValue():
            return "[" + ", ".join(map(source_of, node.items)) + "]"
        case ast.MapValue():
            inner = ", ".join(f"{entry.key}: {source_of(entry.value)}" for entry in node.entries)
            return f"{{ {inner} }}" if inner else "{}"
        case ast.Tagged():
            return f"{node.name} {source_of(node.body)}" if node.body is not None else node.name
        case ast.Call():
            return f"{node.name}({', '.join(map(source_of, node.args))})"
        case ast.Logic():
            whole = f" {node.op} ".join(source_of(item, node.op) for item in node.items)
            return f"({whole})" if inside not in ("", "or") else whole
        case ast.Negation():
            return f"not {source_of(node.item, 'not')}"
        case ast.Comparison():
            return f"{source_of(node.left)} {node.op} {source_of(node.right)}"
    return ""


def order(made: TaskView) -> Iterator[str]:
    """The names of all that a task holds, in order of writing."""
    yield from made.settings
    for step in (*made.steps.values(), *made.checks.values()):
        yield from (f"{step.name}/{key}" for key in step.parts)
    yield from (f"->{trigger}" for trigger in made.edges)
    yield from made.conditions
