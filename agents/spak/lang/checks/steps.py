"""Checks inside a task: variables, command lines, literal arguments and options, conditions.

Takes an Outline with its Scope; reports into the outline's Report. Values that only the run will know stand
as UNKNOWN before their schema, so that what is literal is judged now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spak.lang import ast, command, values
from spak.lang.checks import axioms
from spak.lang.lookalike import odd, reading
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import META, Choice, Outline, StepPlan, TaskPlan
from spak.lang.schema import UNKNOWN, Violation, violations
from spak.lang.scope import Scope, Use
from spak.lang.settings import example
from spak.lang.template import Hole, holes, split

LAST = 1 << 30
"""The index of what comes after every step of a task."""

ATOMS = {"file_contains": 2, "file_exists": 1}
READERS = ("exit_code", "metric")

_BRACES = re.compile(r"(?<!\\)\{\{([^{}\n]{1,80})\}\}")
_FIRST_WORD = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*", re.ASCII)
_WORD_IN_BRACES = re.compile(r"\{\{[ \t]*([^\W\d][\w.-]*)[ \t]*\}\}")


def check_task(made: Outline, scope: Scope, task: TaskPlan) -> None:
    """Check the steps and checks of a task: their tools, their arguments, the variables that they read."""
    inside = _Inside(made, scope, task)
    inside.goal()
    for index, step in enumerate(task.steps):
        inside.step(step, index)
    before = len(task.steps) + task.plans
    for index, step in enumerate(task.checks, before):
        inside.step(step, index)
    inside.index, inside.position = LAST, before + len(task.checks)
    for condition in task.success:
        inside.condition(condition)
    inside.invariants()
    if task.validator is not None and task.validator.entry is not None:
        inside.options(task.validator)
    if task.proposer is not made.proposer:
        check_proposer(made, scope, task.proposer)


def check_proposer(made: Outline, scope: Scope, choice: Choice | None) -> None:
    """The options of a proposer, which are fixed before the run."""
    if choice is None or choice.entry is None:
        return
    leaf = values.fixed_text(made.report, made.inputs, scope.read)
    given = values.plain_map(choice.options, made.report, leaf)
    if choice.entry.schema:
        _report(made, violations(choice.entry.schema, given), choice.options, choice.at, "option")


def is_command(step: StepPlan, entry: ast.Entry) -> bool:
    """True when the field is a command line: `cmd:` of a tool, given as text or as a variable."""
    if entry.key != "cmd" or step.tool is None or not isinstance(entry.value, (ast.Text, ast.Name)):
        return False
    accepted = step.tool.schema.get("properties", {}).get("cmd", {}).get("type", "array")
    return step.tool.name == "run" or accepted != "string"


class _Inside:
    """The checks of one task."""

    def __init__(self, made: Outline, scope: Scope, task: TaskPlan) -> None:
        self.made = made
        self.scope = scope
        self.task = task
        self.report = made.report
        self.index = LAST
        self.position = 0
        """Before which of the task's acts (checks/assigned.py) what is looked at is read."""
        self.watching = False
        """True inside an invariant."""

    def goal(self) -> None:
        """It is filled in when the task is entered."""
        entry = self.task.settings.get("GOAL")
        if entry is None or not isinstance(entry.value, ast.Text):
            return
        self.index = 0
        if any(hole.path == "goal" for hole in holes(entry.value.value)):
            hint = "name what it is for, or a variable of an earlier task"
            self.report.error("lang.unbound_variable", "GOAL can not read itself", hint, entry.value)
        else:
            self.leaf(entry.value)
        self.index = LAST

    def step(self, step: StepPlan, index: int) -> None:
        if self.report.full:
            return
        self.index = self.position = index
        given = {
            entry.key: self.command(entry) if is_command(step, entry) else self.value(entry)
            for entry in step.args
        }
        if step.tool is not None:
            self.bare(step.args, step.tool.schema)
            found = violations(step.tool.schema, given)
            _report(self.made, found, step.node.body, step.node.start + 3, "argument", META)

    def options(self, choice: Choice) -> None:
        """A validator's options. A bare `VALIDATOR Name` that lacks a required one is a warning: it may be
        given later, and the seeds write it so."""
        given = values.plain_map(choice.options, self.report, self.leaf)
        if choice.entry is None:
            return
        found = violations(choice.entry.schema, given)
        if choice.options is not None:
            self.bare(choice.options.entries, choice.entry.schema)
        if choice.options is None:
            lacking = [str(item.expected) for item in found if item.code == "schema.required"]
            either = [item for item in found if item.code == "schema.any_of" and not item.path]
            if either:  # without options only names can lack
                lacking += choice.entry.schema["anyOf"][0].get("required", ())
            if lacking:
                hint = f"{choice.name} {{ {' '.join(f'{name}: ...' for name in lacking)} }}"
                message = f"{choice.name} needs {', '.join(lacking)}"
                self.report.warn("lang.missing_option", message, hint, choice.at)
            found = [item for item in found if item.code != "schema.required" and item not in either]
        _report(self.made, found, choice.options, choice.at, "option")
        self.bounds(choice.options, given)
        axioms.check_option(self.made, choice, given)

    def bounds(self, options: ast.MapValue | None, given: Mapping[str, Any]) -> None:
        """Bounds of which no value keeps both."""
        for entry in options.entries if options is not None else ():
            for name, low, high in _crossed(entry.key, given.get(entry.key)):
                message = f"no value keeps '{name}': at_least {low:g} is above at_most {high:g}"
                hint = f"at_least: {high:g} at_most: {low:g}"
                self.report.error("lang.argument", message, hint, entry.value)

    # ---- values

    def value(self, entry: ast.Entry) -> Any:
        return values.json_value(entry.value, self.report, self.leaf)

    def leaf(self, value: ast.Text | ast.Name) -> Any:
        """UNKNOWN for variables, a stand-in for texts with variables in them."""
        if isinstance(value, ast.Name):
            if self.scope.is_variable(value.value):
                self.variable(value.value, value)
                return UNKNOWN
            self.doubt(value)
            return value.value
        found = holes(value.value)
        for hole in found:
            self.variable(hole.path, value, hole)
        if "{{" in value.value:
            self.braces(value)
        if not found:
            parts = split(value.value)
            return "".join(part for part in parts if isinstance(part, str))
        return {"$text": []}

    def braces(self, value: ast.Text) -> None:
        """What stands between double braces and is no variable, though it was meant to be one."""
        if not value.value.isascii():
            self.lookalikes(value)
        for match in _BRACES.finditer(value.value):
            inner = match[1].strip()
            word = _FIRST_WORD.match(inner)
            foreign = inner.startswith("$") or (
                word is not None and inner[word.end() :].lstrip()[:1] in ("|", "[")
            )
            known = word is not None and self.scope.problem(word[0], self.task, self.index) is None
            if not (foreign or known) or (word is not None and word[0] == inner):
                continue
            hint = "only a name is filled in: {{name}}; \\{{ is two braces"
            place = self.report.inside(value, f"({re.escape(match[0])})")
            self.report.warn("lang.braces", f"{match[0]} is taken as text", hint, place or value)

    def lookalikes(self, value: ast.Text) -> None:
        """`{{fіx}}` with a letter that only looks right is text and no variable."""
        for match in _WORD_IN_BRACES.finditer(value.value):
            if seen := reading(match[1]):
                place = self.report.inside(value, r"\{\{[ \t]*(" + re.escape(match[1]) + r")[ \t]*\}\}")
                fix = self.report.replace(place, seen) if place else None
                message = f"'{match[1]}' is not a variable: {odd(match[1])} only looks alike"
                self.report.warn("lang.lookalike", message, f"did you mean '{seen}'?", place or value, fix)

    def bare(self, entries: Iterable[ast.Entry], schema: Mapping[str, Any]) -> None:
        """Bare words that are free texts: each may be meant as a variable that there is not."""
        known = schema.get("properties", {})
        for entry in entries:
            value, kind = entry.value, known.get(entry.key, {})
            if not isinstance(value, ast.Name) or kind.get("type") != "string" or "enum" in kind:
                continue
            if value.value and not (self.scope.is_variable(value.value) or self.near(value)):
                message = f"'{value.value}' is not a variable: it is taken as text"
                fix = self.report.replace(value, f'"{value.value}"')
                self.report.warn("lang.bare_word", message, "put it in quotes, or set it before", value, fix)

    def near(self, value: ast.Name) -> str:
        return nearest(value.value, self.scope.setters) if len(value.value) > 3 else ""

    def doubt(self, value: ast.Name) -> None:
        if near := self.near(value):
            hint = f"did you mean '{near}'? it is taken as text: quotes say that it is meant so"
            message = f"'{value.value}' is not a variable"
            fix = self.report.replace(value, near)
            self.report.warn("lang.bare_word", message, hint, value, fix)

    def variable(self, path: str, at: ast.Value, hole: Hole | None = None) -> None:
        problem = self.scope.problem(path, self.task, self.index)
        late = self.watching and self.too_late(path)
        if self.report.full:
            return
        if problem is None and not late:
            self.scope.uses.append(Use(path, self.task.name, self.position, at))
            return
        place = self.report.hole(at, path)
        if self.watching and (late or path in self.scope.setters):
            hint = "it is asked after every tool step, the first one too"
            message = f"the invariant reads '{path}' before it has a value"
            self.report.error("lang.invariant", message, hint, place)
        elif problem is not None:
            message, hint = problem
            if hole is not None and isinstance(at, ast.Text) and at.value[: hole.start].endswith("$"):
                hint = "\\{{ is two braces, where the text means another tool's ${{ }}"
            near = nearest(path, self.scope.variables()) if hint.startswith("did you mean") else ""
            exact = near and (place is not at or isinstance(at, ast.Name))
            fix = self.report.replace(place, near) if exact else None
            self.report.error("lang.unbound_variable", message, hint, place, fix)

    def too_late(self, path: str) -> bool:
        """True for what only a later step of this task gives: an exit code, the value of a check."""
        head, _, rest = path.partition(".")
        if head == "exit_code":
            before = {step.node.name for step in self.task.steps[: self.index]}
            return rest in self.task.taken and rest not in before
        return head == "metric" and any(rest == check.node.name for check in self.task.checks)

    def command(self, entry: ast.Entry) -> Any:
        value = entry.value
        if isinstance(value, ast.Name):
            if self.scope.is_variable(value.value):
                self.variable(value.value, value)
                return UNKNOWN
            return [value.value]
        if not isinstance(value, ast.Text):
            return self.value(entry)
        parts = split(value.value.strip())
        if "{{" in value.value:
            self.braces(value)
        for part in parts:
            if isinstance(part, Hole):
                self.variable(part.path, value, part)
        if len(parts) == 1 and isinstance(parts[0], Hole):
            return UNKNOWN
        try:
            found = command.arguments(value.value)
        except command.ShellSyntax as error:
            hint = "a tool is one command: use one step per command"
            self.report.error("lang.shell_syntax", f"{error.what} in a command line", hint, value)
            return UNKNOWN
        if not found:
            self.report.error("lang.shell_syntax", "an empty command line", 'cmd: "pytest tests/"', value)
            return UNKNOWN
        return [
            "".join(map(str, argument)) if all(isinstance(part, str) for part in argument) else {"$text": []}
            for argument in found
        ]

    # ---- conditions

    def invariants(self) -> None:
        """They are asked after every tool step, so what they read must be known before the first."""
        if not self.task.invariant:
            return
        acting = (index for index, step in enumerate(self.task.steps) if step.kind != "ask")
        self.index = next(acting, -1)
        if self.task.plans:
            self.index = 0
        if self.index < 0:
            hint = "it is asked after tool steps, and this task has none: success: is asked at the end"
            self.report.warn("lang.idle_invariant", "nothing ever asks this", hint, self.task.invariant[0])
            self.index = LAST
        self.watching = self.index != LAST
        kept, self.position = self.position, min(self.index, self.position)
        for condition in self.task.invariant:
            self.condition(condition)
        self.index, self.position, self.watching = LAST, kept, False

    def condition(self, node: ast.Condition) -> None:
        match node:
            case ast.Logic():
                for item in node.items:
                    self.condition(item)
            case ast.Negation():
                self.condition(node.item)
            case ast.Comparison():
                self.operand(node.left)
                self.operand(node.right)
            case ast.Call():
                if node.name in ATOMS:
                    self.atom(node)
                elif node.name in READERS:
                    hint = f"{node.name}(...) == 0"
                    self.report.error("lang.condition", f"{node.name} is a value: compare it", hint, node)
                else:
                    self.unknown_function(node)
            case ast.Name():
                self.truth(node)
            case _:
                hint = 'file_contains("result.txt", "PASS"), exit_code(s1) == 0, latency < 10'
                self.report.error("lang.condition", "this is not a condition", hint, node)

    def truth(self, node: ast.Name) -> None:
        """A bare word is a condition when it is true, false or an input of type bool."""
        if not node.value or node.value.lower() in ("true", "false"):
            return
        declared = self.made.inputs.get(node.value.removeprefix("input."))
        if declared is not None and declared.type == "bool" and node.value.startswith("input."):
            return
        hint = f"compare it: {node.value} == ..."
        self.report.error("lang.condition", f"'{node.value}' alone is not a condition", hint, node)

    def atom(self, node: ast.Call) -> None:
        wanted = ATOMS[node.name]
        if len(node.args) != wanted:
            hint = 'file_contains("result.txt", "PASS")' if wanted == 2 else 'file_exists("result.txt")'
            message = f"{node.name} takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(node.args)}"
            self.report.error("lang.condition", message, hint, node)
        for item in node.args:
            if isinstance(item, ast.Text):
                self.leaf(item)
            elif isinstance(item, ast.Name) and (self.scope.is_variable(item.value)):
                self.variable(item.value, item)
            elif not (isinstance(item, ast.Name) and not item.value):
                self.report.error("lang.condition", "expected a text or a variable", "use quotes", item)

    def operand(self, node: ast.Value) -> None:
        match node:
            case ast.Name():
                if node.value in self.scope.metrics:
                    self.variable(f"metric.{node.value}", node)
                elif node.value and node.value.lower() not in values.CONSTANTS:
                    self.variable(node.value, node)
            case ast.Text():
                self.leaf(node)
            case ast.Call():
                self.reader(node)
            case _:
                pass

    def reader(self, node: ast.Call) -> None:
        """`exit_code(step)` or `metric(name)` in a comparison."""
        if node.name in ATOMS:
            hint = "it is true or false on its own"
            self.report.error("lang.condition", f"{node.name} can not be compared", hint, node)
        elif node.name not in READERS:
            self.unknown_function(node)
        elif len(node.args) != 1 or not isinstance(node.args[0], (ast.Name, ast.Text)):
            self.report.error("lang.condition", f"{node.name} takes one name", f"{node.name}(s1)", node)
        else:
            self.variable(f"{node.name}.{node.args[0].value}", node.args[0])

    def unknown_function(self, node: ast.Call) -> None:
        known = (*ATOMS, *READERS)
        hint = did_you_mean(node.name, known) or f"known: {', '.join(known)}"
        fix = self.report.replace(node.start, nearest(node.name, known))
        self.report.error("lang.unknown_function", f"unknown function '{node.name}'", hint, node.start, fix)


