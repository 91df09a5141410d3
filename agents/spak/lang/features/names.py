"""The names of a spec: where each is given and where it is used; go to definition, references, rename.

Takes a View; gives Occurrences in order of place. Names of tasks, variables and inputs belong to the file,
names of steps and checks to their task, tools and their like to the catalog. A variable inside a template is
found in the raw text, so that its place is exact. A rename is only given if the text after it has as many
uses of the new name and no new error; otherwise it says why not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spak.lang import ast, settings
from spak.lang.checks.steps import READERS
from spak.lang.diagnostics import Edit, Severity, apply_fix
from spak.lang.features.view import Kind, Occurrence, Place, View
from spak.lang.imports import settings_of
from spak.lang.parser import parse
from spak.lang.scope import MARKS, PLAIN
from spak.lang.template import holes
from spak.lang.values import CONSTANTS

RENAMED: tuple[Kind, ...] = ("task", "step", "check", "variable", "input")
TABLES: dict[str, Kind] = {
    "tools": "tool",
    "validators": "validator",
    "proposers": "proposer",
    "backends": "backend",
}
TEXTS: tuple[Kind, ...] = ("axiom", "heuristic", "prediction")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")


@dataclass(frozen=True, slots=True)
class Renaming:
    """The edits of a rename, or the reason why there are none."""

    edits: tuple[Edit, ...] = ()
    problem: str = ""


def occurrences(view: View) -> tuple[Occurrence, ...]:
    """Every name of the text, in order of place."""
    if view.names is None:
        found = set(_Collector(view).collect())
        view.names = tuple(sorted(found, key=lambda item: (item.start, item.end, item.kind)))
    return view.names


def at(view: View, offset: int) -> Occurrence | None:
    """The name that the offset touches; the one behind it where it stands between two."""
    names = occurrences(view)
    index = bisect_right(names, offset, key=lambda item: item.start) - 1
    for item in reversed(names[max(0, index - 3) : index + 1]):
        if item.start <= offset <= item.end:
            return item
    return None


def definition(view: View, offset: int) -> tuple[Place, ...]:
    """Where the name at the offset is given, here or in an imported file; the file that an IMPORT names."""
    item = at(view, offset)
    if item is None:
        return _imported_file(view, offset)
    here = tuple(Place(other.start, other.end) for other in same(view, item) if other.defines)
    return here or _elsewhere(view, item)


def _elsewhere(view: View, item: Occurrence) -> tuple[Place, ...]:
    """A task that an imported file gives."""
    plan = view.outline.tasks.get(item.name) if item.kind == "task" else None
    if plan is None:
        return ()
    source = view.outline.report.source
    start, end = source.offsets(plan.node.start + 1, plan.node.start + 2)
    origin = source.origin(start)
    if origin is None or not origin.file:
        return ()
    shift = origin.at - origin.start
    return (Place(start + shift, end + shift, origin.file),)


def _imported_file(view: View, offset: int) -> tuple[Place, ...]:
    folder = view.parsed.name[: view.parsed.name.rfind("/") + 1]
    for entry in settings_of(view.spec, "IMPORT", "POLICY"):
        value = entry.value
        start, end = view.source.offsets(value.start, value.end)
        if start <= offset <= end and isinstance(value, ast.Text) and value.value and not value.long:
            return (Place(0, 0, folder + value.value),)
    return ()


def references(view: View, offset: int, declaration: bool = True) -> tuple[Place, ...]:
    """Where the name at the offset is used, and given."""
    found = same(view, at(view, offset))
    return tuple(Place(other.start, other.end) for other in found if declaration or not other.defines)


def same(view: View, item: Occurrence | None) -> tuple[Occurrence, ...]:
    """Every occurrence of the same symbol."""
    return () if item is None else tuple(other for other in occurrences(view) if other.symbol == item.symbol)


# ---- rename --------------------------------------------------------------------------------------------


def prepare_rename(view: View, offset: int) -> Place | None:
    """The name at the offset, if it is one that this file gives."""
    item = at(view, offset)
    if item is None or item.kind not in RENAMED or not any(other.defines for other in same(view, item)):
        return None
    return Place(item.start, item.end)


def rename(view: View, offset: int, new: str) -> Renaming:
    """The edits that give the name at the offset a new spelling everywhere."""
    item = at(view, offset)
    if item is None or prepare_rename(view, offset) is None:
        return Renaming(problem="this is not a name that this file defines")
    problem = _unfit(view, item, new)
    if problem or new == item.name:
        return Renaming(problem=problem)
    uses = same(view, item)
    edits = tuple((other.start, other.end, new) for other in uses)
    after = View(parse(apply_fix(view.text, edits), view.parsed.name), view.catalog, view.follow)
    renamed = [other for other in occurrences(after) if other.symbol == (item.kind, new, item.owner)]
    if len(renamed) != len(uses) or _errors(after) > _errors(view):
        return Renaming(problem=f"'{new}' would change what the spec means")
    return Renaming(edits)


def _errors(view: View) -> int:
    return sum(found.severity == Severity.ERROR for found in view.diagnostics)


def _unfit(view: View, item: Occurrence, new: str) -> str:
    """Why the name can not be this one; empty when it can."""
    if not _NAME.fullmatch(new):
        return f"'{new}' is not a name: letters, digits, _ and inner -"
    if item.kind in ("variable", "check") and (new.lower() in CONSTANTS or new in (*PLAIN, *MARKS)):
        return f"'{new}' has a meaning of its own"
    kinds = ("step", "check") if item.kind in ("step", "check") else (item.kind,)
    taken = any(
        other.kind in kinds and other.name == new and other.owner == item.owner and other.defines
        for other in occurrences(view)
        if new != item.name
    )
    return f"there is a '{new}' already" if taken else ""


# ---- the walk ------------------------------------------------------------------------------------------


class _Collector:
    def __init__(self, view: View) -> None:
        self.view = view
        self.made = view.outline
        self.scope = view.scope
        self.source = view.source
        self.task: ast.Task | None = None
        self.checks = {check.node.name for task in self.made.tasks.values() for check in task.checks}

    def collect(self) -> Iterator[Occurrence]:
        for item in self.view.spec.items:
            yield from self.top(item)
            if isinstance(item, ast.Agent):
                for inner in item.items:
                    yield from self.top(inner)
        yield from self.texts()

    def top(self, item: ast.TopItem | ast.AgentItem) -> Iterator[Occurrence]:
        self.task = None
        match item:
            case ast.Start():
                yield from self.token("task", item.target, item.end - 1)
            case ast.Task():
                yield from self.of_task(item)
            case ast.Entry():
                yield from self.setting(item)
            case _:
                pass

    def texts(self) -> Iterator[Occurrence]:
        """The numbered texts of the SYSTEM_MODELs: `axiom.1` and its like lead to them."""
        counts = dict.fromkeys(TEXTS, 0)
        for model in self.view.spec.models():
            for item in model.items:
                if isinstance(item, (ast.Axiom, ast.Heuristic, ast.Prediction)):
                    kind: Kind = TEXTS[(ast.Axiom, ast.Heuristic, ast.Prediction).index(type(item))]
                    counts[kind] += 1
                    start, end = self.source.offsets(item.start, item.text.end)
                    yield Occurrence(kind, str(counts[kind]), "", start, end, True)

    def of_task(self, task: ast.Task) -> Iterator[Occurrence]:
        yield from self.token("task", task.name, task.start + 1, True)
        self.task = task
        for item in task.items:
            match item:
                case ast.Next():
                    for edge in item.items:
                        yield from self.token("task", edge.target, edge.start + 2)
                case ast.Step():
                    yield from self.step(item, "step")
                case ast.Evaluation():
                    for check in item.items:
                        yield from self.step(check, "check")
                case ast.Success() | ast.Invariant() | ast.BareCondition():
                    yield from self.condition(item.condition)
                case ast.Entry():
                    yield from self.setting(item)

    def setting(self, entry: ast.Entry) -> Iterator[Occurrence]:
        place = "task" if self.task is not None else "agent"
        setting = settings.find(place, entry.key) or (
            settings.find("config", entry.key) if place == "agent" else None
        )
        kind = setting.kind if setting is not None else ""
        value = entry.value
        if kind == "inputs" and isinstance(value, ast.MapValue):
            for declared in value.entries:
                yield from self.token("input", declared.key, declared.start, True)
        elif setting is not None and setting.key == "OUTPUT":
            yield from self.defined(value)
        elif setting is not None and setting.table in TABLES:
            yield from self.choice(TABLES[setting.table], value)
        elif kind == "map" and isinstance(value, ast.MapValue):
            for inner in value.entries:
                yield from self.setting(inner)
        elif kind == "plain" and isinstance(value, ast.Text):
            yield from self.template(value)

    def choice(self, kind: Kind, value: ast.Value) -> Iterator[Occurrence]:
        """A name of the catalog, or a list of them, and the options behind it."""
        match value:
            case ast.ListValue():
                for item in value.items:
                    yield from self.choice(kind, item)
            case ast.Tagged():
                yield from self.token(kind, value.name, value.start)
                yield from self.value(value.body)
            case ast.Name():
                yield from self.token(kind, self.canonical(kind, value.value), value.start)
            case _:
                pass

    def canonical(self, kind: Kind, name: str) -> str:
        tool = self.made.catalog.tool(name) if kind == "tool" else None
        return tool.name if tool is not None else name

    def step(self, node: ast.Step | ast.Check, kind: Kind) -> Iterator[Occurrence]:
        owner = self.task.name if self.task else ""
        yield from self.token(kind, node.name, node.start + 1, True, owner)
        family, _, rest = node.kind.partition(".")
        if family == "tool" and rest:
            start, end = self.source.offsets(node.start + 3, node.start + 4)
            if end - start == len(node.kind):
                yield Occurrence("tool", self.canonical("tool", rest), "", start + 5, end)
        for entry in node.body.entries if node.body is not None else ():
            if entry.key == "output_var":
                yield from self.defined(entry.value)
            elif entry.key not in ("on_fail", "poll", "role"):
                yield from self.value(entry.value)

    def defined(self, value: ast.Value) -> Iterator[Occurrence]:
        if isinstance(value, ast.Name):
            yield from self.token("variable", value.value, value.start, True)
        elif isinstance(value, ast.Text):
            start, end = self.source.offsets(value.start, value.end)
            at = self.source.text.find(value.value, start, end)
            if value.value and at >= 0:
                yield Occurrence("variable", value.value, "", at, at + len(value.value), True)

    # ---- values and conditions

    def value(self, value: ast.Value | None) -> Iterator[Occurrence]:
        match value:
            case ast.Text():
                yield from self.template(value)
            case ast.Name():
                if self.scope.is_variable(value.value):
                    yield from self.path(value.value, *self.source.offsets(value.start, value.end))
            case ast.ListValue():
                for item in value.items:
                    yield from self.value(item)
            case ast.MapValue():
                for entry in value.entries:
                    yield from self.value(entry.value)
            case _:
                pass

    def template(self, value: ast.Text) -> Iterator[Occurrence]:
        if "{{" not in value.value:
            return
        start, end = self.source.offsets(value.start, value.end)
        for hole in holes(self.source.text[start:end]):
            first = self.source.text.index(hole.path, start + hole.start)
            yield from self.path(hole.path, first, first + len(hole.path))

    def condition(self, node: ast.Condition) -> Iterator[Occurrence]:
        match node:
            case ast.Logic():
                for item in node.items:
                    yield from self.condition(item)
            case ast.Negation():
                yield from self.condition(node.item)
            case ast.Comparison():
                yield from self.operand(node.left)
                yield from self.operand(node.right)
            case ast.Call() | ast.Name():
                yield from self.operand(node)
            case _:
                pass

    def operand(self, node: ast.Value) -> Iterator[Occurrence]:
        match node:
            case ast.Text():
                yield from self.template(node)
            case ast.Name():
                start, end = self.source.offsets(node.start, node.end)
                if node.value in self.checks:
                    yield from self.check(node.value, start, end)
                elif node.value.lower() not in CONSTANTS:
                    yield from self.path(node.value, start, end)
            case ast.Call(name=name, args=args) if name in READERS and args:
                what = args[0]
                if isinstance(what, ast.Name):
                    yield from self.reader(name, what.value, *self.source.offsets(what.start, what.end))
            case ast.Call(args=args):
                for item in args:
                    yield from self.value(item)
            case _:
                pass

    def path(self, path: str, start: int, end: int) -> Iterator[Occurrence]:
        """A variable: `fix_patch`, `input.n`, `exit_code.s1`, `axiom.1`, ..."""
        head, dot, rest = path.partition(".")
        tail = start + len(head) + 1
        if not dot:
            kind: Kind = "builtin" if path in PLAIN else "variable"
            yield Occurrence(kind, path, "", start, end)
        elif head == "input":
            yield Occurrence("input", rest, "", tail, end)
        elif head in READERS:
            yield from self.reader(head, rest, tail, end)
        elif head in TEXTS:
            yield Occurrence(TEXTS[TEXTS.index(head)], rest, "", start, end)
        else:
            yield Occurrence("builtin", path, "", start, end)

    def reader(self, name: str, what: str, start: int, end: int) -> Iterator[Occurrence]:
        end = start + len(what)
        if name == "metric":
            yield from self.check(what, start, end)
        else:
            owner, kind = self.owner(what, ("step", "check"))
            yield Occurrence(kind, what, owner, start, end)

    def check(self, name: str, start: int, end: int) -> Iterator[Occurrence]:
        if name in self.checks:
            owner, kind = self.owner(name, ("check",))
            yield Occurrence(kind, name, owner, start, end)

    def owner(self, name: str, kinds: Iterable[Kind]) -> tuple[str, Kind]:
        """The task, and the kind, of the step or check that a name in this task means: its own first."""
        here = self.task.name if self.task is not None else ""
        tasks = sorted(self.made.tasks.values(), key=lambda task: task.name != here)
        for task in tasks:
            for kind in kinds:
                plans = task.steps if kind == "step" else task.checks
                if any(plan.node.name == name for plan in plans):
                    return task.name, kind
        return here, "step"

    def token(
        self, kind: Kind, name: str, token: int, defines: bool = False, owner: str = ""
    ) -> Iterator[Occurrence]:
        """The name that one token is; nothing for a gap that the parser filled."""
        start, end = self.source.offsets(token, token + 1)
        if name and end > start:
            yield Occurrence(kind, name, owner, start, end, defines)
