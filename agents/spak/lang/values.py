"""Values of the tree as plain JSON, and the two that have a form of their own: INPUTS and SPACE.

Takes nodes; gives Python values. What a value cannot hold is reported where it stands. Bare words are
`true`, `false`, `none`, or themselves as text; whether one is a variable is the business of scope.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, assert_never

from spak.canon import MAX_INT
from spak.lang import ast
from spak.lang.near import did_you_mean
from spak.lang.report import Report
from spak.lang.template import holes

CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None, "null": None}
INPUT_TYPES = ("int", "float", "string", "bool", "enum")
_WANTED = {
    "int": "a whole number of at most 2^53-1, like 12",
    "float": "a finite number, like 0.5",
    "string": "a text",
    "bool": "true or false",
}

Leaf = Callable[[ast.Text | ast.Name], Any]
"""What a text or a bare word that is no constant stands for."""


def json_value(value: ast.Value, report: Report, leaf: Leaf) -> Any:
    """The JSON of a value; a call or a tagged map is an error here."""
    match value:
        case ast.Text():
            return leaf(value)
        case ast.Number():
            return value.value
        case ast.Name():
            word = value.value.lower()
            return CONSTANTS[word] if word in CONSTANTS else leaf(value)
        case ast.ListValue():
            return tuple(json_value(item, report, leaf) for item in value.items)
        case ast.MapValue():
            return plain_map(value, report, leaf)
        case ast.Tagged() | ast.Call():
            hint = "write a text, a number, a list or a map"
            report.error("lang.value", f"'{value.name}' with arguments is not a value here", hint, value)
            return None
        case _:
            assert_never(value)


def plain_map(value: ast.MapValue | None, report: Report, leaf: Leaf) -> dict[str, Any]:
    """The members of a map, each key once."""
    found: dict[str, Any] = {}
    for entry in entries(value, report):
        found[entry.key] = json_value(entry.value, report, leaf)
    return found


def entries(value: ast.MapValue | None, report: Report) -> list[ast.Entry]:
    """The entries of a map without duplicates, defaults and odd keys, which are reported."""
    found: dict[str, ast.Entry] = {}
    for entry in value.entries if value is not None else ():
        if entry.key in found:
            report.error(
                "lang.duplicate_key", f"'{entry.key}' is given twice", "keep one of them", entry.start
            )
            continue
        if not entry.key.isascii():
            report.error(
                "lang.name", f"'{entry.key}' has letters outside ASCII", "use a-z, 0-9, _", entry.start
            )
            continue
        if entry.key.startswith("$"):
            hint = "write the text itself; `$blob` and `$text` are how records name long texts"
            report.error("lang.reference", f"a member can not be called '{entry.key}'", hint, entry.start)
        if entry.default is not None:
            report.error(
                "lang.value", "a default has no place here", "defaults belong in INPUTS", entry.default
            )
        found[entry.key] = entry
    return list(found.values())


def as_text(value: ast.Text | ast.Name) -> Any:
    """The leaf that knows no variables."""
    return value.value


def fixed_text(report: Report, known: Mapping[str, Any], read: set[str] | None = None) -> Leaf:
    """A leaf for what is fixed before the run: texts may name inputs, `{{input.n}}`, and nothing else.

    What is read is added to `read`."""

    def leaf(value: ast.Text | ast.Name) -> Any:
        if isinstance(value, ast.Name):
            if not value.value.startswith("input."):
                return value.value
            check(value.value, value)
            return known.get(value.value[6:])
        for hole in holes(value.value):
            check(hole.path, value)
        return value.value

    def check(path: str, at: ast.Text | ast.Name) -> None:
        if path.startswith("input.") and path[6:] in known:
            if read is not None:
                read.add(path)
            return
        hint = did_you_mean(path, [f"input.{name}" for name in known]) or "only {{input.NAME}} is known here"
        report.error("lang.unbound_variable", f"'{path}' has no value before the run", hint, at)

    return leaf


# ---- INPUTS --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Input:
    """A declared input: its type, the choices of an enum, and the default."""

    name: str
    type: str
    choices: tuple[Any, ...] = ()
    default: Any = None
    required: bool = False

    def problem(self, value: Any) -> str:
        """Empty when the value fits; else what is wanted."""
        match self.type:
            case "int":
                fits = type(value) is int and abs(value) <= MAX_INT
            case "float":
                fits = type(value) in (int, float) and isfinite(value)
            case "string":
                fits = isinstance(value, str)
            case "bool":
                fits = isinstance(value, bool)
            case _:
                fits = any(type(value) is type(choice) and value == choice for choice in self.choices)
        return "" if fits else self.wanted

    @property
    def wanted(self) -> str:
        """What fits, in words."""
        if self.type == "enum":
            return f"one of {', '.join(map(str, self.choices))}"
        return _WANTED[self.type]

    def read(self, value: Any) -> Any:
        """The value of a text as a command line gives it; other values as they are."""
        if not isinstance(value, str):
            return value
        try:
            if self.type == "int":
                return int(value)
            if self.type == "float":
                return float(value)
        except ValueError:
            return value
        if self.type == "bool":
            return {"true": True, "false": False}.get(value.lower(), value)
        if self.type == "enum" and value not in self.choices:
            return next((choice for choice in self.choices if str(choice) == value), value)
        return value


def inputs(block: ast.Value, report: Report) -> dict[str, Input]:
    """The declarations of an INPUTS block."""
    found: dict[str, Input] = {}
    if not isinstance(block, ast.MapValue):
        report.error("lang.value", "INPUTS wants a block", "INPUTS { n: int = 512 }", block)
        return found
    for entry in block.entries:
        if entry.key in found:
            report.error(
                "lang.duplicate_key", f"input '{entry.key}' is declared twice", "keep one", entry.start
            )
        elif not entry.key.isascii() or "." in entry.key:
            report.error("lang.name", f"'{entry.key}' can not name an input", "use a-z, 0-9, _", entry.start)
        elif (declared := _input(entry, report)) is not None:
            found[entry.key] = declared
    return found


def _input(entry: ast.Entry, report: Report) -> Input | None:
    """`n: int = 4096`, `kind: enum("a", "b") = "a"`, `path: string`, or `n = 4096` with the type left out."""
    value, kind = entry.value, ""
    choices: tuple[Any, ...] = ()
    if isinstance(value, ast.Name) and value.value.lower() not in CONSTANTS:
        kind = value.value
    elif isinstance(value, ast.Call):
        kind = value.name
        choices = tuple(json_value(item, report, as_text) for item in value.args)
        if not all(isinstance(choice, (str, int, float)) for choice in choices):
            hint = 'enum("a", "b") or enum(1, 2, 4)'
            report.error("lang.input_type", "a choice is a text, a number, true or false", hint, value)
            return None
    else:
        default = json_value(value, report, as_text)
        kind = {bool: "bool", int: "int", float: "float", str: "string"}.get(type(default), "")
        if kind and entry.default is None:
            return Input(entry.key, kind, (), default)
    if kind not in INPUT_TYPES or (kind == "enum") != bool(choices):
        hint = did_you_mean(kind, INPUT_TYPES) or 'types: int, float, string, bool, enum("a", "b")'
        report.error("lang.input_type", f"'{kind or 'this'}' is not a type of input", hint, value)
        return None
    default = None if entry.default is None else json_value(entry.default, report, as_text)
    declared = Input(entry.key, kind, choices, default, entry.default is None)
    if entry.default is not None and (wanted := declared.problem(default)):
        report.error("lang.input_type", f"the default of '{entry.key}' does not fit", wanted, entry.default)
    return declared


# ---- SPACE ---------------------------------------------------------------------------------------------


def space(block: ast.Value, report: Report) -> dict[str, Any]:
    """The JSON of a SPACE: lists, {"range": [a, b, step]}, {"log": [a, b]}, `require` a list of texts."""
    found: dict[str, Any] = {}
    if not isinstance(block, ast.MapValue):
        report.error("lang.space", "SPACE wants a block", "SPACE { tile: [8, 16, 32] }", block)
        return found
    for entry in entries(block, report):
        problem, value = _parameter(entry, report)
        if problem:
            report.error(
                "lang.space",
                f"'{entry.key}' {problem}",
                "tile: [8, 16], n: range(1, 8, 2), lr: log(1e-4, 1)",
                entry,
            )
        else:
            found[entry.key] = value
    if not [name for name in found if name != "require"] and not report.errors:
        report.error("lang.space", "the space has no parameter", "SPACE { tile: [8, 16, 32] }", block)
    return found


def _parameter(entry: ast.Entry, report: Report) -> tuple[str, Any]:
    value = entry.value
    if entry.key == "require":
        texts = value.items if isinstance(value, ast.ListValue) else (value,)
        if all(isinstance(item, ast.Text) for item in texts):
            return "", [item.value for item in texts if isinstance(item, ast.Text)]
        return 'wants a list of texts: ["ROWS * TILE <= 256"]', None
    if isinstance(value, ast.ListValue):
        items = [json_value(item, report, as_text) for item in value.items]
        if not items or not all(isinstance(item, (str, int, float)) for item in items):
            return "wants a list of numbers, texts or true and false", None
        if len({(type(item), item) for item in items}) < len(items):
            return "lists a choice twice", None
        return "", items
    if isinstance(value, ast.Call) and value.name in ("range", "log"):
        numbers = [item.value for item in value.args if isinstance(item, ast.Number)]
        sizes = (2, 3) if value.name == "range" else (2,)
        if len(numbers) != len(value.args) or len(numbers) not in sizes or numbers[0] > numbers[1]:
            return f"wants {value.name}(first, last{', step' if value.name == 'range' else ''})", None
        if value.name == "range":
            numbers = [*numbers, 1] if len(numbers) == 2 else numbers
        if (value.name == "range" and numbers[2] <= 0) or (value.name == "log" and numbers[0] <= 0):
            return "wants positive numbers", None
        return "", {value.name: numbers}
    return "is not a list, range(...) or log(...)", None