def _crossed(name: str, value: Any) -> Iterator[tuple[str, float, float]]:
    """The names of bounds that cross, below a value, and the two bounds."""
    if not isinstance(value, Mapping):
        return
    low, high = value.get("at_least"), value.get("at_most")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
        yield name, low, high
    for key, item in value.items():
        yield from _crossed(f"{name}.{key}", item)


def _report(
    made: Outline,
    found: list[Violation],
    body: ast.MapValue | None,
    at: ast.Value | int,
    what: str,
    allowed: tuple[str, ...] = (),
) -> None:
    """Report violations at the entries that they are about. `allowed` may stand among them: one misspelt may
    mean it. What a misspelt name is for is not missing."""
    entries: Mapping[str, ast.Entry] = (
        {entry.key: entry for entry in body.entries} if body is not None else {}
    )
    meant = {
        nearest(str(item.received), item.expected)
        for item in found
        if item.code == "schema.unknown_member" and item.path.count("/") == 1
    }
    for item in found:
        if item.code == "schema.required" and not item.path and item.expected in meant:
            continue
        key = item.path.split("/")[1] if item.path else ""
        entry = entries.get(key)
        place: Any = (
            at if entry is None else (entry.start if item.code == "schema.unknown_member" else entry.value)
        )
        fix, hint = None, ""
        if item.code == "schema.unknown_member" and entry is not None:
            names = (*item.expected, *allowed)
            fix = made.report.replace(place, nearest(entry.key, names))
            hint = did_you_mean(entry.key, names)
        made.report.error(
            "lang.argument", item.sentence(what), hint or item.hint or _wanted(item), place, fix
        )


_PATTERNS = {"^[^*?]+$": "name files and folders by their paths: patterns such as * are not supported"}
"""What a pattern of a tool's schema asks for, in words."""


def _wanted(item: Violation) -> str:
    match item.code:
        case "schema.enum":
            return f"one of {', '.join(map(str, item.expected))}"
        case "schema.unknown_member":
            return f"known: {', '.join(item.expected)}"
        case "schema.pattern":
            return _PATTERNS.get(str(item.expected), f"it must match {item.expected}")
        case _:
            return example("") or "see the tool's schema"
