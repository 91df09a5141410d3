"""Values as spec text: what an operation gives as JSON, written as a person would write it.

Takes JSON (see ops.py) and gives source text that parses back to it. Texts of several lines stand in triple
quotes where that keeps them exactly, else in one line with escapes. A setting of the table is judged by its
schema and written by its kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spak.canon import MAX_INT
from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.near import did_you_mean
from spak.lang.parser import parse
from spak.lang.schema import violations
from spak.lang.settings import PLACES, Setting, find

NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(?:-\w+)*", re.ASCII)
MAX_NAME = 200
MAX_DEPTH = 40

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def check_name(name: str, what: str) -> str:
    """A name for a task, a step or a key. Raises: EditRefused `edit.name`."""
    if not PLAIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise EditRefused("edit.name", f"'{name[:60]}' can not name {what}", "use a-z, 0-9, _ and inner -")
    return name


def check_word(word: str, what: str) -> str:
    """A name that may have dots, such as a trigger or a tool. Raises: EditRefused `edit.name`."""
    if not NAME.fullmatch(word) or not word.isascii() or len(word) > MAX_NAME:
        raise EditRefused("edit.name", f"'{word[:60]}' can not be {what}", "use a-z, 0-9, _, inner - and .")
    return word


def quoted(text: str) -> str:
    """A text in `"..."`. Raises: EditRefused `edit.value` for what no spec can hold."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise EditRefused("edit.value", "a text can not hold NUL or half a surrogate pair", "leave it out")
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def text(value: str, indent: str = "", newline: str = "\n") -> str:
    """A text, in triple quotes where it has several lines and they keep it as it is."""
    short = quoted(value)
    if "\n" not in value or '"""' in value or "\\" in value or "\r" in value:
        return short
    lines = [indent + line if line else "" for line in value.split("\n")]
    end = f"{indent}" if value.endswith("\n") else lines[-1]
    made = '"""\n' + "\n".join([*lines[:-1], end]) + '"""'
    back = source_value(made)
    return made.replace("\n", newline) if isinstance(back, ast.Text) and back.value == value else short


def source_value(source: str) -> ast.Value | None:
    """The node of a value in the spec's writing, None when it is not exactly one."""
    parsed = parse(f"x: {source}\n")
    if parsed.diagnostics and not parsed.ok:
        return None
    items = parsed.spec.items
    if len(items) != 1 or not isinstance(items[0], ast.Entry) or items[0].default is not None:
        return None
    return items[0].value


def value(item: Any, indent: str = "", depth: int = 0) -> str:
    """Any JSON value. Raises: EditRefused `edit.value`."""
    if depth > MAX_DEPTH:
        raise EditRefused("edit.value", f"a value nested deeper than {MAX_DEPTH}", "make it flatter")
    match item:
        case None:
            return "none"
        case bool():
            return "true" if item else "false"
        case int() | float():
            return number(item)
        case str():
            return text(item, indent)
        case list() | tuple():
            return "[" + ", ".join(value(part, indent, depth + 1) for part in item) + "]"
        case Mapping():
            return _mapping(item, indent, depth)
    raise EditRefused("edit.value", f"{type(item).__name__} is not a value of a spec", "give JSON")


def _mapping(item: Mapping[Any, Any], indent: str, depth: int) -> str:
    special = next((key for key in item if isinstance(key, str) and key.startswith("$")), "")
    if special:
        inner = item[special]
        if len(item) != 1 or special not in ("$name", "$source") or not isinstance(inner, str):
            hint = '{"$name": "fix_patch"} or {"$source": "range(1, 8)"}'
            raise EditRefused("edit.value", f"'{special}' is used wrongly", hint)
        if special == "$name":
            return check_word(inner, "a bare word")
        if source_value(inner) is None:
            raise EditRefused("edit.value", f"not a value in the spec's writing: {inner[:60]}", "")
        return inner.strip()
    return members({key(name): value(part, indent, depth + 1) for name, part in item.items()})


def members(items: Mapping[str, str]) -> str:
    """A map on one line, of keys and values that are written already."""
    if not items:
        return "{}"
    return "{ " + ", ".join(f"{name}: {part}" for name, part in items.items()) + " }"


def key(name: Any) -> str:
    """A key of a map: a bare word where it can be one."""
    if not isinstance(name, str):
        raise EditRefused("edit.value", "a key is a text", "")
    return name if NAME.fullmatch(name) and len(name) <= MAX_NAME else quoted(name)


def number(item: int | float) -> str:
    """A number as it is written. Raises: EditRefused `edit.value` where it is not finite or too large."""
    if isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
        raise EditRefused("edit.value", "a number is finite", "")
    if isinstance(item, int) and abs(item) > MAX_INT:
        raise EditRefused("edit.value", "whole numbers go to 2^53-1", "quote larger ones")
    return repr(item)


# ---- settings ------------------------------------------------------------------------------------------


