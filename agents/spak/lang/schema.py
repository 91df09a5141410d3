"""The pinned JSON Schema dialect: does a value fit, and if not, where and why, in our own codes and words.

Takes a schema of a tool, validator, proposer or backend and a JSON value; gives Violations with a code, what
was expected, what was received and a hint, so that they can stand in R4 and in a diagnostic alike and stay
the same in every version of every library. It knows no `$ref`, no formats and no defaults: `check_schema`
refuses whatever is outside the dialect. Patterns are RE2: linear time, whatever a model sends.

Two stand-ins pass wherever a string is wanted: `{"$blob": sha}`, with `size` and `head` where they are known,
for a value too long to hold inline, and `{"$text": [...]}` for one that is put together later. `UNKNOWN`
passes everywhere: `check` puts it where a variable stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from spak import canon
from spak.errors import SpecError, UserError

MAX_VIOLATIONS = 20
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
KEYWORDS = frozenset(
    [
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
    ]
)


class _Unknown:
    """The type of UNKNOWN."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""A value that only the run will know; it violates nothing."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One misfit; `path` is a JSON pointer into the value, empty for the value itself."""

    path: str
    code: str
    expected: Any
    received: Any
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """What goes into R4."""
        return {
            "path": self.path,
            "code": self.code,
            "expected": self.expected,
            "received": self.received,
            "hint": self.hint,
        }

    def sentence(self, what: str) -> str:
        """What is wrong, in words; `what` is what a member is called there."""
        name = self.path.removeprefix("/").replace("/", ".")
        match self.code:
            case "schema.required":
                return f"{what} '{self.expected}' is missing" + (f" in {name}" if name else "")
            case "schema.unknown_member":
                return f"unknown {what} '{self.received}'"
            case "schema.type":
                kinds = self.expected if isinstance(self.expected, str) else " or ".join(self.expected)
                return f"'{name}' wants {kinds}, not {self.received}"
            case "schema.minimum" | "schema.min_items" | "schema.min_length":
                return f"'{name}' is at least {self.expected}, not {self.received}"
            case "schema.maximum" | "schema.max_items" | "schema.max_length":
                return f"'{name}' is at most {self.expected}, not {self.received}"
            case _:
                return f"'{name}' does not take {self.received}"


def violations(schema: Mapping[str, Any], value: Any) -> list[Violation]:
    """Every misfit of the value, at most MAX_VIOLATIONS, in the order of the value."""
    found: list[Violation] = []
    for violation in _walk(schema, value, ""):
        found.append(violation)
        if len(found) == MAX_VIOLATIONS:
            break
    return found


def check_schema(schema: Mapping[str, Any], where: str = "") -> None:
    """Raises: SpecError `lang.schema` for a keyword, a type or a pattern that the dialect does not have."""
    if not isinstance(schema, Mapping):
        raise _refuse(where, "a schema is an object")
    for keyword in schema:
        if keyword not in KEYWORDS and keyword not in ANNOTATIONS:
            raise _refuse(where, f"keyword '{keyword}' is not in the dialect")
    for name in _types(schema):
        if name not in TYPES:
            raise _refuse(where, f"unknown type {name!r}")
    for keyword in ("minItems", "maxItems", "minLength", "maxLength"):
        if keyword in schema and not (type(schema[keyword]) is int and schema[keyword] >= 0):
            raise _refuse(where, f"{keyword} wants a whole number")
    for keyword in ("minimum", "maximum"):
        if keyword in schema and not _is_number(schema[keyword]):
            raise _refuse(where, f"{keyword} wants a number")
    if "pattern" in schema:
        _check_pattern(schema["pattern"], where)
    _check_containers(schema, where)


def _check_containers(schema: Mapping[str, Any], where: str) -> None:
    if "enum" in schema and not (
        isinstance(schema["enum"], Sequence) and not isinstance(schema["enum"], str)
    ):
        raise _refuse(where, "enum wants a list")
    required = schema.get("required", ())
    if isinstance(required, str) or not all(isinstance(name, str) for name in required):
        raise _refuse(where, "required wants a list of names")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise _refuse(where, "properties wants an object")
    for name, item in properties.items():
        check_schema(item, f"{where}/properties/{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{where}/items")
    extra = schema.get("additionalProperties", True)
    if not isinstance(extra, bool):
        check_schema(extra, f"{where}/additionalProperties")
    branches = schema.get("anyOf", ())
    if isinstance(branches, (str, Mapping)) or ("anyOf" in schema and not branches):
        raise _refuse(where, "anyOf wants a list of schemas")
    for index, item in enumerate(branches):
        check_schema(item, f"{where}/anyOf/{index}")


def _check_pattern(pattern: object, where: str) -> None:
    import re2

    if not isinstance(pattern, str):
        raise _refuse(where, "pattern wants a string")
    try:
        re2.compile(pattern, _quiet())
    except re2.error as error:
        raise _refuse(where, f"pattern is not RE2: {pattern}") from error


def _refuse(where: str, message: str) -> SpecError:
    return SpecError(
        "lang.schema", f"schema{' at ' + where if where else ''}: {message}", "see docs/language.md, Schemas"
    )


def _walk(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Violation]:
    if value is UNKNOWN:
        return
    types = _types(schema)
    if types and not any(_IS_TYPE[name](value) for name in types):
        if "string" in types and _is_stand_in(value):
            yield from _check_stand_in(schema, value, path)
            return
        yield Violation(path, "schema.type", _one_or_list(types), type_name(value), _type_hint(types, value))
        return
    if not types and _is_stand_in(value) and "properties" not in schema:
        yield from _check_stand_in(schema, value, path)
        return
    if "const" in schema and not _same(schema["const"], value):
        yield Violation(path, "schema.const", schema["const"], show(value))
    if "enum" in schema and not any(_same(item, value) for item in schema["enum"]):
        yield Violation(path, "schema.enum", list(schema["enum"]), show(value), _near(schema["enum"], value))
    if isinstance(value, str):
        yield from _check_text(schema, value, path)
    elif _is_number(value):
        yield from _check_number(schema, value, path)
    elif isinstance(value, Mapping):
        yield from _check_object(schema, value, path)
    elif isinstance(value, (list, tuple)):
        yield from _check_array(schema, value, path)
    if "anyOf" in schema:
        yield from _check_any_of(schema["anyOf"], value, path)


def _check_text(schema: Mapping[str, Any], value: str, path: str) -> Iterator[Violation]:
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield Violation(path, "schema.min_length", schema["minLength"], len(value), "the text is too short")
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield Violation(path, "schema.max_length", schema["maxLength"], len(value), "the text is too long")
    if "pattern" in schema and not _pattern(schema["pattern"])(value):
        yield Violation(path, "schema.pattern", schema["pattern"], show(value))


def _check_number(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Violation]:
    if "minimum" in schema and value < schema["minimum"]:
        yield Violation(path, "schema.minimum", schema["minimum"], value)
    if "maximum" in schema and value > schema["maximum"]:
        yield Violation(path, "schema.maximum", schema["maximum"], value)


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Violation]:
    properties = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield Violation(path, "schema.required", name, sorted(value), f"add {name!r}")
    for name, item in value.items():
        below = f"{path}/{name}"
        if name in properties:
            yield from _walk(properties[name], item, below)
        elif extra is False:
            yield Violation(below, "schema.unknown_member", sorted(properties), name, _near(properties, name))
        elif extra is not True:
            yield from _walk(extra, item, below)


def _check_array(schema: Mapping[str, Any], value: Sequence[Any], path: str) -> Iterator[Violation]:
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield Violation(path, "schema.min_items", schema["minItems"], len(value), "the list is too short")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield Violation(path, "schema.max_items", schema["maxItems"], len(value), "the list is too long")
    if "items" in schema:
        for index, item in enumerate(value):
            yield from _walk(schema["items"], item, f"{path}/{index}")


def _check_any_of(branches: Sequence[Mapping[str, Any]], value: Any, path: str) -> Iterator[Violation]:
    tried = []
    for branch in branches:
        tried.append(list(_walk(branch, value, path)))
        if not tried[-1]:
            return
    nearest = min(tried, key=len)[0]
    hint = f"nearest: {nearest.code} at '{nearest.path}', expected {show(nearest.expected)}"
    yield Violation(path, "schema.any_of", f"one of {len(branches)} forms", show(value), hint)


def _is_stand_in(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if "$blob" in value and value.keys() <= {"$blob", "size", "head"}:
        size = value.get("size", 0)
        return isinstance(value["$blob"], str) and type(size) is int and size >= 0
    return len(value) == 1 and isinstance(value.get("$text"), (list, tuple))


def _check_stand_in(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Violation]:
    """A long value: what its size alone disproves. A character takes one to four bytes."""
    if "size" not in value:
        return
    size = value["size"]
    if "enum" in schema or "const" in schema:
        expected = list(schema["enum"]) if "enum" in schema else schema["const"]
        yield Violation(path, "schema.enum", expected, f"{size} bytes")
    if size < schema.get("minLength", 0):
        yield Violation(path, "schema.min_length", schema["minLength"], size, "the text is too short")
    if "maxLength" in schema and size > 4 * schema["maxLength"]:
        yield Violation(path, "schema.max_length", schema["maxLength"], size, "the text is too long")


def type_name(value: Any) -> str:
    """The JSON type of a value, `integer` for whole numbers."""
    return next((name for name in TYPES if _IS_TYPE[name](value)), "unknown")


def show(value: Any) -> str:
    """The value in at most 80 characters, the same on every machine."""
    try:
        text = canon.dumps(value).decode()
    except UserError:  # what JSON does not have is shown by its type
        return type_name(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _one_or_list(types: tuple[str, ...]) -> str | list[str]:
    return types[0] if len(types) == 1 else list(types)


def _type_hint(types: tuple[str, ...], value: Any) -> str:
    if isinstance(value, str) and ("integer" in types or "number" in types):
        return "a number has no quotes"
    if "array" in types and not isinstance(value, (list, tuple)):
        return "a list is written in [ ], even for one item"
    return ""


def _near(names: Sequence[Any] | Mapping[str, Any], value: Any) -> str:
    from spak.lang.near import nearest

    hit = nearest(value, [name for name in names if isinstance(name, str)]) if isinstance(value, str) else ""
    return f"did you mean {hit!r}?" if hit else ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or float(value).is_integer())  # type: ignore[arg-type]


_IS_TYPE: Mapping[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, (list, tuple)),
    "object": lambda value: isinstance(value, Mapping),
}


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 is 1.0 and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> Callable[[str], object]:
    import re2

    return re2.compile(pattern, _quiet()).search  # type: ignore[no-any-return]


def _quiet() -> Any:
    """RE2 options that do not write to standard error when a pattern is wrong."""
    import re2

    options = re2.Options()
    options.log_errors = False
    return options
