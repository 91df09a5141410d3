"""Rendering: templates, arguments and conditions filled in from the state.

Takes the compiled values of spak.program; gives JSON. A value too long to be held inline stays a reference,
`{"$blob": hash, "size": n}`, and text around one becomes `{"$text": [parts]}`: the runner resolves both when
it performs the effect, so that `step` never holds file bytes. A name without a value is `Unbound`, which the
caller turns into a refusal; nothing is ever rendered as an empty string in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple, assert_never

from spak import canon, shell
from spak.errors import UserError
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.policy.facts import is_reference
from spak.program import All, AnyOf, Atom, CommandLine, Compare, Condition, Not, Ref, Task, Template, Value

SHOWN = 80
"""Characters of a compared text that R4 shows."""
SAID = 400
"""Characters of a condition, and of what was found for it, that R4 shows."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?\Z", re.ASCII)


class Unbound(Exception):
    """A variable that has no value here; the argument is its path."""


class BadCommand(Exception):
    """A command line from a variable that is not one simple command; the argument is a hint."""


def render(value: Any, rules: Rules, state: State) -> Any:
    """The JSON of a compiled value. Raises: Unbound, BadCommand."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None or kind is float:
        return value
    if kind is Template:
        return _text(
            [part if type(part) is str else as_text(lookup(part.path, rules, state)) for part in value.parts]
        )
    if kind is Ref:
        return lookup(value.path, rules, state)
    if kind is CommandLine:
        return _command(value, rules, state)
    if isinstance(value, Mapping):
        return {name: render(item, rules, state) for name, item in value.items()}
    return [render(item, rules, state) for item in value]


def lookup(path: str, rules: Rules, state: State) -> Any:
    """The value of a variable. Raises: Unbound."""
    variables = state.r7.variables
    if path in variables:
        return variables[path]
    head, _, rest = path.partition(".")
    program = rules.program
    match head:
        case "axiom" | "heuristic" | "prediction" if rest.isdigit():
            items: tuple[str, ...] = {
                "axiom": rules.axioms,
                "heuristic": tuple(item.text for item in program.heuristics),
                "prediction": program.predictions,
            }[head]
            if 1 <= int(rest) <= len(items):
                return items[int(rest) - 1]
        case "goal" if not rest:
            return goal(program.tasks[state.r0.task], state)
        case "error" if not rest:
            return "" if state.r4 is None else canon.dumps(state.r4).decode()
        case "input" if rest in program.inputs:
            return program.inputs[rest]
        case "best" | "baseline" | "runner_up":
            found = _marked(getattr(state.r7, head), rest)
            if found is not None:
                return found
        case "metric" if rest in state.r7.metrics:
            return state.r7.metrics[rest]
    raise Unbound(path)


def goal(task: Task, state: State) -> Any:
    """The GOAL of the task that the run is in, with its variables filled in; it may hold references."""
    return state.r7.goal if isinstance(task.goal, Template) else task.goal


def as_text(value: Any) -> Any:
    """A value inside a template: text as it is, everything else as canonical JSON, references untouched."""
    if type(value) is str or is_reference(value):
        return value
    return canon.dumps(value).decode()


def number(text: Any) -> Any:
    """The number that a text is, or the value itself: outputs of programs are compared as numbers.

    A text too big for a double stays text: a record holds no infinity. Digits are those of ASCII.
    """
    if type(text) is str and _NUMBER.match(text.strip()) and isfinite(value := float(text)):
        return int(value) if value.is_integer() and abs(value) <= canon.MAX_INT else value
    return text


def atoms(condition: Condition | None) -> Iterator[Atom]:
    """The conditions that only the workspace can answer, in the order in which `holds` takes the answers."""
    match condition:
        case None | Compare():
            return
        case Atom():
            yield condition
        case Not(item):
            yield from atoms(item)
        case All(items) | AnyOf(items):
            for item in items:
                yield from atoms(item)
        case _:
            assert_never(condition)


def questions(condition: Condition | None, rules: Rules, state: State) -> tuple[Mapping[str, Any], ...]:
    """The rendered atoms of a condition, as the runner answers them. Raises: Unbound."""
    return tuple(
        {"function": atom.function, "args": [render(argument, rules, state) for argument in atom.arguments]}
        for atom in atoms(condition)
    )


class NotANumber(NamedTuple):
    """Why a comparison has no answer: a text that is no number stands against a number."""

    comparison: str
    """As a spec writes it: `lines == 2`."""
    number: str
    text: str


def holds(condition: Condition, facts: Iterator[bool], rules: Rules, state: State) -> bool | NotANumber:
    """Whether a condition holds; an unbound name is false.

    A comparison that has no answer leaves the condition without one, unless its other parts decide it: one
    that is false in an `and`, one that is true in an `or`.
    `facts` answers its atoms in the order of `atoms`; lists, not generators, so that none is left out.
    """
    match condition:
        case Atom():
            return next(facts, False)
        case Compare():
            return _compare(condition, rules, state)
        case Not(item):
            found = holds(item, facts, rules, state)
            return found if isinstance(found, NotANumber) else not found
        case All(items):
            return _joined([holds(item, facts, rules, state) for item in items], False)
        case AnyOf(items):
            return _joined([holds(item, facts, rules, state) for item in items], True)
        case _:
            assert_never(condition)


def unmet(condition: Condition, facts: Iterator[bool], rules: Rules, state: State) -> tuple[str, str]:
    """A condition as a spec writes it, and what was found for each part of it, for R4; both bounded."""
    written, found = _unmet(condition, facts, rules, state)
    return written[:SAID], "; ".join(found)[:SAID]


def _unmet(condition: Condition, facts: Iterator[bool], rules: Rules, state: State) -> tuple[str, list[str]]:
    match condition:
        case Atom():
            call = f"{condition.function}({', '.join(_written(each) for each in condition.arguments)})"
            return call, [f"{call} is {'true' if next(facts, False) else 'false'}"]
        case Compare():
            found = []
            for side in (condition.left, condition.right):
                if isinstance(side, (Ref, Template)):
                    found.append(f"{_written(side)} is {_found(side, rules, state)}")
            return f"{_written(condition.left)} {condition.op} {_written(condition.right)}", found
        case Not(item):
            written, found = _unmet(item, facts, rules, state)
            return f"not ({written})", found
        case All(items) | AnyOf(items):
            parts = [_unmet(item, facts, rules, state) for item in items]
            word = " and " if isinstance(condition, All) else " or "
            written = word.join(f"({one})" if " or " in one or " and " in one else one for one, _ in parts)
            return written, [each for _, listed in parts for each in listed]
        case _:
            assert_never(condition)


def _found(operand: Value, rules: Rules, state: State) -> str:
    try:
        value = render(operand, rules, state)
    except Unbound:
        return "not set"
    if is_reference(value):
        return "a long text"
    shown = canon.dumps(value).decode()
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def _joined(answers: list[bool | NotANumber], deciding: bool) -> bool | NotANumber:
    if any(answer is deciding for answer in answers):
        return deciding
    return next((answer for answer in answers if isinstance(answer, NotANumber)), not deciding)


def _marked(mark: Any, part: str) -> Any:
    if mark is None:
        return None
    if part in mark.files:
        return {"$blob": mark.files[part]}
    return {"value": mark.value, "params": dict(mark.params), "evaluation": mark.evaluation}.get(part)


def _command(line: CommandLine, rules: Rules, state: State) -> list[Any]:
    if line.whole is None:
        return [as_text(render(argument, rules, state)) for argument in line.argv]
    text = lookup(line.whole.path, rules, state)
    if type(text) is not str:
        raise BadCommand("the command line is not a short text")
    try:
        return list(shell.argv(text))
    except UserError as error:
        raise BadCommand(error.hint or error.message) from error


def _text(parts: list[Any]) -> Any:
    if all(type(part) is str for part in parts):
        return "".join(parts)
    return {"$text": parts}


def _compare(node: Compare, rules: Rules, state: State) -> bool | NotANumber:
    op = node.op
    try:
        one, other = (number(render(side, rules, state)) for side in (node.left, node.right))
    except Unbound:
        return False
    numbers = [value for value in (one, other) if type(value) in (int, float)]
    texts = [value for value in (one, other) if type(value) is str or is_reference(value)]
    if numbers and texts:
        return NotANumber(
            f"{_written(node.left)} {op} {_written(node.right)}", str(numbers[0]), _excerpt(texts[0])
        )
    if op == "==":
        return bool(one == other)
    if op == "!=":
        return bool(one != other)
    if type(one) not in (int, float) or type(other) not in (int, float):
        return False
    found: bool = {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[op]
    return found


def _written(operand: Any) -> str:
    """An operand of a comparison as a spec writes it."""
    if isinstance(operand, Ref):
        return operand.path.removeprefix("metric.")
    if isinstance(operand, Template):
        parts = [part if isinstance(part, str) else "{{" + part.path + "}}" for part in operand.parts]
        return canon.dumps("".join(parts)).decode()
    return canon.dumps(operand).decode()


def _excerpt(text: Any) -> str:
    """A text that was compared, short enough for R4."""
    if type(text) is not str:
        return "a text too long for a number"
    shown = text.strip()
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