def setting(row: Setting, item: Any, indent: str = "") -> str:
    """The value of a setting, by its kind. Raises: EditRefused `edit.value`."""
    if isinstance(item, Mapping) and "$source" in item:
        return value(item, indent)
    match row.kind:
        case "plain":
            return _plain(row, item, indent)
        case "name":
            return check_word(_string(row, _bare(item)), row.key)
        case "names":
            names = [item] if isinstance(item, str) else item
            if not isinstance(names, (list, tuple)):
                raise _refused(row, "a list of names")
            return "[" + ", ".join(check_word(_string(row, _bare(name)), "a tool") for name in names) + "]"
        case "tagged":
            return _tagged(row, item, indent)
        case "map":
            return _map(row, item, indent)
        case "space":
            return members({key(name): parameter(part) for name, part in _members(row, item)})
        case "inputs":
            return "{ " + ", ".join(input_(name, part) for name, part in _members(row, item)) + " }"
    raise _refused(row, "nothing that can be set")


def _plain(row: Setting, item: Any, indent: str) -> str:
    item = _bare(item)
    choices = row.schema.get("enum", ())
    if choices:
        word = next(
            (word for word in choices if isinstance(item, str) and word.lower() == item.lower()), None
        )
        if word is None:
            hint = did_you_mean(str(item), choices) or f"one of {', '.join(choices)}"
            raise EditRefused("edit.value", f"{row.key} can not be {str(item)[:60]!r}", hint)
        return str(word)
    for wrong in violations(row.schema, item)[:1]:
        raise _refused(row, f"{wrong.expected}, not {wrong.received}")
    return value(item, indent)


def _tagged(row: Setting, item: Any, indent: str) -> str:
    if isinstance(item, Mapping) and "name" in item:
        name, options = item["name"], item.get("options") or {}
        if not isinstance(options, Mapping) or not set(item) <= {"name", "options"}:
            raise _refused(row, '{"name": ..., "options": {...}}')
        made = check_word(_string(row, name), row.key)
        return f"{made} {value(options, indent)}" if options else made
    return check_word(_string(row, _bare(item)), row.key)


def _map(row: Setting, item: Any, indent: str) -> str:
    parts = []
    for name, part in _members(row, item):
        inner = find(row.table, name)
        if inner is None:
            hint = did_you_mean(name, PLACES[row.table]) or f"known: {', '.join(PLACES[row.table])}"
            raise EditRefused("edit.key", f"{row.key} has no '{name}'", hint)
        parts.append(entry(inner.key, setting(inner, part, indent)))
    return "{ " + ", ".join(parts) + " }" if parts else "{}"


def entry(name: str, source: str) -> str:
    """`KEY value`, `key: value`."""
    return f"{name} {source}" if name.isupper() else f"{name}: {source}"


def parameter(part: Any) -> str:
    """A parameter of SPACE: a list, `{"range": [1, 8]}` or `{"log": [1e-4, 1]}`."""
    if isinstance(part, Mapping) and len(part) == 1:
        name, numbers = next(iter(part.items()))
        if name in ("range", "log") and isinstance(numbers, (list, tuple)):
            return f"{name}({', '.join(value(item) for item in numbers)})"
    return value(part)


def input_(name: str, part: Any) -> str:
    """A declaration: `n: int = 512` of `{"type": "int", "default": 512}`; a plain value is its default."""
    check_name(name, "an input")
    if isinstance(part, Mapping) and isinstance(part.get("$source"), str) and len(part) == 1:
        items = parse(f"x: {part['$source']}\n")
        if not items.ok or len(items.spec.items) != 1:
            raise EditRefused("edit.value", f"input '{name}' is not a declaration", "int = 512")
        return f"{name}: {part['$source'].strip()}"
    if not isinstance(part, Mapping):
        return f"{name} = {value(part)}"
    kind, choices = part.get("type"), part.get("choices")
    if not isinstance(kind, str) or not set(part) <= {"type", "choices", "default"}:
        raise EditRefused("edit.value", f"input '{name}' wants a type", '{"type": "int", "default": 512}')
    made = check_word(kind, "a type")
    if choices is not None:
        made += f"({', '.join(value(item) for item in choices)})"
    return f"{name}: {made}" + (f" = {value(part['default'])}" if "default" in part else "")


def _members(row: Setting, item: Any) -> list[tuple[str, Any]]:
    if not isinstance(item, Mapping) or not all(isinstance(name, str) for name in item):
        raise _refused(row, "an object")
    return list(item.items())


def _bare(item: Any) -> Any:
    """`{"$name": x}` is x where a word is wanted anyway."""
    return item["$name"] if isinstance(item, Mapping) and set(item) == {"$name"} else item


def _string(row: Setting, item: Any) -> str:
    if not isinstance(item, str):
        raise _refused(row, "a name")
    return item


def _refused(row: Setting, wanted: str) -> EditRefused:
    return EditRefused("edit.value", f"{row.key} wants {wanted}", f"for example: {row.example}")
