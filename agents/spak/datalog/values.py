"""Values of facts, outside and inside.

Outside, a value is what a caller writes: a `Name` (`/go`), text, an integer, a float, a tuple (a list of the
language), a `Map` or a `Struct`; `True` and `False` are the names `/true` and `/false`. Inside the engine
each value has a form that hashes and compares at the speed of C and in which no two types are ever equal:

    name "/go"    text '"go'    integer 3    float ("f", 0.5)    list ("[", ...)    pair ("p", ...)
    map ("{", ...)    struct ("s", ...)

so that `/a` never equals `"/a"`, and 1 never equals 1.0 by accident. `order` sorts the inside form: the one
order in which rows are ever shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spak.datalog.errors import PolicyError
from spak.datalog.intervals import OPEN_END, OPEN_START, is_temporal, written

MIN_INT, MAX_INT = -(2**63), 2**63 - 1
KINDS = ("name", "string", "number", "float64", "list", "pair", "map", "struct")
_TAGS = {"f": "float64", "[": "list", "p": "pair", "{": "map", "s": "struct"}
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A name constant; `text` begins with a slash."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Map:
    """A map of the language: entries in the order of their keys."""

    entries: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of the language: fields (names) in order."""

    fields: tuple[tuple[Name, Any], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """What `fn:pair` makes."""

    first: Any
    second: Any


Value = Name | str | int | float | tuple[Any, ...] | Map | Struct | Pair
Fact = tuple[str, tuple[Value, ...]]
Inner = Any
Row = tuple[Inner, ...]


def encode(value: Any, depth: int = 0) -> Inner:
    """The inside form. Raises: PolicyError `policy.type` for what is no value."""
    kind = type(value)
    if kind is str:
        return '"' + (value if value.isascii() else _whole(value))
    if kind is Name:
        text = value.text if value.text.isascii() else _whole(value.text)
        if len(text) < 2 or text[0] != "/":
            raise PolicyError("policy.type", f"{text!r} is no name: a name begins with a slash")
        return text
    if kind is int:
        if not MIN_INT <= value <= MAX_INT:
            raise PolicyError("policy.type", "a number beyond 64 bits", "give it as a string")
        return value
    if kind is bool:
        return "/true" if value else "/false"
    if kind is float:
        return real(value)
    if depth > _MAX_DEPTH:
        raise PolicyError("policy.type", "a value is nested too deep")
    if kind is tuple or kind is list:
        return ("[", *(encode(item, depth + 1) for item in value))
    if kind is Pair:
        return ("p", encode(value.first, depth + 1), encode(value.second, depth + 1))
    if kind is Map or kind is Struct:
        pairs = value.entries if kind is Map else value.fields
        return mapping(
            "{" if kind is Map else "s", [(encode(k, depth + 1), encode(v, depth + 1)) for k, v in pairs]
        )
    raise PolicyError(
        "policy.type", f"no value of a fact: {kind.__name__}", "use Name, str, int, float or tuple"
    )


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PolicyError("policy.type", f"text with half a character: {error.reason}") from error
    return text


def real(value: float) -> Inner:
    """A float as a value; -0.0 becomes 0.0. Raises: PolicyError `policy.type` where it is not finite."""
    if value != value or value in (float("inf"), float("-inf")):
        raise PolicyError("policy.type", f"not a finite number: {value}")
    return ("f", value + 0.0 if value else 0.0)


def mapping(tag: str, pairs: Iterable[tuple[Inner, Inner]]) -> Inner:
    """A map or struct in its one order. Raises: PolicyError for a key given twice."""
    ordered = sorted(pairs, key=lambda pair: order(pair[0]))
    for one, two in pairwise(ordered):
        if one[0] == two[0]:
            raise PolicyError("policy.type", f"the key {show(one[0])} is given twice")
    return (tag, *ordered)


def decode(value: Inner) -> Value:
    """What the caller gets back."""
    if type(value) is str:
        return value[1:] if value[0] == '"' else Name(value)
    if type(value) is int:
        return value
    tag, *items = value
    if tag == "f":
        return float(items[0])
    if tag == "[":
        return tuple(decode(item) for item in items)
    if tag == "p":
        return Pair(decode(items[0]), decode(items[1]))
    pairs = tuple((decode(k), decode(v)) for k, v in items)
    return Map(pairs) if tag == "{" else Struct(pairs)  # type: ignore[arg-type]


def kind_of(value: Inner) -> str:
    """One of KINDS."""
    if type(value) is str:
        return "string" if value[0] == '"' else "name"
    return "number" if type(value) is int else _TAGS[value[0]]


def order(value: Inner) -> tuple[Any, ...]:
    """A key that sorts values of all kinds: by kind, then by value."""
    if type(value) is str:
        return (1, value) if value[0] == '"' else (0, value)
    if type(value) is int:
        return (2, value)
    tag, *items = value
    if tag == "f":
        return (3, items[0])
    place = 4 + "[p{s".index(tag)
    if tag in "{s":
        return (place, tuple((order(k), order(v)) for k, v in items))
    return (place, tuple(order(item) for item in items))


def order_row(row: Row) -> tuple[Any, ...]:
    """What rows are sorted by, the same in every process."""
    return tuple(order(value) for value in row)


def size_of(value: Inner) -> int:
    """Bytes, roughly, for limits."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if type(item) is str:
            total += len(item)
        elif type(item) is tuple:
            total += 8
            stack.extend(item)
        else:
            total += 8
    return total


def show(value: Inner) -> str:
    """The value as the language writes it."""
    if type(value) is str:
        return json.dumps(value[1:], ensure_ascii=False) if value[0] == '"' else value
    if type(value) is int:
        return str(value)
    tag, *items = value
    if tag == "f":
        return repr(items[0])
    if tag == "[":
        return "[" + ", ".join(show(item) for item in items) + "]"
    if tag == "p":
        return f"fn:pair({show(items[0])}, {show(items[1])})"
    inner = ", ".join(f"{show(k)}: {show(v)}" for k, v in items)
    return f"[{inner}]" if tag == "{" else "{" + inner + "}"


def show_atom(pred: str, row: Iterable[Inner]) -> str:
    """A fact as it is written; open ends of an interval are `_`."""
    shown = [show(value) for value in row]
    if is_temporal(pred):
        shown[-2:] = ["_" if end in (str(OPEN_START), str(OPEN_END)) else end for end in shown[-2:]]
    return written(pred, shown)


def to_json(value: Inner) -> Any:
    """JSON with types kept: text and integers plain, the others as one-member objects."""
    if type(value) is str:
        return value[1:] if value[0] == '"' else {"name": value}
    if type(value) is int:
        return value if abs(value) < 2**53 else {"number": str(value)}
    tag, *items = value
    if tag == "f":
        return {"float": repr(items[0])}
    if tag in "[p":
        return {"list" if tag == "[" else "pair": [to_json(item) for item in items]}
    return {"map" if tag == "{" else "struct": [[to_json(k), to_json(v)] for k, v in items]}


def from_json(data: Any) -> Inner:
    """The inside form of what `to_json` gave. Raises: PolicyError for anything else."""
    if type(data) is str:
        return '"' + data
    if type(data) is int:
        return data
    if isinstance(data, Mapping) and len(data) == 1:
        ((tag, body),) = data.items()
        try:
            match tag:
                case "name":
                    return encode(Name(body))
                case "number":
                    return encode(int(body))
                case "float":
                    return real(float(body))
                case "list" | "pair":
                    return ("[" if tag == "list" else "p", *(from_json(item) for item in body))
                case "map" | "struct":
                    return ("{" if tag == "map" else "s", *((from_json(k), from_json(v)) for k, v in body))
        except (TypeError, ValueError) as error:
            raise PolicyError("policy.type", f"no value of a fact: {error}") from error
    raise PolicyError("policy.type", f"no value of a fact: {data!r}")
